package simd

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/workers"
)

// Sort sorts each of rows rows of cols elements: values[i*cols:] gets them in ascending
// order, or descending, and index[i*cols:] their columns. Of equal elements the one
// with the lower column comes first in either order; NaN counts as greater than
// everything and equal to itself, -0 as equal to +0. values or index may be nil; neither
// may overlap x. A nil Pool is the calling thread alone. It panics if cols exceeds
// 2^31-1 or if a length does not fit.
func Sort[T float32 | int32 | uint32](p *workers.Pool, values []T, index []int32, x []T, rows, cols int, descending bool) {
	n := area(rows, cols)
	if uint64(cols) > math.MaxInt32 || len(x) < n || values != nil && len(values) < n || index != nil && len(index) < n {
		panic(fmt.Sprintf("simd: Sort %d rows of %d: lengths %d, %d, %d", rows, cols, len(values), len(index), len(x)))
	}
	if n == 0 {
		return
	}
	t := sorts.Get().(*sortTask)
	t.x, t.values, t.index = words(x), words(values), index
	t.cols, t.rows, t.key = cols, rows, keyer[T](descending)
	threads := 1
	if p.Worth(float64(n) * sortNS) {
		threads = p.Threads()
	}
	t.group = max(1, rows/(8*threads))
	if rows < threads && cols >= sortSplit {
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

const (
	sortNS    = 15      // for an element
	sortSplit = 1 << 15 // elements of a row that is worth dividing among threads
	sortRadix = 192     // elements from which counting digits is faster than comparing
	sortWide  = 1 << 13 // elements from which digits have 11 bits instead of 8
)

// words returns the bits of elements.
func words[T float32 | int32 | uint32](x []T) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// wordKey makes the bits of elements into unsigned integers of the same order.
type wordKey struct {
	float bool   // the bits are those of float32
	flip  uint32 // of integers, and of all keys of a descending order
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

// fill sets to to the keys of a run of a row that begins at column at: the element's
// in the high word, the column in the low one.
func (k wordKey) fill(to []uint64, x []uint32, at int) {
	x = x[:len(to)]
	if k.float {
		for i, b := range x {
			to[i] = uint64(floatKey(math.Float32frombits(b))^k.flip)<<32 | uint64(uint32(at+i))
		}
		return
	}
	for i, b := range x {
		to[i] = uint64(b^k.flip)<<32 | uint64(uint32(at+i))
	}
}

// sortTask sorts rows, several one after the other in each part. Keys are distinct,
// since they have the column, so that any method sorts stably.
type sortTask struct {
	x, values         []uint32
	index             []int32
	key               wordKey
	rows, cols, group int
}

var sorts = sync.Pool{New: func() any { return new(sortTask) }}

// Part sorts the rows of one group.
func (t *sortTask) Part(i int) {
	s := radixes.Get().(*radix)
	for r := i * t.group; r < min((i+1)*t.group, t.rows); r++ {
		s.begin(t, r, 1)
		if t.cols < sortRadix {
			t.key.fill(s.from, s.x, 0)
			slices.Sort(s.from)
		} else {
			s.sort(nil)
		}
		s.step = s.give
		s.Part(0)
	}
	s.end()
}

// split sorts one row by several threads.
func (t *sortTask) split(p *workers.Pool, r, threads int) {
	s := radixes.Get().(*radix)
	s.begin(t, r, threads)
	s.sort(p)
	s.step = s.give
	p.Do(s.parts, s)
	s.end()
}

// radix sorts one row by the digits of its keys, from the lowest digit of the element on: the
// columns are in order from the beginning. Each part of the row counts its digits and
// then moves its keys behind those of the parts before it that have the same digit.
type radix struct {
	x, values []uint32
	index     []int32
	key       wordKey
	from, to  []uint64
	memory    [2][]uint64
	count     []uint32 // of each part, of each digit; then where the next one goes
	parts     int
	bits      int // of a digit
	shift     int
	first     bool // keys are still to be made
	step      func(lo, hi int, count []uint32)

	tally, move, give func(lo, hi int, count []uint32) // the methods, made once
}

var radixes = sync.Pool{New: func() any {
	s := new(radix)
	s.tally, s.move, s.give = s.tallyPart, s.movePart, s.givePart
	return s
}}

// begin prepares for row r of t.
func (s *radix) begin(t *sortTask, r, parts int) {
	n := t.cols
	s.x, s.key, s.parts = t.x[r*n:][:n], t.key, parts
	if t.values != nil {
		s.values = t.values[r*n:][:n]
	}
	if t.index != nil {
		s.index = t.index[r*n:][:n]
	}
	if cap(s.memory[0]) < n {
		s.memory = [2][]uint64{make([]uint64, n), make([]uint64, n)}
	}
	s.from, s.to, s.count = s.memory[0][:n], s.memory[1][:n], s.count[:0]
}

// end gives the memory back.
func (s *radix) end() {
	s.x, s.values, s.index, s.from, s.to = nil, nil, nil, nil, nil
	radixes.Put(s)
}

// sort leaves the sorted keys in from.
func (s *radix) sort(p *workers.Pool) {
	s.bits = 8
	if len(s.x) >= sortWide {
		s.bits = 11
	}
	if n := s.parts << s.bits; cap(s.count) < n {
		s.count = make([]uint32, n)
	} else {
		s.count = s.count[:n]
	}
	s.first = true
	for s.shift = 32; s.shift < 64; s.shift += s.bits {
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

func (s *radix) each(p *workers.Pool) {
	if s.parts == 1 {
		s.Part(0)
		return
	}
	p.Do(s.parts, s)
}

// Part does the present step for one part of the row.
func (s *radix) Part(i int) {
	n := len(s.x)
	at := func(i int) int { return int(uint64(i) * uint64(n) / uint64(s.parts)) }
	var count []uint32
	if len(s.count) > 0 {
		digits := len(s.count) / s.parts
		count = s.count[i*digits:][:digits]
	}
	s.step(at(i), at(i+1), count)
}

// tallyPart counts the digits of the keys from lo to hi, after making them if need be.
func (s *radix) tallyPart(lo, hi int, count []uint32) {
	clear(count)
	keys := s.from[lo:hi]
	if s.first {
		s.key.fill(keys, s.x[lo:hi], lo)
	}
	mask := uint64(len(count) - 1)
	for _, k := range keys {
		count[k>>(s.shift&63)&mask]++
	}
}

// places turns the counts into the places where keys go. It reports false if all have
// the same digit.
func (s *radix) places() bool {
	digits := len(s.count) / s.parts
	sum := uint32(0)
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
func (s *radix) movePart(lo, hi int, count []uint32) {
	mask, to := uint64(len(count)-1), s.to
	for _, k := range s.from[lo:hi] {
		d := k >> (s.shift & 63) & mask
		at := count[d]
		count[d] = at + 1
		to[at] = k
	}
}

// givePart writes the results from lo to hi.
func (s *radix) givePart(lo, hi int, _ []uint32) {
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
			values[i] = uint32(k>>32) ^ s.key.flip
		}
		return
	}
	for i, k := range keys {
		values[i] = s.x[uint32(k)] // the zeros and NaNs have one key each
	}
}
