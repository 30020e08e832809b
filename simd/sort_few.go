package simd

import (
	"cmp"
	"slices"
	"sync"
)

// Rows with few different keys, such as labels, are sorted by counting each key: two passes instead of four or more.
const (
	fewRow    = 512 // minimum number of elements
	fewValues = 256 // maximum number of different keys
	fewSlots  = 2 * fewValues
)

// fewKeys numbers the different keys of a row in the order of their first elements.
type fewKeys struct {
	n      int
	keys   [fewValues]uint32
	counts [fewValues]uint32
	slots  [fewSlots]struct{ key, number uint32 } // a hash table; number is 0 in free slots, and 1 more than the key's number in others
	row    []uint8                                // the number of each element's key
}

var fewSorts = sync.Pool{New: func() any { return new(fewKeys) }}

// number returns the number of a key. It returns fewValues if there are already as many others.
func (f *fewKeys) number(key uint32) uint32 {
	h := key * 0x9e3779b1 >> 23 % fewSlots
	for {
		switch s := &f.slots[h]; {
		case s.number == 0:
			if f.n == fewValues {
				return fewValues
			}
			f.keys[f.n] = key
			f.n++
			s.key, s.number = key, uint32(f.n)
			return uint32(f.n - 1)
		case s.key == key:
			return s.number - 1
		}
		h = (h + 1) % fewSlots
	}
}

// order returns the numbers of the keys in ascending order of the keys.
func (f *fewKeys) order() []uint8 {
	order := make([]uint8, f.n)
	for i := range order {
		order[i] = uint8(i)
	}
	slices.SortFunc(order, func(a, b uint8) int { return cmp.Compare(f.keys[a], f.keys[b]) })
	return order
}

// few sorts row r by counting if it has few different keys. It reports whether it sorted the row.
func (t *sortTask) few(r int) bool {
	n := t.cols
	if n < fewRow {
		return false
	}
	f := fewSorts.Get().(*fewKeys)
	defer fewSorts.Put(f)
	f.n = 0
	clear(f.slots[:])
	clear(f.counts[:])
	if cap(f.row) < n {
		f.row = make([]uint8, n)
	}
	x, row := t.x[r*n:][:n], f.row[:n]
	for i, b := range x {
		k := f.number(t.key.of(b))
		if k == fewValues {
			return false
		}
		f.counts[k]++
		row[i] = uint8(k)
	}
	var next [fewValues]uint32
	at := uint32(0)
	for _, k := range f.order() {
		next[k] = at
		at += f.counts[k]
	}
	for i, k := range row {
		at := next[k]
		next[k]++
		if t.index != nil {
			t.index[r*n:][:n][at] = int32(i)
		}
		if t.values != nil {
			t.values[r*n:][:n][at] = x[i]
		}
	}
	return true
}
