package simd

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/internal/ir"
)

//go:generate go -C _asm run ./elementwise ..

// MapFunc applies an elementwise kernel: dst[i] = f(x[i], y[i], z[i]) for each i < n, with scalar
// parameters p. Elements have 32 bits: the pointers may also point to int32, uint32 or Bool (0 or 1).
// Unused arguments may be nil. dst may be one of the operands, but must not overlap one partially.
// n may be 0.
//
// The runtime cannot preempt a kernel in assembly, so callers with more than about 65,536
// elements must call it several times.
type MapFunc func(dst, x, y, z *float32, n int, p *float32)

// Map returns the kernel with the given name at the active level, or nil if it does not exist. The
// names are
//
//	relu, add, clip …         an elementwise operation of package op
//	code.mul, code.expm1 …    one code of an expression
//	code.sub.vs, code.sub.sv  a binary code of x and p[0], of p[0] and x
//	i32.add, u32.less …       an operation over integers
//	i32.add.vs, u32.sub.sv …  an operation over integers x and p[0], p[0] and x
//	cast.f32.i32 …            a conversion; elements of f16 and bf16 have 16 bits
//	add.f16, code.sqrt.bf16 … the kernel of the name before .f16 or .bf16, with results
//	                          rounded to that type and stored as float32
//	copy, fill                x, and p[0]
func Map(name string) MapFunc { return MapAt(active, name) }

// A MapRowsFunc is a kernel for rows of n elements: it sets each row of dst from a row of x and a row of y, or one element of y if it
// is for a kernel of a vector and a scalar. The rows are ds, xs and ys bytes apart. n and rows are positive.
type MapRowsFunc func(dst, x, y *float32, n, rows, ds, xs, ys int)

// A ColumnFold combines each of n elements of dst, at least 1, with the elements of the same column in
// rows rows of x, which are stride elements apart.
type ColumnFold func(dst, x *uint32, n, rows, stride int)

// MapAt returns the kernel with the given name at a level that the machine supports, or nil if it does
// not exist. If the level has no kernel of its own, it returns the kernel of Generic.
func MapAt(level Level, name string) MapFunc {
	if f := mapLevel(level, name); f != nil {
		return f
	}
	return mapGeneric(name)
}

// LevelMap returns the kernel that [Map] returns, or nil if that is a loop in plain Go. A page that has
// another way to compute the operation loads fewer loops with it.
func LevelMap(name string) MapFunc { return mapLevel(active, name) }

// VectorMap returns the kernel that [Map] returns, or nil if that is a loop in plain Go, except loops of
// copies, shifts, conversions, roundings and steps of integer reductions. A page that calls VectorMap and
// not Map does not load the loops in plain Go, which only browsers without SIMD128 need.
func VectorMap(name string) MapFunc {
	if f := LevelMap(name); f != nil {
		return f
	}
	return mapBasic(name)
}

// Stream returns the kernel of [Map] with non-temporal stores at the active level, or nil if the level
// has none. The kernel does not load dst into the caches, so the next reader of dst must read memory.
// Use it for results that are larger than the caches and are not operands, and measure. Its stores are
// ordered before later stores only after [StreamFence].
func Stream(name string) MapFunc { return StreamAt(active, name) }

// StreamFence ends a sequence of calls of [Stream] kernels: their stores become visible before the
// caller's later stores.
func StreamFence() { streamFence() }

// StreamAt is [Stream] at a level that the machine supports.
func StreamAt(level Level, name string) MapFunc { return streamLevel(level, name) }

// MapNames returns the names that [Map] knows, sorted.
func MapNames() []string { return append([]string(nil), mapNames[:]...) }

// mapChunk is the largest number of elements of one call of a kernel, during which the
// runtime cannot preempt the thread.
const mapChunk = 1 << 16

// apply runs a kernel over slices of the same length, and uses the first arity operands. The slices
// do not escape although f is an unknown function, because no kernel keeps its arguments. It panics
// if the lengths differ, as an index out of range does.
func apply(f MapFunc, dst, x, y, z []float32, arity int, p *float32) {
	n := len(dst)
	if len(x) != n || arity > 1 && len(y) != n || arity > 2 && len(z) != n {
		panic("simd: the operands and dst must have the same length")
	}
	d, a, b, c := hide(dst), hide(x), hide(y), hide(z)
	q := (*float32)(noescape(unsafe.Pointer(p)))
	for n > mapChunk {
		f(d, a, b, c, mapChunk, q)
		d, a, b, c, n = after(d, mapChunk), after(a, mapChunk), after(b, mapChunk), after(c, mapChunk), n-mapChunk
	}
	f(d, a, b, c, n, q)
}

// noescape hides a pointer from escape analysis.
func noescape(p unsafe.Pointer) unsafe.Pointer {
	u := uintptr(p)
	return *(*unsafe.Pointer)(unsafe.Pointer(&u))
}

// trig runs a kernel that is accurate for |x| <= ir.TrigLimit, and replaces the results of
// other elements by f in float64. An element's result does not depend on its neighbours.
func trig(kernel MapFunc, level Level, f func(float64) float64, dst, x *float32, n int) {
	trigWithin(maxAbsOf(level), kernel, f, dst, x, n)
}

// trigWithin is trig with the kernel that returns the largest magnitude.
func trigWithin(largest func(x, y *float32, n int) float32, kernel MapFunc, f func(float64) float64, dst, x *float32, n int) {
	for n > 0 {
		m := min(n, mapBlock)
		if largest(x, nil, m) <= ir.TrigLimit {
			kernel(dst, x, nil, nil, m, nil)
		} else {
			trigFar(kernel, f, dst, x, m)
		}
		if n -= m; n > 0 {
			dst, x = after(dst, m), after(x, m)
		}
	}
}

// mapBlock is the number of elements that are tested together for the range of a kernel.
const mapBlock = 512

func trigFar(kernel MapFunc, f func(float64) float64, dst, x *float32, n int) {
	var kept [mapBlock]float32 // dst may be x
	copy(kept[:n], unsafe.Slice(x, n))
	kernel(dst, x, nil, nil, n, nil)
	d := unsafe.Slice(dst, n)
	for i, v := range kept[:n] {
		if !(v <= ir.TrigLimit && v >= -ir.TrigLimit) {
			d[i] = float32(f(float64(v)))
		}
	}
}

// after returns the address of the element n places after p, or nil if p is nil.
func after(p *float32, n int) *float32 {
	if p == nil {
		return nil
	}
	return (*float32)(unsafe.Add(unsafe.Pointer(p), 4*n))
}

// truth returns the stored form of a Bool.
func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// fma returns a*b + c, rounded once. The product is exact in float64. The sum is
// rounded to float64 and then to float32. If the first rounding gives a tie, the
// error of the sum decides to which side it is rounded.
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if math.Float64bits(s)&(1<<29-1) == 1<<28 || math.Abs(s) < 0x1p-126 {
		return fmaTie(p, float64(c), s)
	}
	return float32(s)
}

// fmaTie moves s by the error of p + c, so that s is a tie only if the exact sum
// is a tie.
func fmaTie(p, c, s float64) float32 {
	t := s - p
	e := (p - (s - t)) + (c - t)
	switch {
	case s-s != 0 || e == 0:
	case (e > 0) == (s > 0):
		s = math.Float64frombits(math.Float64bits(s) | 1)
	default:
		s = math.Float64frombits((math.Float64bits(s) - 1) | 1)
	}
	return float32(s)
}

// toI32 converts v to an integer: it truncates and saturates, and returns 0 for NaN.
func toI32(v float32) int32 {
	switch {
	case v != v:
		return 0
	case v >= 1<<31:
		return math.MaxInt32
	case v < -1<<31:
		return math.MinInt32
	}
	return int32(v)
}

// toU32 converts v to an integer: it truncates and saturates, and returns 0 for NaN.
func toU32(v float32) uint32 {
	switch {
	case !(v > 0):
		return 0
	case v >= 1<<32:
		return math.MaxUint32
	}
	return uint32(int64(v))
}
