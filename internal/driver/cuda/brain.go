package cuda

import (
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ptxgen"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// Kernels of the library do not read bfloat16: what they read is converted
// before, and what they write after.

// inKernels returns the type that elements have for kernels of the library.
func inKernels(t op.DType) op.DType {
	if t == op.BF16 {
		return op.F32
	}
	return t
}

// operand returns an operand as kernels of the library take it.
func (e *preparer) operand(x driver.Operand) (lib.Operand, arrayRef, error) {
	a := e.at(x)
	o := lib.Operand{Type: inKernels(x.Type), Spread: x.Spread, N: x.N}
	if o.Type == x.Type {
		return o, a, nil
	}
	wide := arrayRef{e.reserve(4 * int64(x.N)), 4 * int64(x.N)}
	return o, wide, e.convert(wide, a, x.N, false)
}

// results adds the results to a request and returns where kernels write them,
// and what brings them to their places afterwards.
func (e *preparer) results(r *lib.Request, out []driver.Operand, shapes []op.Shape) (to []arrayRef, after func() error) {
	type pair struct {
		dst, src arrayRef
		n        int
	}
	var narrow []pair
	for i, o := range out {
		t, a := inKernels(o.Type), e.at(o)
		if t != o.Type {
			wide := arrayRef{e.reserve(4 * int64(o.N)), 4 * int64(o.N)}
			narrow = append(narrow, pair{a, wide, o.N})
			a = wide
		}
		r.Out, to = append(r.Out, lib.Array{Type: t, Shape: shapes[i]}), append(to, a)
	}
	return to, func() error {
		for _, p := range narrow {
			if err := e.convert(p.dst, p.src, p.n, true); err != nil {
				return err
			}
		}
		return nil
	}
}

// convert adds the conversion of n elements.
func (e *preparer) convert(dst, src arrayRef, n int, narrow bool) error {
	if n == 0 {
		return nil
	}
	k, err := e.compile(programKey{narrow: narrow})
	if err != nil {
		return err
	}
	groups := (n + ptxgen.BrainLanes - 1) / ptxgen.BrainLanes
	e.steps = append(e.steps, &launch{e: e.executable, code: k, grid: [3]uint32{uint32(groups), 1, 1}, slot: -1, fault: -1,
		arrays: []arrayRef{src, dst}, lengths: []uint32{uint32(n), uint32(n)}})
	return nil
}
