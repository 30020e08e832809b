//go:build amd64 && !noasm

package simd

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/internal/workers"
)

// sortKernels are the kernels that sort keys with vectors, 8 keys at a time. n is a positive multiple
// of 8.
type sortKernels struct {
	flip      func(dst, src *uint32, n int, flip uint32)        // inverts bits
	floatKeys func(dst, src *uint32, n int, flip uint32) uint32 // computes wordKey.of; returns 0 only if no element is -0 or NaN
	floatBits func(dst, src *uint32, n int, flip uint32)        // computes wordKey.bits
	// partition moves n keys of src to the two ends of the free elements at dst: keys up to pivot to the
	// lower end, the others to the upper end. free is n or more. It returns the number of keys up to
	// pivot.
	partition func(dst, src *uint32, free, n int, pivot uint32) int
	// split is a partition for levels with compressions of vectors. It leaves the keys up to pivot, or with invert of ones the
	// others, at keep, which is at or before src, and the rest at move. It returns the number of keys at keep. n is any positive number.
	split func(keep, move, src *uint32, n int, pivot, invert uint32) int
	// inward divides sortGroup keys at group and groups-1 groups of the unread keys at from, in place, and sets group to one more group of
	// these. free is the number of free elements from low to from and behind the unread keys together, at least 2*sortGroup. It writes keys
	// up to pivot at low, and the others at the end of the free elements. It returns the number of keys at low, and the number of keys that
	// it read at from. It is nil for levels without compressions of vectors.
	inward func(low, from, group *uint32, unread, free, groups int, pivot uint32) (lows, read int)
	// divideWords and divideFloats are partitions that compute the keys of elements, as flip and floatKeys do. n and free are multiples of
	// 16. They exist for the levels with inward.
	divideWords  func(dst, src *uint32, free, n int, pivot, flip uint32) int
	divideFloats func(dst, src *uint32, free, n int, pivot, flip uint32) (lows int, special uint32)
	// sample sorts the keys of src at step, 3*step and so on to 63*step. It sets dst to the 16 that have even places in the order and the 16
	// that have odd ones. It exists for the levels with inward.
	sample  func(dst, src *uint32, step int)
	network [3]func(keys *uint32) // sorting networks of 32, 64 and 128 keys
	// masked has sorting networks of up to 64, 128, 192 and 256 keys, which set dst to the sorted keys of src. They exist for levels
	// with masks.
	masked [4]func(dst, src *uint32, n int)
	// count adds how often 8 values occur in src to counts. n is a positive multiple of 16. It is nil for levels without it.
	count func(counts, values, src *uint32, n int)
	base  int // keys of the largest network
}

var sortKernel = sortKernelsOf(active)

const (
	sortBase   = 128     // keys of the largest network without masks
	sortChunk  = 1 << 14 // elements of short rows whose keys are made at once
	sortGroup  = 128     // keys of a group of the kernels that divide keys in place
	sortSample = 32      // keys whose median divides the others
)

var greatestKeys = func() (k [32]uint32) {
	for i := range k {
		k[i] = 1<<32 - 1
	}
	return k
}()

// quick reports whether the rows are sorted by partitions, which need keys without columns.
func (t *sortTask) quick() bool { return t.index == nil && sortKernel != nil }

// keys sets dst to the keys of x. It reports whether some elements are -0 or NaN, whose bits the keys
// do not determine.
func (k wordKey) keys(dst, x []uint32) bool {
	n := len(x) &^ 7
	special := false
	for at := 0; at < n; at += sortCall {
		if m := min(n-at, sortCall); k.float {
			special = sortKernel.floatKeys(&dst[at], &x[at], m, k.flip) != 0 || special
		} else {
			sortKernel.flip(&dst[at], &x[at], m, k.flip)
		}
	}
	for i, b := range x[n:] {
		key := k.of(b)
		dst[n+i] = key
		special = special || k.float && k.bits(key) != b
	}
	return special
}

// restoreBits replaces the keys in x by the bits of elements.
func (k wordKey) restoreBits(x []uint32) {
	if !k.float && k.flip == 0 {
		return
	}
	n := len(x) &^ 7
	step := sortKernel.flip
	if k.float {
		step = sortKernel.floatBits
	}
	for at := 0; at < n; at += sortCall {
		step(&x[at], &x[at], min(n-at, sortCall), k.flip)
	}
	for i, key := range x[n:] {
		x[n+i] = k.bits(key)
	}
}

// quickRows sorts rows lo to hi.
func (t *sortTask) quickRows(lo, hi int) {
	for lo < hi && t.counted(lo) {
		lo++
	}
	s := quickSorts.Get().(*quickSort)
	step := max(1, sortChunk/t.cols)
	for ; lo < hi && !t.keysLater(); lo += step {
		n := min(step, hi-lo) * t.cols
		x, values := t.x[lo*t.cols:][:n], t.values[lo*t.cols:][:n]
		special := t.key.keys(values, x)
		for at := 0; at < n; at += t.cols {
			row := values[at:][:t.cols]
			s.sort(row, row, s.room(t.cols), sortDepth(t.cols))
		}
		t.key.restoreBits(values)
		for at := 0; special && at < n; at += t.cols {
			t.key.restore(values[at:][:t.cols], x[at:][:t.cols])
		}
	}
	for ; lo < hi; lo++ {
		s.begin(t, lo)
		n, special := s.divideElements()
		depth := sortDepth(t.cols)
		s.elements(s.values[:n], s.room(n), depth)
		s.elements(s.values[n:], s.room(t.cols-n), depth)
		s.done(special)
	}
	quickSorts.Put(s)
}

// keysLater reports whether the keys of a row are computed while the row is divided for the first time. The first cache does not hold such rows.
func (t *sortTask) keysLater() bool { return sortKernel.inward != nil && t.cols >= sortLimits.inward }

// begin prepares s for row r of t.
func (s *quickSort) begin(t *sortTask, r int) {
	n := t.cols
	s.key, s.x, s.values = t.key, t.x[r*n:][:n], t.values[r*n:][:n]
}

// done restores the bits of elements that are special, and forgets the row.
func (s *quickSort) done(special bool) {
	if special {
		s.key.restore(s.values, s.x)
	}
	s.x, s.values = nil, nil
}

// divideElements sets values to the keys of the row, divided by a pivot. It returns the number of keys up to the pivot, which come first, and whether some
// elements are -0 or NaN, whose bits the keys do not determine.
func (s *quickSort) divideElements() (lows int, special bool) {
	x, dst, k := s.x, s.values, s.key
	for i := range sortSample {
		s.base[i] = k.of(x[(2*i+1)*(len(x)/(2*sortSample))])
	}
	sortKernel.network[0](&s.base[0])
	pivot := s.base[sortSample/2]
	n, hi := len(x)&^15, len(x)
	for _, b := range x[n:] {
		key := k.of(b)
		special = special || k.float && k.bits(key) != b
		if key <= pivot {
			dst[lows] = key
			lows++
		} else {
			hi--
			dst[hi] = key
		}
	}
	for at := 0; at < n; at += sortCall {
		m := min(n-at, sortCall)
		if k.float {
			low, some := sortKernel.divideFloats(&dst[lows], &x[at], n-at, m, pivot, k.flip)
			lows, special = lows+low, special || some != 0
		} else {
			lows += sortKernel.divideWords(&dst[lows], &x[at], n-at, m, pivot, k.flip)
		}
	}
	return lows, special
}

// elements sorts keys, and replaces them by the bits of elements while the cache holds them. It uses to, which has the same length, as
// scratch memory.
func (s *quickSort) elements(keys, to []uint32, depth int) {
	for ; len(keys) >= sortLimits.inward && depth > 0 && sortKernel.inward != nil; depth-- {
		pivot, equal := s.pivot(keys)
		if equal {
			break
		}
		n := s.inward(keys, pivot)
		s.elements(keys[n:], to[:len(keys)-n], depth-1)
		keys = keys[:n]
	}
	s.sort(keys, keys, to[:len(keys)], depth)
	s.key.restoreBits(keys)
}

// sortDepth returns the depth of partitions of n keys from which slices.Sort sorts the rest, because the
// pivots were unfavourable.
func sortDepth(n int) int { return 2 * bits.Len(uint(n)) }

// A quickSort sorts one row with one thread, or with several threads that take one piece at a time.
type quickSort struct {
	base   [sortBase]uint32
	memory []uint32
	aside  [2][3 * sortGroup]uint32 // keys that make room for others while keys are divided in place

	key    wordKey
	x      []uint32
	values []uint32
	pieces [2][]quickPiece // the current pieces, and those after the next partitions
	last   bool            // Part sorts pieces; otherwise it partitions them
}

// A quickPiece is a run of the row that is still to be sorted. No key of a piece is greater than one of the next.
type quickPiece struct {
	lo, hi int
	moved  bool // its keys are in memory; otherwise they are in values
}

var quickSorts = sync.Pool{New: func() any { return new(quickSort) }}

// room returns memory for n keys.
func (s *quickSort) room(n int) []uint32 {
	if cap(s.memory) < n {
		s.memory = make([]uint32, n)
	}
	return s.memory[:n]
}

// sort sets dst, which is from or to, to the sorted keys of from. It uses from and to, which have the same
// length, as scratch memory.
func (s *quickSort) sort(dst, from, to []uint32, depth int) {
	for ; len(from) > sortKernel.base; depth-- {
		if depth == 0 {
			slices.Sort(from)
			copy(dst, from)
			return
		}
		pivot, equal := s.pivot(from)
		if equal && !slices.ContainsFunc(from, func(key uint32) bool { return key != pivot }) {
			copy(dst, from)
			return
		}
		low, high := s.divide(dst, from, to, pivot)
		if n := len(low.dst); n < len(dst) {
			s.sort(high.dst, high.from, high.to, depth-1)
			dst, from, to = low.dst, low.from, low.to
			continue
		}
		// The pivot is the greatest key. It may occur many times.
		dst, from, to = low.dst, low.from, low.to
		n := 0
		if pivot > 0 {
			low, _ = s.divide(dst, from, to, pivot-1)
			n = len(low.dst)
		}
		repeatAll(dst[n:], pivot)
		dst, from, to = low.dst[:n], low.from[:n], low.to[:n]
	}
	s.small(dst, from)
}

// small sets dst to the sorted keys of from, which are at most sortKernel.base.
func (s *quickSort) small(dst, from []uint32) {
	n := len(from)
	if n <= sortLimits.insert {
		copy(dst, from)
		for i := 1; i < n; i++ {
			for j := i; j > 0 && dst[j-1] > dst[j]; j-- {
				dst[j-1], dst[j] = dst[j], dst[j-1]
			}
		}
		return
	}
	if sortKernel.masked[0] != nil {
		sortKernel.masked[(n-1)/64](&dst[0], &from[0], n)
		return
	}
	size := bits.Len(uint(n-1) / 32)
	if size == 0 {
		*(*[32]uint32)(s.base[:]) = greatestKeys
	}
	copy(s.base[:], from)
	for i := n; size > 0 && i < 32<<size; i++ {
		s.base[i] = 1<<32 - 1
	}
	sortKernel.network[size](&s.base[0])
	copy(dst, s.base[:n])
}

// pivot returns the median of a sample of keys, and whether all keys of the sample are equal.
func (s *quickSort) pivot(keys []uint32) (pivot uint32, equal bool) {
	step := len(keys) / (2 * sortSample)
	if sortKernel.sample != nil {
		sortKernel.sample(&s.base[0], &keys[0], step)
		return s.base[sortSample/4], s.base[0] == s.base[sortSample-1]
	}
	for i := range sortSample {
		s.base[i] = keys[(2*i+1)*step]
	}
	sortKernel.network[0](&s.base[0])
	return s.base[sortSample/2], s.base[0] == s.base[sortSample-1]
}

// A keysPart is a part of the keys with its place in the result and its scratch memory, as in the parameters of sort.
type keysPart struct{ dst, from, to []uint32 }

// divide divides the keys of from by a pivot into those up to it and the others. The parameters are those of sort.
func (s *quickSort) divide(dst, from, to []uint32, pivot uint32) (low, high keysPart) {
	if sortKernel.split == nil {
		n := partition(to, from, pivot)
		return keysPart{dst[:n], to[:n], from[:n]}, keysPart{dst[n:], to[n:], from[n:]}
	}
	if sortKernel.inward != nil && len(from) >= sortLimits.inward {
		n := s.inward(from, pivot)
		low, high = keysPart{dst[:n], from[:n], to[:n]}, keysPart{dst[n:], from[n:], to[n:]}
		if &dst[0] == &from[0] {
			high.to = to[:len(from)-n] // both parts use the same scratch memory, which stays in the first-level cache
		}
		return low, high
	}
	// The lower keys get to dst, and so the memory behind them, in which the others are sorted, is free.
	var invert uint32
	if &dst[0] != &from[0] {
		invert = math.MaxUint32
	}
	kept, moved := 0, 0
	for at := 0; at < len(from); at += sortCall {
		m := min(len(from)-at, sortCall)
		n := sortKernel.split(&from[kept], &to[moved], &from[at], m, pivot, invert)
		kept, moved = kept+n, moved+m-n
	}
	if invert == 0 {
		return keysPart{dst[:kept], from[:kept], to[moved:]}, keysPart{dst[kept:], to[:moved], from[kept:]}
	}
	return keysPart{dst[:moved], to[:moved], from[kept:]}, keysPart{dst[moved:], from[:kept], to[moved:]}
}

// inward divides keys in place, and returns the number of keys up to pivot, which come first. There are at least 3*sortGroup keys.
func (s *quickSort) inward(keys []uint32, pivot uint32) int {
	aside, moved := &s.aside[0], &s.aside[1]
	free := copy(aside[:sortGroup], keys)
	free += copy(aside[free:], keys[len(keys)-sortGroup-len(keys)%sortGroup:])
	low, from := 0, sortGroup
	for unread := len(keys) - free; unread > 0; {
		n := min(unread, sortCall)
		lows, read := sortKernel.inward(&keys[low], &keys[from], &aside[0], unread, free, n/sortGroup, pivot)
		low, from, unread = low+lows, from+read, unread-n
	}
	n := sortKernel.split(&aside[0], &moved[0], &aside[0], free, pivot, 0)
	copy(keys[low:], aside[:n])
	copy(keys[low+n:], moved[:free-n])
	return low + n
}

// partition sets dst to the keys of src, keys up to pivot first, and returns the number of these.
func partition(dst, src []uint32, pivot uint32) int {
	n := len(src) &^ 7
	lo, hi := 0, len(src)
	for _, key := range src[n:] {
		if key <= pivot {
			dst[lo] = key
			lo++
		} else {
			hi--
			dst[hi] = key
		}
	}
	for at := 0; at < n; at += sortCall {
		lo += sortKernel.partition(&dst[lo], &src[at], n-at, min(n-at, sortCall), pivot)
	}
	return lo
}

// counted sorts row r by counting if it has few different elements. It reports whether it sorted the row.
func (t *sortTask) counted(r int) bool { return t.equals(r) || t.ranged(r) }

// ranged sorts row r by counting how often each integer occurs, if the range of the integers is at most
// a quarter of their number. It reports whether it sorted the row.
func (t *sortTask) ranged(r int) bool {
	n := t.cols
	if t.key.float || n < sortLimits.count || wordFold.fold == nil {
		return false
	}
	x := t.x[r*n:][:n]
	if t.spread(x) > min(n/4, sortLimits.values) {
		return false
	}
	least, most := wordRange(x, t.key.flip != 0 && t.key.flip != math.MaxUint32)
	values := int(most-least) + 1
	if values > min(n/4, sortLimits.values) {
		return false
	}
	s := quickSorts.Get().(*quickSort)
	defer quickSorts.Put(s)
	// Each value has four counters, so that the increment for an element does not wait for the increment
	// for an equal previous element.
	c := s.room(4 * values)
	clear(c)
	c0, c1, c2, c3 := c[:values], c[values:2*values], c[2*values:3*values], c[3*values:]
	for ; len(x) >= 4; x = x[4:] {
		c0[x[0]-least]++
		c1[x[1]-least]++
		c2[x[2]-least]++
		c3[x[3]-least]++
	}
	for _, v := range x {
		c0[v-least]++
	}
	dst := t.values[r*n:][:n]
	for i := range values {
		if t.key.of(least) > t.key.of(most) {
			i = values - 1 - i
		}
		v := least + uint32(i)
		k := int(c0[i] + c1[i] + c2[i] + c3[i])
		repeatAll(dst[:k], v)
		dst = dst[k:]
	}
	return true
}

// spread returns the number of integers in the range of a sample of x.
func (t *sortTask) spread(x []uint32) int {
	least, most := uint32(math.MaxUint32), uint32(0)
	for i := range equalSample {
		k := t.key.of(x[i*(len(x)/equalSample)])
		least, most = min(least, k), max(most, k)
	}
	return int(most-least) + 1
}

// wordRange returns the least and the greatest integer of x, which has at least one.
func wordRange(x []uint32, signed bool) (least, most uint32) {
	lower, upper, flip := FoldRows("u32.minimum"), FoldRows("u32.maximum"), uint32(0)
	if signed {
		lower, upper, flip = FoldRows("i32.minimum"), FoldRows("i32.maximum"), 1<<31
	}
	least, most = math.MaxUint32, 0
	for len(x) > 0 {
		n := min(len(x), sortCall)
		var low, high uint32
		lower(&low, &x[0], 1, n)
		upper(&high, &x[0], 1, n)
		least, most = min(least, low^flip), max(most, high^flip)
		x = x[n:]
	}
	return least ^ flip, most ^ flip
}

// quickSplit sorts row r by several threads.
func (t *sortTask) quickSplit(p *workers.Pool, r, threads int) {
	if t.counted(r) {
		return
	}
	s := quickSorts.Get().(*quickSort)
	n, special := t.cols, false
	s.begin(t, r)
	s.last = false
	s.room(n)
	if t.keysLater() {
		var lows int
		lows, special = s.divideElements()
		s.pieces[0] = append(s.pieces[0][:0], quickPiece{0, lows, false}, quickPiece{lows, n, false})
	} else {
		special = s.key.keys(s.values, s.x)
		s.pieces[0] = append(s.pieces[0][:0], quickPiece{0, n, false})
	}
	for len(s.pieces[0]) < 4*threads {
		s.pieces[1] = slices.Grow(s.pieces[1][:0], 2*len(s.pieces[0]))[:2*len(s.pieces[0])]
		p.Do(len(s.pieces[0]), s)
		s.pieces[0], s.pieces[1] = s.pieces[1], s.pieces[0]
	}
	s.last = true
	p.Do(len(s.pieces[0]), s)
	s.done(special)
	quickSorts.Put(s)
}

// Part partitions or sorts a piece.
func (s *quickSort) Part(i int) {
	own := quickSorts.Get().(*quickSort)
	defer quickSorts.Put(own)
	c := s.pieces[0][i]
	dst, from, to := s.values[c.lo:c.hi], s.values[c.lo:c.hi], s.memory[c.lo:c.hi]
	if c.moved {
		from, to = to, from
	}
	switch {
	case s.last && c.moved:
		own.sort(dst, from, to, sortDepth(len(dst)))
		s.key.restoreBits(dst)
	case s.last:
		own.key = s.key
		own.elements(dst, to, sortDepth(len(dst)))
	case len(from) <= sortKernel.base:
		s.pieces[1][2*i], s.pieces[1][2*i+1] = c, quickPiece{c.hi, c.hi, c.moved}
	default:
		pivot, _ := own.pivot(from)
		var n int
		moved := c.moved
		if sortKernel.inward != nil && len(from) >= sortLimits.inward {
			n = own.inward(from, pivot)
		} else {
			n, moved = partition(to, from, pivot), !moved
		}
		s.pieces[1][2*i] = quickPiece{c.lo, c.lo + n, moved}
		s.pieces[1][2*i+1] = quickPiece{c.lo + n, c.hi, moved}
	}
}
