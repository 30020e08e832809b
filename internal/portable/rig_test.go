package portable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

// rig runs plans in the interpreter, with or without its checks.
type rig struct {
	check    bool
	first    bool // the checks end with the first finding
	subgroup int
	extra    uint32                          // workgroups in addition to the grid, as in folded grids
	mutate   func(p *ir.Program) *ir.Program // changes programs; nil for no change
}

// found is the error of a launch with findings.
type found []*interp.Finding

func (f found) Error() string {
	var s []string
	for _, x := range f {
		s = append(s, x.Error())
	}
	return strings.Join(s, "\n")
}

var compiled sync.Map // *ir.Program -> *interp.Kernel

func compile(p *ir.Program) (*interp.Kernel, error) {
	if k, ok := compiled.Load(p); ok {
		return k.(*interp.Kernel), nil
	}
	k, err := interp.Compile(p, interp.Limits{})
	if err == nil {
		compiled.Store(p, k)
	}
	return k, err
}

// run runs a plan on the memory of operands and results.
func (g *rig) run(p *Plan, in, out [][]byte) error {
	scratch := make([][]byte, len(p.Scratch))
	for i, n := range p.Scratch {
		scratch[i] = optest.Poisoned(n)
	}
	constants := make([][]byte, len(p.Constants))
	for i, c := range p.Constants {
		constants[i] = optest.Poisoned(int64(len(c)))
		copy(constants[i], c)
	}
	written := map[Ref]bool{} // written by an earlier stage; other memory must still be poisoned
	for i := range p.Stages {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err != nil {
			return err
		}
		k, err := compile(prog)
		if g.mutate != nil {
			if q := g.mutate(prog); q != prog {
				prog = q
				k, err = interp.Compile(prog, interp.Limits{})
			}
		}
		if err != nil {
			return err
		}
		if len(s.Bind) != len(prog.Bindings) {
			return fmt.Errorf("stage %d: %d arrays for %d buffers", i, len(s.Bind), len(prog.Bindings))
		}
		l := interp.Launch{Grid: [3]uint32{s.Grid[0] + g.extra, s.Grid[1], s.Grid[2]}, Params: s.Params, Subgroup: g.subgroup, Runner: interp.Goroutines(2)}
		c := interp.Checks{Undefined: make([]bool, len(s.Bind)), Deterministic: true, Schedules: []interp.Schedule{interp.Shuffled}}
		for j, r := range s.Bind {
			l.Buffers = append(l.Buffers, [][][]byte{in, out, scratch, constants}[r.Kind][r.Index])
			c.Undefined[j] = r.Kind != InputRef && prog.Bindings[j].Access != ir.ReadOnly && !written[r]
		}
		for j, r := range s.Bind {
			written[r] = written[r] || prog.Bindings[j].Access != ir.ReadOnly
		}
		if g.first {
			c.Max = 1
		}
		if !g.check {
			if err := k.Run(context.Background(), l); err != nil {
				return fmt.Errorf("stage %d: %w", i, err)
			}
			continue
		}
		fs, err := k.Check(context.Background(), l, c)
		if len(fs) > 0 {
			return fmt.Errorf("stage %d: %w", i, found(fs))
		}
		if err != nil {
			return fmt.Errorf("stage %d: %w", i, err)
		}
	}
	return nil
}

// trial is one use of an operation with its operands.
type trial struct {
	o      *op.Operation
	attrs  op.Attrs
	types  []op.DType
	values []*op.Array // nil for an absent operand
	post   *Epilogue
	// variants, if not nil, are the variants in which defects are planted.
	variants []string
	// layouts, if not nil, gives arrays of a request layouts.
	layouts func(r *Request)
}

// use returns the use of the operation for the reference.
func (c *trial) use() *optest.Use {
	return &optest.Use{Op: c.o, Attrs: &c.attrs, Types: c.types, Values: c.values}
}

// typesOf returns the element types of arrays.
func typesOf(as []Array) []op.DType {
	var ts []op.DType
	for _, a := range as {
		ts = append(ts, a.Type)
	}
	return ts
}

// request returns the request of a trial for a target.
func (c *trial) request(target Target) (*Request, error) {
	r := &Request{Op: c.o, Attrs: c.attrs, Target: target, Post: c.post}
	shapes := make([]op.Shape, len(c.values))
	for i, x := range c.values {
		if x == nil {
			r.In = append(r.In, Array{})
			continue
		}
		shapes[i] = x.Shape
		r.In = append(r.In, Array{Type: c.types[i], Shape: x.Shape})
	}
	ts, err := c.o.Types(&c.attrs, c.types)
	if err != nil {
		return nil, err
	}
	ss, err := c.o.Shapes(&c.attrs, shapes)
	if err != nil {
		return nil, err
	}
	for i := range ts {
		r.Out = append(r.Out, Array{Type: ts[i], Shape: ss[i]})
	}
	return r, nil
}

// run computes r, and compares the results with the reference.
func (c *trial) run(g *rig, r *Request) error {
	p, err := For(r)
	if err != nil {
		return err
	}
	return c.runPlan(g, r, p)
}

// runPlan is run with an existing plan, because another plan may have new copies of the same
// kernels.
func (c *trial) runPlan(g *rig, r *Request, p *Plan) error {
	var out [][]byte
	for _, y := range r.Out {
		out = append(out, optest.Poisoned(int64(size(y.Shape)*y.Type.Size())))
	}
	if err := g.run(p, c.use().Memory(), out); err != nil {
		return err
	}
	return c.use().Compare(typesOf(r.Out), out)
}

// normal returns an array of numbers around 0.
func normal(r *rand.Rand, shape ...int) *op.Array {
	a := op.NewArray(shape)
	for i := range a.Data {
		a.Data[i] = float64(float32(r.NormFloat64()))
	}
	return a
}

// with returns a with some of the given values at random places.
func with(r *rand.Rand, a *op.Array, vs ...float64) *op.Array {
	for _, v := range vs {
		if len(a.Data) > 0 {
			a.Data[r.IntN(len(a.Data))] = v
		}
	}
	return a
}

var (
	inf     = math.Inf(1)
	missing = math.NaN()
)

// sampled reports whether a case is to be run. Short tests run one of twelve cases at random, and
// one of thirty-two if a program is emulated or runs in JavaScript, because the interpreter
// computes the same there.
func sampled() bool {
	n := 12
	if runtime.GOARCH == "wasm" || runtime.GOARCH == "arm64" {
		n = 32
	}
	return !testing.Short() || rand.IntN(n) == 0
}

// everyVariant runs the trial with each variant that fits, on targets without subgroups and with
// subgroups of several sizes.
func (c *trial) everyVariant(t *testing.T, check bool) {
	t.Helper()
	names := Variants(c.o)
	if names == nil {
		names = []string{""}
	}
	ran := false
	for _, name := range names {
		for _, target := range targetsOf(name) {
			r, err := c.request(target.Target)
			if err != nil {
				t.Fatal(err)
			}
			r.Variant = name
			p, err := For(r)
			if errors.Is(err, op.ErrUnsupported) {
				continue
			}
			ran = true
			if idle(c, p) && rand.IntN(4) > 0 {
				continue
			}
			for i, n := range target.sizes {
				if !sampled() {
					continue
				}
				// Checks are slow, so each case uses two sizes.
				if err := c.run(&rig{check: check && (i+len(r.In[0].Shape))%2 == 0, subgroup: n}, r); err != nil {
					t.Errorf("%v %v, variant %q, %+v, subgroups of %d: %v", c.o, r.In, name, target.Target, n, err)
				}
			}
		}
	}
	if !ran {
		t.Errorf("%v: no variant fits", c.o)
	}
}

// targetUse is a target with the subgroup sizes of the devices that it describes.
type targetUse struct {
	Target
	sizes []int
}

// targetsOf returns targets for a variant. Targets with large workgroups are only for variants that
// need them, and targets with known and unknown subgroup sizes only for variants that use
// subgroups.
func targetsOf(variant string) []targetUse {
	lanes := 256
	if name := strings.TrimSuffix(variant, "-subgroups"); slices.Contains([]string{"team512", "team1024", "kept1024", "edges512", "edges1024", "edgeskept1024"}, name) {
		lanes = 1024
	}
	if slices.Contains([]string{"radix", "buckets", "parts", "order16", "order32", "order48", "order60", "order64"}, variant) {
		return []targetUse{{Target{Lanes: lanes, Shared: 48 << 10, Subgroups: true, Votes: true}, []int{32}}}
	}
	if slices.Contains([]string{"vectors", "scalars", "few-scalars"}, variant) {
		return []targetUse{{Target{}, []int{32}}, {Target{MapBranches: true}, []int{32}}}
	}
	if strings.HasPrefix(variant, "near-") {
		return []targetUse{{Target{}, []int{4}}}
	}
	if !strings.HasSuffix(variant, "subgroups") {
		return []targetUse{{Target{Lanes: lanes}, []int{32}}}
	}
	return []targetUse{
		{Target{Lanes: lanes, Subgroups: true}, []int{1, 4, 32, 128}},
		{Target{Lanes: lanes, Subgroups: true, Subgroup: 32}, []int{32}},
		{Target{Lanes: lanes, Subgroups: true, Subgroup: 8}, []int{8}},
	}
}
