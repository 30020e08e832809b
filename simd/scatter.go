package simd

import (
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/workers"
	"github.com/rayo-go/rayo/op"
)

// scatterLimits are the times of one thread in nanoseconds, and limits in columns, measured on 2 cores of an AMD
// EPYC with AVX2, 2026-11-28.
var scatterLimits = struct {
	line, short, lanes int
	rowNS, ns          float64
}{
	rowNS: 2,   // for a row
	ns:    0.3, // for an element
	line:  64,  // columns for each thread, at least
	short: 8,   // columns from which on rows are divided among threads
	lanes: 16,  // columns from which on the call of a kernel is faster than a loop
}

// Scatter combines rows of V with rows of Dst. Dst is [Outer Extent Inner], and V is [Outer
// len(IDs) Inner]. In each of the outer parts, row i of V is combined by Reduce with row IDs[i]
// of Dst. Negative ids count from the end. Rows of V whose id is out of range are dropped. Rows
// of V are combined in their order, whatever the number of threads. Elements of 16 bits can
// only be set. The used parts of Dst, V and IDs must not overlap.
type Scatter[T uint8 | uint16 | uint32 | int32 | float32] struct {
	Dst, V               []T
	IDs                  []int32
	Outer, Extent, Inner int
	Reduce               op.ScatterReduce

	parts int
	by    scatterSplit
	line  MapFunc // combines parts of rows; nil if there is no kernel
}

// scatterSplit says which dimension is divided among threads.
type scatterSplit uint8

const (
	scatterOuter scatterSplit = iota
	scatterColumns
	scatterRows
)

const (
	scatterParts  = 32  // maximum number of parts whose ids are counted
	scatterSample = 256 // maximum number of counted ids for each part: the counts of random ids then differ by less than a quarter
	scatterLeast  = 32  // least number of counted ids for each part
)

// lineKernel returns the name of the elementwise kernel that combines elements of type T, or "" if a loop does. The minimum
// and the maximum of floats differ from the kernels in the sign of 0.
func lineKernel[T any](r op.ScatterReduce) string {
	names := map[op.ScatterReduce]string{op.ScatterAdd: "add", op.ScatterMul: "mul", op.ScatterMin: "minimum", op.ScatterMax: "maximum"}
	switch any(*new(T)).(type) {
	case int32:
		return "i32." + names[r]
	case uint32:
		return "u32." + names[r]
	case float32:
		if r == op.ScatterAdd || r == op.ScatterMul {
			return names[r]
		}
	}
	return ""
}

// Run scatters with the threads of p; with a nil Pool it uses only the calling thread. It panics
// if a slice is too short.
func (s *Scatter[T]) Run(p *workers.Pool) {
	n, m := area(s.Outer*s.Extent, s.Inner), area(s.Outer*len(s.IDs), s.Inner)
	if len(s.Dst) < n || len(s.V) < m {
		panic(fmt.Sprintf("simd: Scatter of %d rows into %d times %d rows of %d: Dst and V have lengths %d and %d", len(s.IDs), s.Outer, s.Extent, s.Inner, len(s.Dst), len(s.V)))
	}
	if n == 0 || m == 0 {
		return
	}
	s.line = nil
	if s.Inner >= scatterLimits.lanes && active != SIMD128 { // a call takes as long as a thousand elements there
		s.line = LevelMap(lineKernel[T](s.Reduce))
	}
	s.parts = 1
	if p.Worth(float64(s.Outer*len(s.IDs))*scatterLimits.rowNS + float64(m)*scatterLimits.ns) {
		s.parts = p.Threads()
	}
	switch {
	case s.Outer >= s.parts:
		s.by = scatterOuter
	case s.Inner >= scatterLimits.line*s.parts && !s.even():
		s.by = scatterColumns
	case s.Inner < scatterLimits.short: // each thread would look at all ids, and mispredict whether a row is its own
		s.by, s.parts = scatterOuter, 1
	default:
		s.by = scatterRows
	}
	p.Do(s.parts, s)
}

// even reports whether about as many ids are in each part of the rows, by a sample of the ids. Threads with rows of their own read whole
// rows of V and keep their rows of Dst in their caches; threads with columns always have the same work.
func (s *Scatter[T]) even() bool {
	var counts [scatterParts]int
	n := min(len(s.IDs), scatterSample*s.parts)
	if s.parts > len(counts) || n < scatterLeast*s.parts {
		return false
	}
	valid := 0
	for i := range n {
		k := i
		if n < len(s.IDs) { // ids may repeat with a period, so the positions must have none
			k = int(uint64(uint32(i)*0x9e3779b1) * uint64(len(s.IDs)) >> 32)
		}
		at := int(s.IDs[k])
		if at < 0 {
			at += s.Extent
		}
		if at >= 0 && at < s.Extent {
			counts[int(int64(at)*int64(s.parts)/int64(s.Extent))]++
			valid++
		}
	}
	return valid < scatterLeast*s.parts || slices.Max(counts[:s.parts])*s.parts <= valid+valid/4
}

// Part computes part k.
func (s *Scatter[T]) Part(k int) {
	at := func(n, k int) int { return int(int64(n) * int64(k) / int64(s.parts)) }
	cut := func(n int) (int, int) { return at(n, k), at(n, k+1) }
	first, end := 0, s.Outer
	rows, columns := [2]int{0, s.Extent}, [2]int{0, s.Inner}
	switch s.by {
	case scatterOuter:
		first, end = cut(s.Outer)
	case scatterColumns:
		columns[0], columns[1] = cut(s.Inner)
	case scatterRows:
		rows[0], rows[1] = cut(s.Extent)
	}
	for o := first; o < end; o++ {
		dst, v := s.Dst[o*s.Extent*s.Inner:][:s.Extent*s.Inner], s.V[o*len(s.IDs)*s.Inner:][:len(s.IDs)*s.Inner]
		if s.Inner == 1 {
			s.elements(dst, v, rows[0], rows[1])
		} else {
			s.lines(dst, v, rows, columns)
		}
	}
}

// elements scatters into the rows from lo to hi-1, if a row is one element.
func (s *Scatter[T]) elements(dst, v []T, lo, hi int) {
	extent := len(dst)
	dst = dst[lo:hi]
	v = v[:len(s.IDs)]
	if s.Reduce == op.ScatterSet {
		setElements(dst, v, s.IDs, extent, lo)
		return
	}
	for i, id := range s.IDs {
		at := int(id)
		if at < 0 {
			at += extent
		}
		if at -= lo; uint(at) >= uint(len(dst)) {
			continue
		}
		switch s.Reduce {
		case op.ScatterAdd:
			dst[at] += v[i]
		case op.ScatterMul:
			dst[at] *= v[i]
		case op.ScatterMin:
			dst[at] = min(dst[at], v[i])
		case op.ScatterMax:
			dst[at] = max(dst[at], v[i])
		}
	}
}

// setElements sets elements of dst, which begins at row lo. For an id without a row in dst it stores the
// first element again: a branch would often be mispredicted, because Compress drops ids at random. The
// two if statements with one assignment each compile to conditional moves.
func setElements[T uint8 | uint16 | uint32 | int32 | float32](dst, v []T, ids []int32, extent, lo int) {
	if len(dst) == 0 {
		return
	}
	first := dst[0]
	for i, id := range ids {
		at := int(id)
		if at < 0 {
			at += extent
		}
		at -= lo
		given, to, e := v[i], 0, first
		if uint(at) < uint(len(dst)) {
			to = at
		}
		if uint(at) < uint(len(dst)) {
			e = given
		}
		dst[to] = e
		if to == 0 {
			first = e
		}
	}
}

// lines scatters into the given columns of the rows from rows[0] to rows[1]-1.
func (s *Scatter[T]) lines(dst, v []T, rows, columns [2]int) {
	n := columns[1] - columns[0]
	for i, id := range s.IDs {
		at := int(id)
		if at < 0 {
			at += s.Extent
		}
		if at >= rows[0] && at < rows[1] {
			s.combine(dst[at*s.Inner+columns[0]:][:n], v[i*s.Inner+columns[0]:][:n])
		}
	}
}

// combine combines v with a part of one row of Dst.
func (s *Scatter[T]) combine(dst, v []T) {
	for s.line != nil && len(dst) > 0 {
		n := min(len(dst), mapChunk)
		d := (*float32)(unsafe.Pointer(&dst[0]))
		s.line(d, d, (*float32)(unsafe.Pointer(&v[0])), nil, n, nil)
		dst, v = dst[n:], v[n:]
	}
	v = v[:len(dst)]
	switch s.Reduce {
	case op.ScatterSet:
		copy(dst, v)
	case op.ScatterAdd:
		for i, w := range v {
			dst[i] += w
		}
	case op.ScatterMul:
		for i, w := range v {
			dst[i] *= w
		}
	case op.ScatterMin:
		for i, w := range v {
			dst[i] = min(dst[i], w)
		}
	case op.ScatterMax:
		for i, w := range v {
			dst[i] = max(dst[i], w)
		}
	}
}
