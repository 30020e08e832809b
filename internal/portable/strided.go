//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Reads reports whether portable kernels can read operand at of operation o, of shape s, in layout
// l: elementwise programs read any layout, and reductions and scans read columns. The reads functions of
// families have the rules of other operations.
func Reads(o *op.Operation, at int, s op.Shape, l *op.Layout) bool {
	if f := familyOf(o); f != nil && f.reads != nil {
		return f.reads(at, s, l)
	}
	return o.Class() == op.Elementwise || o.ReadsColumns(s, l) || scansColumns(o, s, l)
}

// neighbours reports whether consecutive elements are adjacent in memory or the same element.
func neighbours(l *op.Layout) bool {
	fs := l.Factors()
	if len(fs) == 0 {
		return true
	}
	n := fs[len(fs)-1].Stride
	return -1 <= n && n <= 1
}

// Writes reports whether portable kernels can write the result of operation o, of shape s, in
// layout l. Each element of the memory must belong to the layout.
func Writes(o *op.Operation, s op.Shape, l *op.Layout) bool {
	f := familyOf(o)
	return f != nil && f.writes != nil && f.writes(s, l) || scansColumns(o, s, l)
}

// checkLayout returns an error if the layout of a strided operand does not describe n elements.
func checkLayout(in Operand, n int) error {
	if in.Layout == nil {
		return unsupported("a strided operand has no layout")
	}
	first, end := in.Layout.Bounds()
	if in.Layout.Size() != n || first < 0 || end > in.N || in.N > maxElements {
		return unsupported("the layout %v of an operand of %d elements does not describe %d elements", in.Layout, in.N, n)
	}
	return nil
}

// A walk computes the positions of the elements of a layout. Its extents and strides are constants
// of the kernel, so that compilers replace divisions by multiplications.
type walk struct {
	off  int
	fill bool // some elements of the layout are not in memory
	f    []op.Factor
}

// at returns the position of element i, and whether it is in memory. The position of an element
// that is not in memory is 0.
func (w *walk) at(i kernel.U32) (kernel.U32, kernel.Bool) {
	var sum kernel.U32
	var in kernel.Bool
	some, windows := false, false
	for k := len(w.f) - 1; k >= 0; k-- {
		f := w.f[k]
		d := i
		if k > 0 {
			d, i = i.Mod(kernel.U(uint32(f.N))), i.Div(kernel.U(uint32(f.N)))
		}
		if f.Lo != 0 || f.Hi != f.N {
			// A digit below the window wraps to a large unsigned number.
			is := d.Sub(kernel.U(uint32(f.Lo))).Lt(kernel.U(uint32(f.Hi - f.Lo)))
			if windows {
				is = in.And(is)
			}
			in, windows = is, true
			d = d.Sub(kernel.U(uint32(f.Lo)))
		}
		if f.Stride == 0 {
			continue
		}
		d = d.Mul(kernel.U(uint32(f.Stride))) // modulo 2^32
		if some {
			d = sum.Add(d)
		}
		sum, some = d, true
	}
	switch {
	case !some:
		sum = kernel.U(uint32(w.off))
	case w.off != 0:
		sum = sum.Add(kernel.U(uint32(w.off)))
	}
	if windows {
		sum = kernel.Select(in, sum, kernel.U(0))
	}
	return sum, in
}

// strided returns a source of n elements that reads x in the layout l.
func (x source) strided(b *kernel.Builder, l *op.Layout, t op.DType, n kernel.U32) source {
	w := walk{off: l.Off, fill: l.Windowed(), f: l.Factors()}
	return source{func(i kernel.U32) kernel.Dynamic {
		at, in := w.at(i)
		return w.filled(b, x.at(at), in, l.Fill, t, 1)
	}, n}
}

// filled returns v if in is true, and otherwise the value with the given bits. v may be a vector of
// the given width.
func (w *walk) filled(b *kernel.Builder, v kernel.Dynamic, in kernel.Bool, bits uint32, t op.DType, width int) kernel.Dynamic {
	if !w.fill {
		return v
	}
	switch irhook.Register(uint8(t)) {
	case ir.I32:
		fill := kernel.I(int32(bits))
		if width == 4 {
			return kernel.Dyn(kernel.Select(in, kernel.As[kernel.Vec4I](b, v), fill.Splat4()))
		}
		return kernel.Dyn(kernel.Select(in, kernel.As[kernel.I32](b, v), fill))
	case ir.U32:
		fill := kernel.U(bits)
		if width == 4 {
			return kernel.Dyn(kernel.Select(in, kernel.As[kernel.Vec4U](b, v), fill.Splat4()))
		}
		return kernel.Dyn(kernel.Select(in, kernel.As[kernel.U32](b, v), fill))
	case ir.Bool:
		fill := kernel.U(bits).Ne(kernel.U(0))
		if width == 4 {
			return kernel.Dyn(kernel.Select(in, kernel.As[kernel.Vec4B](b, v), fill.Splat4()))
		}
		return kernel.Dyn(kernel.Select(in, kernel.As[kernel.Bool](b, v), fill))
	}
	fill := kernel.U(bits).AsF32()
	if t == op.F16 {
		fill = kernel.F(op.F16ToFloat32(uint16(bits)))
	}
	if width == 4 {
		return kernel.Dyn(kernel.Select(in, kernel.As[kernel.Vec4F](b, v), fill.Splat4()))
	}
	return kernel.Dyn(kernel.Select(in, kernel.As[kernel.F32](b, v), fill))
}

// inVectors returns the layout of an operand in vectors of four elements. The last factor of the
// layout counts vectors. If stride is 1, the elements of each vector are adjacent and begin at a
// multiple of four. It returns false if a vector would contain elements of two runs, or elements
// from both sides of the edge of a window.
func inVectors(in *Operand) (w walk, stride int, ok bool) {
	l := in.Layout
	if l.Rank == 0 {
		return w, 0, false
	}
	w = walk{off: l.Off, fill: l.Windowed(), f: append([]op.Factor(nil), l.Factors()...)}
	f := &w.f[len(w.f)-1]
	if f.N%4 != 0 || f.Lo%4 != 0 || f.Hi%4 != 0 {
		return w, 0, false
	}
	stride = f.Stride
	*f = op.Factor{N: f.N / 4, Lo: f.Lo / 4, Hi: f.Hi / 4, Stride: 4 * stride}
	whole := stride == 1 && w.off%4 == 0 && in.N%4 == 0
	for _, f := range w.f {
		whole = whole && f.Stride%4 == 0
	}
	switch {
	case !whole && stride == 1:
		stride = -1 // adjacent elements that begin at any position are read one by one
		return w, stride, true
	case whole:
		w.off /= 4
		for i := range w.f {
			w.f[i].Stride /= 4
		}
	}
	return w, stride, true
}

// stridedVectors declares an operand that is read in vectors of four.
func stridedVectors(b *kernel.Builder, name string, in Operand, n kernel.U32) source {
	w, stride, _ := inVectors(&in)
	if stride == 1 {
		full := in
		full.Broadcast = op.Full
		x := vectorInput(b, name, full, 4, n)
		return source{func(i kernel.U32) kernel.Dynamic {
			at, is := w.at(i)
			return w.filled(b, x.at(at), is, in.Layout.Fill, in.Type, 4)
		}, n}
	}
	x := inputValue(b, name, in.Type)
	return source{func(i kernel.U32) kernel.Dynamic {
		at, is := w.at(i)
		if stride == 0 {
			return w.filled(b, splat(b, x.at(at), in.Type), is, in.Layout.Fill, in.Type, 4)
		}
		step := uint32(in.Layout.F[in.Layout.Rank-1].Stride)
		var v [4]kernel.Dynamic
		for k := range v {
			// An element that is not in memory is replaced by a load from position 0.
			to := at.Add(kernel.U(step * uint32(k)))
			if w.fill {
				to = kernel.Select(is, to, kernel.U(0))
			}
			v[k] = x.at(to)
		}
		return w.filled(b, packed(b, v, in.Type), is, in.Layout.Fill, in.Type, 4)
	}, n}
}

// packed returns a vector of four values.
func packed(b *kernel.Builder, v [4]kernel.Dynamic, t op.DType) kernel.Dynamic {
	switch irhook.Register(uint8(t)) {
	case ir.I32:
		return kernel.Dyn(b.Vec4I(kernel.As[kernel.I32](b, v[0]), kernel.As[kernel.I32](b, v[1]), kernel.As[kernel.I32](b, v[2]), kernel.As[kernel.I32](b, v[3])))
	case ir.U32:
		return kernel.Dyn(b.Vec4U(kernel.As[kernel.U32](b, v[0]), kernel.As[kernel.U32](b, v[1]), kernel.As[kernel.U32](b, v[2]), kernel.As[kernel.U32](b, v[3])))
	case ir.Bool:
		return kernel.Dyn(b.Vec4B(kernel.As[kernel.Bool](b, v[0]), kernel.As[kernel.Bool](b, v[1]), kernel.As[kernel.Bool](b, v[2]), kernel.As[kernel.Bool](b, v[3])))
	}
	return kernel.Dyn(b.Vec4F(kernel.As[kernel.F32](b, v[0]), kernel.As[kernel.F32](b, v[1]), kernel.As[kernel.F32](b, v[2]), kernel.As[kernel.F32](b, v[3])))
}
