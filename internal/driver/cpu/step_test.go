package cpu

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// A sample is a use of an operation that is not elementwise.
type sample struct {
	op     *op.Operation
	attrs  op.Attrs
	shapes []op.Shape // shapes of the operands; nil if absent
	types  []op.DType // types of operands that do not have the floating-point type of the test
	at     int        // upper bound of the values of integer operands
}

func (u sample) String() string {
	return fmt.Sprintf("%s %v of %v", u.op.Name(), u.attrs.I, u.shapes)
}

// samples returns uses of all operations with simple and unusual shapes.
func samples() []sample {
	var us []sample
	add := func(u sample) { us = append(us, u) }
	shapes := []op.Shape{{1}, {17}, {1000}, {3, 5}, {7, 1}, {1, 33}, {2, 9000}, {70, 130}, {2, 3, 31}, {700, 3}}
	for _, o := range op.Catalogue() {
		switch o.Class() {
		case op.Reduction:
			_, arity := o.Arity()
			for _, s := range shapes {
				in := []op.Shape{s, s}[:arity]
				a := o.Defaults()
				add(sample{op: o, attrs: a, shapes: in})
				add(sample{op: o, attrs: a.Rows(), shapes: in})
			}
		case op.Row:
			_, arity := o.Arity()
			for _, s := range shapes {
				cols := op.Shape{s[len(s)-1]}
				add(sample{op: o, attrs: o.Defaults(), shapes: []op.Shape{s, cols, cols}[:arity]})
				if arity > 1 {
					add(sample{op: o, attrs: op.NormOpts{Eps: 0.1}.Attrs(), shapes: []op.Shape{s, nil, nil}[:arity]})
				}
			}
		}
	}
	for _, o := range []*op.Operation{op.Sum, op.Var, op.ArgMax} {
		add(sample{op: o, attrs: o.Defaults(), shapes: []op.Shape{{3, 40000}}})
		add(sample{op: o, attrs: o.Defaults().Rows(), shapes: []op.Shape{{3, 40000}}})
	}
	add(sample{op: op.LayerNorm, shapes: []op.Shape{{2, longRow + 5}, nil, nil}})
	add(sample{op: op.Softmax, shapes: []op.Shape{{3, longRow - 1}}})
	add(sample{op: op.Sum, attrs: op.Sum.Defaults(), shapes: []op.Shape{{0}}})
	add(sample{op: op.Sum, attrs: op.Sum.Defaults().Rows(), shapes: []op.Shape{{4, 0}}})
	add(sample{op: op.Softmax, shapes: []op.Shape{{0, 7}}})
	add(sample{op: op.Var, attrs: op.VarOpts{DDOF: 1}.Attrs().Rows(), shapes: []op.Shape{{5, 77}}})

	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {17, 64, 33}, {1, 300, 200}, {200, 300, 1}, {65, 130, 100}, {4, 0, 5}, {0, 3, 4}} {
		m, k, n := s[0], s[1], s[2]
		for mode := range 8 {
			o := op.MatMulOpts{TransA: mode&1 != 0, TransB: mode&2 != 0}
			a, b := op.Shape{m, k}, op.Shape{k, n}
			if o.TransA {
				a = op.Shape{k, m}
			}
			if o.TransB {
				b = op.Shape{n, k}
			}
			in := []op.Shape{a, b, nil}
			if mode&4 != 0 {
				in[2] = op.Shape{n}
				o.Act = op.Relu
				if mode == 5 {
					o.Act, o.ActParams = op.LeakyRelu, op.Floats(0.3)
				}
			}
			add(sample{op: op.MatMul, attrs: o.Attrs(), shapes: in})
			if mode < 2 {
				add(sample{op: op.MatMul, attrs: o.Attrs(), shapes: []op.Shape{append(op.Shape{3}, a...), b, nil}})
				add(sample{op: op.MatMul, attrs: o.Attrs(), shapes: []op.Shape{append(op.Shape{2, 2}, a...), append(op.Shape{2, 2}, b...), {n}}})
			}
		}
		add(sample{op: op.MatVec, attrs: op.MatVecOpts{}.Attrs(), shapes: []op.Shape{{m, k}, {k}}})
		add(sample{op: op.MatVec, attrs: op.MatVecOpts{Trans: true}.Attrs(), shapes: []op.Shape{{k, m}, {k}}})
	}
	for _, o := range []op.Conv2DOpts{{}, {Pad: [2]int{1, 1}}, {Stride: [2]int{2, 3}, Pad: [2]int{2, 0}, Act: op.Tanh},
		{Dilation: [2]int{2, 1}, Groups: 2}, {Groups: 4, Pad: [2]int{1, 2}}} {
		for _, bias := range []op.Shape{nil, {8}} {
			add(sample{op: op.Conv2D, attrs: o.Attrs(), shapes: []op.Shape{{2, 4, 11, 13}, {8, 4 / max(1, o.Groups), 3, 3}, bias}})
		}
	}
	add(sample{op: op.Transpose, shapes: []op.Shape{{3, 5}}})
	add(sample{op: op.Transpose, shapes: []op.Shape{{130, 67}}})
	add(sample{op: op.Transpose, shapes: []op.Shape{{2, 3, 64, 9}}})
	add(sample{op: op.Transpose, shapes: []op.Shape{{64, 9}}, types: []op.DType{op.I32}})
	add(sample{op: op.Gather, shapes: []op.Shape{{13, 7}, {4, 5}}, types: []op.DType{0, op.I32}, at: 15})
	add(sample{op: op.TopK, attrs: op.TopKOpts{K: 5}.Attrs(), shapes: []op.Shape{{6, 40}}})
	add(sample{op: op.TopK, attrs: op.TopKOpts{K: 1}.Attrs(), shapes: []op.Shape{{1000}}})
	for _, causal := range []bool{false, true} {
		a := op.AttentionOpts{Causal: causal}.Attrs()
		add(sample{op: op.Attention, attrs: a, shapes: []op.Shape{{4, 9, 16}, {2, 13, 16}, {2, 13, 16}}})
		add(sample{op: op.Attention, attrs: a, shapes: []op.Shape{{2, 2, 70, 32}, {2, 2, 70, 32}, {2, 2, 70, 32}}})
	}
	for _, interleaved := range []bool{false, true} {
		a := op.RopeOpts{Start: 3, Interleaved: interleaved}.Attrs()
		add(sample{op: op.Rope, attrs: a, shapes: []op.Shape{{5, 3, 16}, nil}})
		add(sample{op: op.Rope, attrs: a, shapes: []op.Shape{{5, 3, 16}, {5}}, types: []op.DType{0, op.I32}, at: 100})
	}
	if a, err := op.ReshapeTo(6, -1); err == nil {
		add(sample{op: op.Reshape, attrs: a, shapes: []op.Shape{{4, 9}}})
	}
	return us
}

// fusion says which programs are fused with an operation in a test.
type fusion uint8

const (
	alone     fusion = 0
	prologued fusion = 1 << iota
	epilogued
)

// use adds a step of u over floating-point type t, with random programs where the device supports
// them. It reports whether the step differs from those of other tests.
func (r *rig) use(d *processor, u sample, t op.DType, with fusion) bool {
	r.t.Helper()
	s := driver.Step{Op: u.op, Attrs: u.attrs}
	arrays := make([]*op.Array, len(u.shapes))
	types := make([]op.DType, len(u.shapes))
	for i, shape := range u.shapes {
		if shape == nil {
			s.In = append(s.In, driver.Operand{Slot: -1})
			s.Dims = append(s.Dims, nil)
			continue
		}
		types[i] = t
		if i < len(u.types) && u.types[i] != op.InvalidType {
			types[i] = u.types[i]
		}
		s.Dims = append(s.Dims, shape)
		n, _ := shape.Size()
		if with&prologued != 0 && i < 2 && n > 0 {
			if !d.Fuses(u.op, driver.Prologue) {
				return false
			}
			f, v := r.around(shape, types[i], -1, nil)
			if s.Pre == nil {
				s.Pre = make([]*driver.Fused, len(u.shapes))
			}
			s.Pre[i], arrays[i] = f, v
			types[i] = typeOf(f, f.Out[0])
			s.In = append(s.In, driver.Operand{Slot: -1, Type: types[i], N: n})
			continue
		}
		slot, v := r.input(types[i], shape)
		if types[i] == op.I32 && u.at > 0 {
			for j := range v.Data {
				v.Data[j] = float64(r.rand.IntN(u.at))
				op.I32.PutFloat64(r.data[r.p.Slots[slot].Ext], j, v.Data[j])
			}
		}
		arrays[i] = v
		s.In = append(s.In, r.operand(slot, nil))
	}
	made, err := u.op.Types(&u.attrs, types)
	if err != nil {
		return false // the prologues have results of different types
	}
	want, err := u.op.Reference(&u.attrs, arrays, types)
	if err != nil {
		r.t.Fatalf("%v: %v", u, err)
	}
	for _, w := range want {
		s.Dims = append(s.Dims, w.Shape)
	}
	if with&epilogued != 0 {
		if !d.Fuses(u.op, driver.Epilogue) || len(want[0].Data) == 0 || !made[0].Float() {
			return false
		}
		mag := want[0].Mag
		f, v := r.around(want[0].Shape, made[0], 0, want[0])
		s.Post = f
		most := 1e-4
		for i, m := range mag {
			most = max(most, u.op.Tolerance().Bound(want[0].Data[i], m, op.F32)*4)
		}
		slot := r.output(typeOf(f, f.Out[0]), v, func(got, want, _ float64, d op.DType) error {
			if e := bound(f)(got, want, 0, d); e != nil && !(math.Abs(got-want) <= most) {
				return e
			}
			return nil
		})
		s.Out = append(s.Out, r.operand(slot, nil))
	} else {
		for i, w := range want {
			check := u.op.Check
			if with != alone {
				check = around(u.op, w)
			}
			slot := r.output(made[i], w, check)
			s.Out = append(s.Out, r.operand(slot, nil))
		}
	}
	r.p.Steps = append(r.p.Steps, s)
	return true
}

// around returns a comparison for results of operands that were themselves
// computed.
func around(o *op.Operation, w *op.Array) func(got, want, mag float64, d op.DType) error {
	return func(got, want, mag float64, d op.DType) error {
		if o.Check(got, want, mag, d) == nil {
			return nil
		}
		n := 0.0
		for _, m := range w.Mag {
			n = max(n, m)
		}
		if got-want <= 1e-5*(1+n) && want-got <= 1e-5*(1+n) {
			return nil
		}
		return loose(got, want, mag, d)
	}
}

// around makes a random program over shape; core is its operand 0 if slot 0
// stands for an operation's result.
func (r *rig) around(shape op.Shape, t op.DType, core int, v *op.Array) (*driver.Fused, *op.Array) {
	f := &driver.Fused{Shape: shape}
	var vals []*op.Array
	if core >= 0 {
		n, _ := shape.Size()
		f.In = append(f.In, driver.Operand{Slot: -1, Type: t, N: n})
		vals = append(vals, roundedTo(t, v))
		if t.Size() == 2 {
			f.Round = t
		}
	} else {
		s, v := r.input(t, shape)
		f.In = append(f.In, r.operand(s, shape))
		vals = append(vals, v)
	}
	for range r.rand.IntN(3) {
		s := op.Shape(shape)
		switch r.rand.IntN(4) {
		case 0:
			s = op.Shape{}
		case 1:
			if len(shape) > 0 {
				s = shape[len(shape)-1:]
			}
		case 2:
			if len(shape) > 1 {
				s = append(append(op.Shape{}, shape[:len(shape)-1]...), 1)
			}
		}
		slot, v := r.input(t, s)
		f.In = append(f.In, r.operand(slot, shape))
		vals = append(vals, v)
	}
	vals = r.grow(f, vals, 1+r.rand.IntN(4))
	// The last instruction has the shape of operand 0, independently of the others.
	o, a := op.Lerp, attrsOf(op.Lerp)
	last := len(vals) - 1
	y, err := o.Reference(&a, []*op.Array{vals[last], vals[0]}, []op.DType{t, t})
	if err != nil {
		r.t.Fatal(err)
	}
	f.Body = append(f.Body, driver.Instr{Op: o, Attrs: a, Args: []int{last, 0}, Type: t})
	f.Out = []int{last + 1}
	return f, roundedTo(t, y[0])
}

func TestOperations(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for k, u := range samples() {
			for _, typ := range []op.DType{op.F32, op.F16, op.BF16} {
				if typ != op.F32 && len(u.types) > 0 && u.types[0] != op.InvalidType {
					continue
				}
				if !chosen(10) {
					continue
				}
				r := newRig(t, uint64(k))
				r.use(d, u, typ, alone)
				what := fmt.Sprintf("%v %v, %d threads", typ, u, threads)
				r.run(d, what)
				r.immediate(d, what)
			}
		}
	}
}

// TestConcatOfLongRows concatenates rows that are copied in several parts, whose ends differ from those of the operands.
func TestConcatOfLongRows(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for k, shapes := range [][]op.Shape{{{40001}, {3}, {30001}}, {{2, 17003}, {2, 0}, {2, 33000}}, {{1, 2 * concatPart}, {1, concatPart}}} {
			for _, typ := range []op.DType{op.F32, op.F16} {
				u := sample{op: op.Concat, attrs: op.ConcatAlong(len(shapes[0]) - 1), shapes: shapes}
				r := newRig(t, uint64(k))
				r.use(d, u, typ, alone)
				r.run(d, fmt.Sprintf("%v %v, %d threads", typ, u, threads))
			}
		}
	}
}

// decided has the reductions whose result can change completely if an element changes by a rounding error.
var decided = []*op.Operation{op.ArgMin, op.ArgMax, op.Any, op.All, op.CountNonzero}

func TestFusedOperations(t *testing.T) {
	for _, threads := range callerThreads {
		d := open(t, threads)
		for k, u := range samples() {
			seeds := uint64(2)
			if threads > 1 {
				seeds = 1
			}
			for seed := range seeds {
				for _, with := range []fusion{prologued, epilogued, prologued | epilogued} {
					for _, typ := range []op.DType{op.F32, op.F16} {
						if !chosen(16) {
							continue
						}
						if size(u.shapes[0]) > 20000 && (typ != op.F32 || with != prologued|epilogued) {
							continue // the reference is slow
						}
						r := newRig(t, uint64(k)+seed<<32)
						if slices.Contains(decided, u.op) && with&prologued != 0 {
							continue // rounding can change which of two close elements is greater, and whether an element is 0
						}
						if r.use(d, u, typ, with) {
							r.run(d, fmt.Sprintf("%v %v, %d threads, seed %d: %v", typ, u, threads, seed, r.p.Steps[0].Name()))
						}
					}
				}
			}
		}
	}
}
