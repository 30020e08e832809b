package simd

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// Rows with few different keys, such as labels, are sorted by counting each key: two passes instead of four or more.
const (
	fewValues = 255 // maximum number of different keys
	// fewSlots is so much larger than fewValues that most keys are found in the first slot: a branch that depends on the
	// element would be mispredicted.
	fewSlots = 1 << fewBits
	fewBits  = 12
)

// sortCall is the maximum number of elements in one call of a kernel, which the runtime cannot interrupt.
const sortCall = 1 << 16

// fewKeys numbers the different keys of a row from 1 on, in the order of their first elements.
type fewKeys struct {
	n       uint8
	keys    [fewValues + 1]uint32
	counts  [fewValues + 1]uint32
	slots   [fewSlots]uint32 // a hash table of keys
	numbers [fewSlots]uint8  // their numbers; 0 in free slots
	row     []uint8          // the number of each element's key
	sorted  [fewValues]uint8 // memory for order
}

var fewSorts = sync.Pool{New: func() any { return new(fewKeys) }}

func fewHash(key uint32) uint32 { return key * 0x9e3779b1 >> (32 - fewBits) }

// number returns the number of a key. It returns 0 if there are already fewValues others.
func (f *fewKeys) number(key uint32) uint8 {
	for h := fewHash(key); ; h = (h + 1) % fewSlots {
		switch number := f.numbers[h]; {
		case number == 0:
			if f.n == fewValues {
				return 0
			}
			f.n++
			f.keys[f.n], f.slots[h], f.numbers[h] = key, key, f.n
			return f.n
		case f.slots[h] == key:
			return number
		}
	}
}

// order returns the numbers of the keys in ascending order of the keys.
func (f *fewKeys) order() []uint8 {
	order := f.sorted[:f.n]
	for i := range order {
		order[i] = uint8(i + 1)
	}
	slices.SortFunc(order, func(a, b uint8) int { return cmp.Compare(f.keys[a], f.keys[b]) })
	return order
}

// few sorts row r by counting if it has few different keys. It reports whether it sorted the row.
func (t *sortTask) few(r int) bool {
	n := t.cols
	if n < sortLimits.few {
		return false
	}
	f := fewSorts.Get().(*fewKeys)
	defer fewSorts.Put(f)
	x := t.x[r*n:][:n]
	special, ok := f.count(t.key, x)
	if !ok {
		return false
	}
	var next [fewValues + 1]uint32
	at := uint32(0)
	for _, k := range f.order() {
		next[k] = at
		if at += f.counts[k]; t.values != nil && !special {
			repeatAll(t.values[r*n:][next[k]:at], t.key.bits(f.keys[k]))
		}
	}
	if special && t.values != nil {
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
	clear(f.numbers[:])
	clear(f.counts[:])
	if cap(f.row) < len(x) {
		f.row = make([]uint8, len(x))
	}
	f.row = f.row[:len(x)]
	row := f.row
	for i, b := range x {
		k := key.of(b)
		h := fewHash(k)
		number := f.numbers[h]
		if number == 0 || f.slots[h] != k {
			if number = f.number(k); number == 0 {
				return false, false
			}
		}
		if key.float && b == 1<<31 {
			special = true
		}
		f.counts[number]++
		row[i] = number
	}
	nan := key.of(math.Float32bits(float32(math.NaN())))
	return special || key.float && slices.Contains(f.keys[1:int(f.n)+1], nan), true
}

// repeatAll sets all elements of dst to v.
func repeatAll(dst []uint32, v uint32) {
	for len(dst) > 0 {
		k := min(len(dst), sortCall)
		Repeat(&dst[0], &v, k, 0, 1)
		dst = dst[k:]
	}
}
