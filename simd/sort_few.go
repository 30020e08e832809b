package simd

import (
	"cmp"
	"math"
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

func fewHash(key uint32) uint32 { return key * 0x9e3779b1 >> 23 % fewSlots }

// number returns the number of a key. It returns fewValues if there are already as many others.
func (f *fewKeys) number(key uint32) uint32 {
	h := fewHash(key)
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
	x := t.x[r*n:][:n]
	special, ok := f.count(t.key, x)
	if !ok {
		return false
	}
	var next [fewValues]uint32
	at := uint32(0)
	for _, k := range f.order() {
		next[k] = at
		if at += f.counts[k]; t.index == nil && !special {
			bits := t.key.bits(f.keys[k])
			repeatAll(t.values[r*n:][next[k]:at], bits)
		}
	}
	if t.values != nil && (t.index != nil || special) {
		next, values := next, t.values[r*n:][:n]
		for i, k := range f.row {
			values[next[k]] = x[i]
			next[k]++
		}
	}
	if t.index != nil {
		index := t.index[r*n:][:n]
		for i, k := range f.row {
			index[next[k]] = int32(i)
			next[k]++
		}
	}
	return true
}

// count numbers the keys of x. It reports whether a key stands for several bits of floats, and false if there are too many
// different keys.
func (f *fewKeys) count(key wordKey, x []uint32) (special, ok bool) {
	f.n = 0
	clear(f.slots[:])
	clear(f.counts[:])
	if cap(f.row) < len(x) {
		f.row = make([]uint8, len(x))
	}
	f.row = f.row[:len(x)]
	row := f.row
	for i, b := range x {
		k := key.of(b)
		s := &f.slots[fewHash(k)]
		number := s.number - 1
		if s.number == 0 || s.key != k {
			if number = f.number(k); number == fewValues {
				return false, false
			}
		}
		if key.float && b == 1<<31 {
			special = true
		}
		f.counts[number%fewValues]++
		row[i] = uint8(number)
	}
	nan := key.of(math.Float32bits(float32(math.NaN())))
	return special || key.float && slices.Contains(f.keys[:f.n], nan), true
}

// repeatAll sets all elements of dst to v.
func repeatAll(dst []uint32, v uint32) {
	for len(dst) > 0 {
		k := min(len(dst), sortCall)
		Repeat(&dst[0], &v, k, 0, 1)
		dst = dst[k:]
	}
}
