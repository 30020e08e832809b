package cpu

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// An elementwise program reads runs of adjacent elements of a strided operand directly. Otherwise
// it copies the operand to a register of the lane, block by block.

const (
	// minRun is the length from which on a run is read directly. Shorter runs would make blocks so
	// short that calls dominate the time.
	minRun = 256
	// shortestRun replaces minRun in programs of up to shortBody operations, if all their strided
	// operands consist of runs.
	shortestRun, shortBody = 48, 2
)

// periodOf returns the number of elements that a layout repeats as a whole, or 0.
func periodOf(l *op.Layout) int {
	if l.Rank < 2 || l.F[0].Stride != 0 || l.Windowed() {
		return 0
	}
	return l.Size() / l.F[0].N
}

// readRuns makes the program read strided operands directly: each run of adjacent or equal elements
// becomes a segment. It does so if all strided operands consist of such runs and the body is short.
func (b *builder) readRuns(body int) {
	p := b.p
	for _, s := range p.strided {
		l := p.streams[s.stream].layout
		if l.Rank == 0 || l.Windowed() {
			return
		}
		f := l.F[l.Rank-1]
		if f.Stride != 0 && f.Stride != 1 || f.N < shortestRun || f.N < minRun && body > shortBody || body == 0 {
			return
		}
	}
	for _, b := range p.strided {
		s := &p.streams[b.stream]
		s.run, s.inner = true, s.layout.F[s.layout.Rank-1].Stride
	}
	p.runs, p.strided = len(p.strided), nil
}

// neighbours returns the number of elements from pos on that are adjacent in memory, and the
// position of the first. n is 0 if the element at pos is not in memory.
func neighbours(l *op.Layout, pos int) (n, at int) {
	at, in := l.At(pos)
	if !in {
		return 0, 0
	}
	if l.Rank == 0 {
		return 1, at
	}
	f := &l.F[l.Rank-1]
	if f.Stride != 1 {
		return 1, at
	}
	return f.Hi - pos%f.N, at
}

// An odometer is a position in a layout: the digits of all factors but the last.
type odometer struct {
	l       *op.Layout
	digits  [op.MaxRank]int
	off     int // offset of digit Lo of the last factor
	outside int // number of factors with a digit outside of their window
}

// start moves to element pos and returns the digit of the last factor.
func (o *odometer) start(l *op.Layout, pos int) int {
	o.l, o.off, o.outside = l, l.Off, 0
	last := 0
	for k := int(l.Rank) - 1; k >= 0; k-- {
		f := &l.F[k]
		d := pos % f.N
		pos /= f.N
		if k == int(l.Rank)-1 {
			last = d
			continue
		}
		o.digits[k] = d
		o.off += (d - f.Lo) * f.Stride
		if d < f.Lo || d >= f.Hi {
			o.outside++
		}
	}
	return last
}

// next moves to the next run of the last factor.
func (o *odometer) next() {
	for k := int(o.l.Rank) - 2; k >= 0; k-- {
		f := &o.l.F[k]
		was := o.digits[k] < f.Lo || o.digits[k] >= f.Hi
		o.digits[k]++
		o.off += f.Stride
		if o.digits[k] == f.N {
			o.digits[k] = 0
			o.off -= f.N * f.Stride
		}
		if is := o.digits[k] < f.Lo || o.digits[k] >= f.Hi; is != was {
			if is {
				o.outside++
			} else {
				o.outside--
			}
		}
		if o.digits[k] != 0 {
			return
		}
	}
}

// runs returns the number of successive runs of the last factor, at most most, whose distance is
// the stride of the previous factor.
func (o *odometer) runs(most int) int {
	k := o.l.Rank - 2
	f := &o.l.F[k]
	if f.Lo != 0 || f.Hi != f.N {
		return 0
	}
	return min(f.N-o.digits[k], most)
}

// inside returns the number of successive runs within the window of the previous factor, at most most.
func (o *odometer) inside(most int) int {
	if o.l.Rank < 2 {
		return 0
	}
	k := o.l.Rank - 2
	return min(o.l.F[k].Hi-o.digits[k], most)
}

// skip advances by n runs; runs also allows one more.
func (o *odometer) skip(n int) {
	k := o.l.Rank - 2
	o.digits[k] += n
	o.off += n * o.l.F[k].Stride
}

// repeated returns the number of successive runs that a broadcast repeats: the stride of the factor before the last one is 0.
// It counts a run once and includes all its repetitions; with them there are at most most runs. It returns 0 for other layouts.
func (o *odometer) repeated(most int) int {
	k := int(o.l.Rank) - 3
	if k < 0 || o.digits[k+1] != 0 {
		return 0
	}
	f, g := &o.l.F[k], &o.l.F[k+1]
	if g.Stride != 0 || g.Lo != 0 || g.Hi != g.N || f.Lo != 0 || f.Hi != f.N {
		return 0
	}
	return min(f.N-o.digits[k], most/g.N)
}

// skipRepeated moves to the last repetition of the last of n runs that a broadcast repeats.
func (o *odometer) skipRepeated(n int) {
	k := o.l.Rank - 3
	o.digits[k] += n - 1
	o.off += (n - 1) * o.l.F[k].Stride
	o.digits[k+1] = o.l.F[k+1].N - 1
}

// A run is a position in a layout without fill: elements first to end are a stride apart in memory,
// and element first is at off.
type run struct {
	off, first, end int
	n               int // number of elements in a run
	step, more      int // distance to the next run, and number of runs that follow at this distance
	o               odometer
}

// seek moves to the run with element pos, which is not in the current run.
func (r *run) seek(l *op.Layout, pos int) {
	if pos == r.end && r.more > 0 {
		r.off += r.step
		r.more--
		r.first, r.end = pos, pos+r.n
		return
	}
	r.first = pos - r.o.start(l, pos)
	r.off, r.n, r.more = r.o.off, l.F[l.Rank-1].N, 0
	r.end = r.first + r.n
	if l.Rank > 1 {
		r.step, r.more = l.F[l.Rank-2].Stride, r.o.runs(math.MaxInt)-1
	}
}

// bring copies elements pos to pos+n of the stream to dst: see the function bring.
func (s *stream) bring(dst, base unsafe.Pointer, pos, n int, past bool) {
	if k := s.times; k > 1 && pos%k == 0 && n%k == 0 {
		bring(dst, base, s.wide, pos/k, n/k, k*s.size, past)
		return
	}
	bring(dst, base, s.layout, pos, n, s.size, past)
}

// bring copies elements pos to pos+n of a layout over the memory at base to dst. Elements have
// eight, four, two or one bytes. With past, it uses non-temporal stores where it can; the caller then calls [simd.StreamFence].
func bring(dst, base unsafe.Pointer, l *op.Layout, pos, n, size int, past bool) {
	if n == 0 {
		return
	}
	have := n
	if f := &l.F[0]; l.Rank > 1 && f.Stride == 0 && !l.Windowed() {
		have = min(n, l.Size()/f.N) // the other elements repeat these
	}
	t := permutationOfSize(l, size)
	for at := 0; at < have; {
		k := have - at
		if t.unit > 0 {
			if ahead := (pos + at) % t.unit; ahead > 0 {
				k = min(k, t.unit-ahead)
			} else if k >= 2*t.unit { // a single column is not transposed
				k -= k % t.unit
				t.tiles(unsafe.Add(dst, at*size), base, l, pos+at, k, size)
				at += k
				continue
			}
		}
		switch to := unsafe.Add(dst, at*size); size {
		case 1:
			fetch(unsafe.Slice((*uint8)(to), k), (*uint8)(base), l, pos+at, past)
		case 2:
			fetch(unsafe.Slice((*uint16)(to), k), (*uint16)(base), l, pos+at, past)
		case 8:
			fetch(unsafe.Slice((*uint64)(to), k), (*uint64)(base), l, pos+at, past)
		default:
			fetch(unsafe.Slice((*uint32)(to), k), (*uint32)(base), l, pos+at, past)
		}
		at += k
	}
	to := unsafe.Slice((*byte)(dst), n*size)
	for have *= size; have < len(to); have *= 2 {
		copy(to[have:], to[:have])
	}
}

// fetch is bring by runs of the last factor.
func fetch[T uint8 | uint16 | uint32 | uint64](dst []T, base *T, l *op.Layout, pos int, past bool) {
	if l.Rank == 0 {
		dst[0] = *element(base, l.Off)
		return
	}
	fill := T(l.Fill)
	var o odometer
	d := o.start(l, pos)
	f := l.F[l.Rank-1]
	many := l.Rank > 1 && f.Lo == 0 && f.Hi == f.N && (f.Stride == 1 && simd.HasRows || f.N <= shortRun || f.Stride == 0 || l.F[l.Rank-2].Stride == 0)
	for len(dst) > 0 {
		n := 0
		if d == 0 && o.outside == 0 {
			if many {
				n = wholeRuns(dst, base, l, &o, past)
			} else if f.Stride == 1 && (f.Lo > 0 || f.Hi < f.N) {
				n = paddedRuns(dst, base, l, &o)
			}
		}
		if n == 0 {
			n = min(f.N-d, len(dst))
			if lo, hi := max(f.Lo-d, 0), min(f.Hi-d, n); o.outside > 0 || hi <= lo {
				repeat(dst[:n], fill)
			} else {
				repeat(dst[:lo], fill)
				repeat(dst[hi:n], fill)
				copyStrided(dst[lo:hi], element(base, o.off+(d+lo-f.Lo)*f.Stride), f.Stride)
			}
		}
		if dst, d = dst[n:], 0; len(dst) > 0 {
			o.next()
		}
	}
}

// wholeRuns copies several runs of the last factor, which has no window, and moves o to the last of them. It returns the
// number of elements, or 0 if one call cannot copy several runs.
func wholeRuns[T uint8 | uint16 | uint32 | uint64](dst []T, base *T, l *op.Layout, o *odometer, past bool) int {
	f, bytes := l.F[l.Rank-1], int(unsafe.Sizeof(*base))
	if n := o.repeated(len(dst) / f.N); n > 0 {
		size, step := l.F[l.Rank-2].N*f.N, l.F[l.Rank-3].Stride
		if times := size / f.N; f.Stride == 1 && simd.HasRows && f.N > shortRun/2 && times < n {
			for i := range times { // a repetition of all runs at a time
				copyRows(unsafe.Pointer(&dst[i*f.N]), unsafe.Pointer(element(base, o.off)), f.N*bytes, size*bytes, step*bytes, n, past)
			}
		} else {
			for i := range n {
				runs(dst[i*size:][:size], element(base, o.off+i*step), f.N, f.Stride, 0, past)
			}
		}
		o.skipRepeated(n)
		return n * size
	}
	n := o.runs(len(dst) / f.N)
	if n <= 1 {
		return 0
	}
	runs(dst[:n*f.N], element(base, o.off), f.N, f.Stride, l.F[l.Rank-2].Stride, past)
	o.skip(n - 1)
	return n * f.N
}

// paddedRuns is wholeRuns for a last factor with a window on adjacent elements.
func paddedRuns[T uint8 | uint16 | uint32 | uint64](dst []T, base *T, l *op.Layout, o *odometer) int {
	f := &l.F[l.Rank-1]
	n := o.inside(len(dst) / f.N)
	if n <= 1 {
		return 0
	}
	padRuns(dst[:n*f.N], element(base, o.off), f, l.F[l.Rank-2].Stride, T(l.Fill))
	o.skip(n - 1)
	return n * f.N
}

// padRuns copies adjacent elements to the window of each run of f in dst, and sets the others to fill. step is the distance
// between runs in src.
func padRuns[T uint8 | uint16 | uint32 | uint64](dst []T, src *T, f *op.Factor, step int, fill T) {
	size := int(unsafe.Sizeof(fill))
	copyRows(unsafe.Pointer(&dst[f.Lo]), unsafe.Pointer(src), (f.Hi-f.Lo)*size, f.N*size, step*size, len(dst)/f.N, false)
	for ; len(dst) >= f.N; dst = dst[f.N:] {
		for i := range dst[:f.Lo] {
			dst[i] = fill
		}
		for i := f.Hi; i < f.N; i++ {
			dst[i] = fill
		}
	}
}

// shortRun is the length up to which many runs are copied in one loop.
const shortRun = 16

// runs copies runs of n elements with the given stride to dst. step is the distance between runs.
func runs[T uint8 | uint16 | uint32 | uint64](dst []T, src *T, n, stride, step int, past bool) {
	switch size := int(unsafe.Sizeof(*src)); {
	case stride == 1 && n > 2 && step != 0 && simd.HasRows:
		copyRows(unsafe.Pointer(&dst[0]), unsafe.Pointer(src), n*size, n*size, step*size, len(dst)/n, past)
		return
	case n == 2:
		for i := 0; i+1 < len(dst); i += 2 {
			dst[i], dst[i+1] = *element(src, i/2*step), *element(src, i/2*step+stride)
		}
		return
	case step == 0:
		copyStrided(dst[:n], src, stride)
		for have := n; have < len(dst); have *= 2 {
			copy(dst[have:], dst[:have])
		}
		return
	case stride == 0:
		if d, ok := any(dst).([]uint32); ok {
			simd.Repeat(&d[0], (*uint32)(unsafe.Pointer(src)), n, step, len(d)/n)
			return
		}
		for at := 0; len(dst) >= n; at, dst = at+step, dst[n:] {
			repeat(dst[:n], *element(src, at))
		}
		return
	}
	for at := 0; len(dst) >= n; at, dst = at+step, dst[n:] {
		for i := range dst[:n] {
			dst[i] = *element(src, at+i*stride)
		}
	}
}

// copyRows copies rows of n bytes, which are ss bytes apart, to rows ds bytes apart.
//
//go:noinline
func copyRows(dst, src unsafe.Pointer, n, ds, ss, count int, past bool) {
	if (n|ds|ss)%4 == 0 && simd.CopyRows((*uint32)(dst), (*uint32)(src), n/4, ds/4, ss/4, count, past) {
		return
	}
	for i := range count {
		copy(unsafe.Slice((*byte)(unsafe.Add(dst, i*ds)), n), unsafe.Slice((*byte)(unsafe.Add(src, i*ss)), n))
	}
}

// element returns the address of element i.
func element[T any](base *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(base), i*int(unsafe.Sizeof(*base))))
}

// copyStrided copies elements with the given stride to dst, which must not be empty.
func copyStrided[T uint8 | uint16 | uint32 | uint64](dst []T, src *T, stride int) {
	switch stride {
	case 0:
		repeat(dst, *src)
	case 1:
		copy(dst, unsafe.Slice(src, len(dst)))
	default:
		at := 0
		for ; len(dst) >= 4; dst = dst[4:] {
			dst[0], dst[1], dst[2], dst[3] = *element(src, at), *element(src, at+stride), *element(src, at+2*stride), *element(src, at+3*stride)
			at += 4 * stride
		}
		for i := range dst {
			dst[i] = *element(src, at+i*stride)
		}
	}
}

// repeat sets all elements of dst to v.
func repeat[T uint8 | uint16 | uint32 | uint64](dst []T, v T) {
	if d, ok := any(dst).([]uint32); ok && len(d) >= 8 {
		w := uint32(v)
		simd.Repeat(&d[0], &w, len(d), 0, 1)
		return
	}
	for i := range dst {
		dst[i] = v
	}
}
