package simd

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
)

// sortLimits are the limits of the ways to sort, measured on 2026-11-25 (go test -bench Sort ./simd). Counts of
// elements are of one row.
var sortLimits = struct {
	split, radix, wide, few, count, values, insert, inward int
	ns, quickNS                                            float64
}{
	ns:      15,      // nanoseconds for an element, by digits
	quickNS: 4,       // nanoseconds for an element, by partitions
	split:   1 << 15, // elements from which on threads share the row
	radix:   96,      // elements from which on the radix sort is faster than slices.Sort
	wide:    1 << 13, // elements from which on digits have 11 bits instead of 8
	few:     512,     // elements from which on few different keys are counted
	count:   256,     // integers from which on their values are counted
	values:  1 << 14, // different values up to which they are counted
	insert:  6,       // keys up to which insertion is faster than a network
	inward:  1 << 12, // keys from which on they are divided in place, because the first-level cache does not hold two arrays
}

//go:generate go -C _asm run ./arrays ..

// Sort sorts each of rows rows of cols elements in ascending or descending order. It writes
// the elements of row i to values[i*cols:] and their columns to index[i*cols:]. Of equal
// elements the one with the lower column comes first in either order. NaN counts as greater
// than everything and equal to itself, -0 as equal to +0. values or index may be nil; neither
// may overlap x. With a nil Pool it uses only the calling thread. It panics if cols exceeds
// 2^31-1 or if a slice is too short.
func Sort[T float32 | int32 | uint32](p *workers.Pool, values []T, index []int32, x []T, rows, cols int, descending bool) {
	n := area(rows, cols)
	if uint64(cols) > math.MaxInt32 || len(x) < n || values != nil && len(values) < n || index != nil && len(index) < n {
		panic(fmt.Sprintf("simd: Sort of %d rows of %d: values, index and x have lengths %d, %d and %d", rows, cols, len(values), len(index), len(x)))
	}
	if n == 0 || values == nil && index == nil {
		return
	}
	t := sorts.Get().(*sortTask)
	t.x, t.values, t.index = words(x), words(values), index
	t.cols, t.rows, t.key = cols, rows, keyer[T](descending)
	threads, ns := 1, sortLimits.ns
	if t.quick() {
		ns = sortLimits.quickNS
	}
	if p.Worth(float64(n) * ns) {
		threads = p.Threads()
	}
	t.group = max(1, rows/(8*threads))
	if rows < threads && cols >= sortLimits.split {
		for r := range rows {
			t.split(p, r, threads)
		}
	} else if threads == 1 {
		t.group = rows
		t.Part(0)
	} else {
		p.Do((rows+t.group-1)/t.group, t)
	}
	t.x, t.values, t.index = nil, nil, nil
	sorts.Put(t)
}

// words returns the bits of elements.
func words[T float32 | int32 | uint32](x []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// wordKey maps the bits of elements to keys: unsigned integers in the order of the elements.
type wordKey struct {
	float bool   // the bits are those of float32
	flip  uint32 // bits of keys to invert: the sign of i32, and all bits for a descending order
}

func keyer[T float32 | int32 | uint32](descending bool) wordKey {
	var k wordKey
	switch any(T(0)).(type) {
	case float32:
		k.float = true
	case int32:
		k.flip = 1 << 31
	}
	if descending {
		k.flip = ^k.flip
	}
	return k
}

// of returns the key of the bits of an element.
func (k wordKey) of(b uint32) uint32 {
	if k.float {
		return floatKey(math.Float32frombits(b)) ^ k.flip
	}
	return b ^ k.flip
}

// bits returns the bits of an element with the given key. Both zeros have the same key, and so do all
// NaNs: of these it returns the bits of one.
func (k wordKey) bits(key uint32) uint32 {
	key ^= k.flip
	switch {
	case !k.float:
		return key
	case key>>31 != 0:
		return key ^ 1<<31
	}
	return ^key
}

// sortKey is the type of the sorted integers: the key of an element, or the key in the high word and
// the element's column in the low word.
type sortKey interface{ uint32 | uint64 }

// fillKeys sets to to the keys of a run of a row that begins at column at.
func fillKeys[K sortKey](k wordKey, to []K, x []uint32, at int) {
	switch to := any(to).(type) {
	case []uint32:
		x = x[:len(to)]
		for i, b := range x {
			to[i] = k.of(b)
		}
	case []uint64:
		x = x[:len(to)]
		for i, b := range x {
			to[i] = uint64(k.of(b))<<32 | uint64(uint32(at+i))
		}
	}
}

// sortTask sorts rows; each part is a group of rows. Keys with columns are distinct, so every
// method sorts them stably. Keys without columns take half of the memory. They suffice if index
// is nil.
type sortTask struct {
	x, values         []uint32
	index             []int32
	key               wordKey
	rows, cols, group int
}

var sorts = sync.Pool{New: func() any { return new(sortTask) }}

// Part sorts the rows of one group.
func (t *sortTask) Part(i int) {
	lo, hi := i*t.group, min((i+1)*t.group, t.rows)
	for lo < hi && t.inOrder(lo) {
		lo++
	}
	switch {
	case lo == hi:
	case t.quick():
		t.quickRows(lo, hi)
	case t.index == nil:
		sortRows[uint32](t, lo, hi, &wordRadixes)
	default:
		sortRows[uint64](t, lo, hi, &radixes)
	}
}

func sortRows[K sortKey](t *sortTask, lo, hi int, pool *sync.Pool) {
	s := pool.Get().(*radix[K])
	for r := lo; r < hi; r++ {
		if r > lo && t.inOrder(r) || t.few(r) {
			continue
		}
		s.begin(t, r, 1)
		if t.cols < sortLimits.radix {
			fillKeys(s.key, s.from, s.x, 0)
			slices.Sort(s.from)
		} else {
			s.sort(nil)
		}
		s.step = s.give
		s.Part(0)
		if t.index == nil {
			s.key.restore(s.values, s.x)
		}
	}
	s.end(pool)
}

// inOrder reports whether row r is sorted already, and copies the row if it is. For most other rows it
// makes only a few comparisons.
func (t *sortTask) inOrder(r int) bool {
	x := t.x[r*t.cols:][:t.cols]
	last := t.key.of(x[0])
	for _, b := range x[1:] {
		k := t.key.of(b)
		if k < last {
			return false
		}
		last = k
	}
	if t.values != nil {
		copy(t.values[r*t.cols:], x)
	}
	if t.index != nil {
		index := t.index[r*t.cols:][:t.cols]
		for i := range index {
			index[i] = int32(i)
		}
	}
	return true
}

// split sorts one row with several threads.
func (t *sortTask) split(p *workers.Pool, r, threads int) {
	switch {
	case t.inOrder(r):
	case t.quick():
		t.quickSplit(p, r, threads)
	case t.few(r):
	case t.index == nil:
		splitRow[uint32](t, p, r, threads, &wordRadixes)
	default:
		splitRow[uint64](t, p, r, threads, &radixes)
	}
}

func splitRow[K sortKey](t *sortTask, p *workers.Pool, r, threads int, pool *sync.Pool) {
	s := pool.Get().(*radix[K])
	s.begin(t, r, threads)
	s.sort(p)
	s.step = s.give
	p.Do(s.parts, s)
	if t.index == nil {
		s.key.restore(s.values, s.x)
	}
	s.end(pool)
}

// radix sorts one row by the digits of its keys, starting with the lowest digit of the elements;
// the columns are in order from the beginning. For each digit, every part of the row counts
// its digits, and then moves its keys to the places behind the keys of earlier parts with the same
// digit.
type radix[K sortKey] struct {
	x, values []uint32
	index     []int32
	key       wordKey
	from, to  []K
	memory    [2][]K
	count     []uint32 // for each part and digit: the number of keys, then the place of the next key
	parts     int
	bits      int  // bits of a digit
	shift     int  // the lowest bit of the current digit
	first     bool // the first pass, which makes the keys
	step      func(lo, hi int, count []uint32)

	tally, move, give func(lo, hi int, count []uint32) // method values, made once because each allocates
}

var radixes, wordRadixes = sync.Pool{New: newRadix[uint64]}, sync.Pool{New: newRadix[uint32]}

func newRadix[K sortKey]() any {
	s := new(radix[K])
	s.tally, s.move, s.give = s.tallyPart, s.movePart, s.givePart
	return s
}

// begin prepares for row r of t.
func (s *radix[K]) begin(t *sortTask, r, parts int) {
	n := t.cols
	s.x, s.key, s.parts = t.x[r*n:][:n], t.key, parts
	if t.values != nil {
		s.values = t.values[r*n:][:n]
	}
	if t.index != nil {
		s.index = t.index[r*n:][:n]
	}
	if cap(s.memory[0]) < n {
		s.memory = [2][]K{make([]K, n), make([]K, n)}
	}
	s.from, s.to, s.count = s.memory[0][:n], s.memory[1][:n], s.count[:0]
}

// end returns s to the pool.
func (s *radix[K]) end(pool *sync.Pool) {
	s.x, s.values, s.index, s.from, s.to = nil, nil, nil, nil, nil
	pool.Put(s)
}

// sort leaves the sorted keys in from.
func (s *radix[K]) sort(p *workers.Pool) {
	s.bits = 8
	if len(s.x) >= sortLimits.wide {
		s.bits = 11
	}
	digits := s.parts
	if s.parts == 1 {
		digits = (32 + s.bits - 1) / s.bits
	}
	if n := digits << s.bits; cap(s.count) < n {
		s.count = make([]uint32, n)
	} else {
		s.count = s.count[:n]
	}
	width := 8 * int(unsafe.Sizeof(K(0)))
	if s.parts == 1 {
		s.sortAlone(width - 32)
		return
	}
	s.first = true
	for s.shift = width - 32; s.shift < width; s.shift += s.bits {
		s.step = s.tally
		s.each(p)
		s.first = false
		if s.places() {
			s.step = s.move
			s.each(p)
			s.from, s.to = s.to, s.from
		}
	}
}

func (s *radix[K]) each(p *workers.Pool) { p.Do(s.parts, s) }

// sortAlone sorts with one thread. One pass counts all digits, because the counts of a whole row do not
// depend on the order of the keys. The lowest digit begins at bit low.
func (s *radix[K]) sortAlone(low int) {
	fillKeys(s.key, s.from, s.x, 0)
	clear(s.count)
	mask := K(1)<<s.bits - 1
	if s.bits == 11 {
		c := (*[3 << 11]uint32)(s.count)
		for _, k := range s.from {
			k >>= low & 63
			c[k&mask]++
			c[1<<11+k>>11&mask]++
			c[2<<11+k>>22&mask]++
		}
	} else {
		c := (*[4 << 8]uint32)(s.count)
		for _, k := range s.from {
			k >>= low & 63
			c[k&mask]++
			c[1<<8+k>>8&mask]++
			c[2<<8+k>>16&mask]++
			c[3<<8+k>>24&mask]++
		}
	}
	all := s.count
	for at := 0; at < len(all); at += 1 << s.bits {
		s.count, s.shift = all[at:][:1<<s.bits], low
		if s.places() {
			s.movePart(0, len(s.x), s.count)
			s.from, s.to = s.to, s.from
		}
		low += s.bits
	}
	s.count = all
}

// Part runs the current step for one part of the row.
func (s *radix[K]) Part(i int) {
	n := len(s.x)
	at := func(i int) int { return int(uint64(i) * uint64(n) / uint64(s.parts)) }
	var count []uint32
	if len(s.count) > 0 {
		digits := len(s.count) / s.parts
		count = s.count[i*digits:][:digits]
	}
	s.step(at(i), at(i+1), count)
}

// tallyPart counts the digits of the keys from lo to hi. In the first pass it makes the keys before.
func (s *radix[K]) tallyPart(lo, hi int, count []uint32) {
	clear(count)
	keys := s.from[lo:hi]
	if s.first {
		fillKeys(s.key, keys, s.x[lo:hi], lo)
	}
	mask := K(len(count) - 1)
	for _, k := range keys {
		count[k>>(s.shift&63)&mask]++
	}
}

// places replaces the counts by the places of the first keys of each digit. It returns false if all keys
// have the same digit.
func (s *radix[K]) places() bool {
	digits := len(s.count) / s.parts
	sum := uint32(0)
	if s.parts == 1 {
		for d, n := range s.count {
			if n == uint32(len(s.x)) {
				return false
			}
			s.count[d] = sum
			sum += n
		}
		return true
	}
	for d := range digits {
		before := sum
		for i := d; i < len(s.count); i += digits {
			n := s.count[i]
			s.count[i] = sum
			sum += n
		}
		if sum-before == uint32(len(s.x)) {
			return false
		}
	}
	return true
}

// movePart moves the keys from lo to hi to their places.
func (s *radix[K]) movePart(lo, hi int, count []uint32) {
	mask, to := K(len(count)-1), s.to
	for _, k := range s.from[lo:hi] {
		d := k >> (s.shift & 63) & mask
		at := count[d]
		count[d] = at + 1
		to[at] = k
	}
}

// givePart writes the results from lo to hi.
func (s *radix[K]) givePart(lo, hi int, _ []uint32) {
	if keys, only := any(s.from).([]uint32); only {
		values := s.values[lo:hi]
		for i, k := range keys[lo:hi] {
			values[i] = s.key.bits(k)
		}
		return
	}
	keys := s.from[lo:hi]
	if s.index != nil {
		index := s.index[lo:hi]
		for i, k := range keys {
			index[i] = int32(uint32(k))
		}
	}
	if s.values == nil {
		return
	}
	values := s.values[lo:hi]
	if !s.key.float {
		for i, k := range keys {
			values[i] = uint32(uint64(k)>>32) ^ s.key.flip
		}
		return
	}
	for i, k := range keys {
		values[i] = s.x[uint32(k)] // not s.key.bits: different zeros and NaNs have the same key
	}
}

// restore gives the zeros and NaNs in values the bits that they have in x, in the order of x. values is
// the row x, sorted without columns.
func (k wordKey) restore(values, x []uint32) {
	if !k.float {
		return
	}
	for _, b := range [2]float32{0, float32(math.NaN())} {
		key := k.of(math.Float32bits(b))
		at, _ := slices.BinarySearchFunc(values, key, func(b, key uint32) int { return cmp.Compare(k.of(b), key) })
		for _, b := range x {
			if at == len(values) || k.of(values[at]) != key {
				break
			}
			if k.of(b) == key {
				values[at] = b
				at++
			}
		}
	}
}
