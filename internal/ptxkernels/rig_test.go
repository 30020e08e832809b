package ptxkernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// h200 and a100 are devices to plan for.
var (
	h200 = Device{Target: ptx.SM90a, Multiprocessors: 132, Shared: 227 << 10}
	a100 = Device{Target: ptx.SM80, Multiprocessors: 108, Shared: 163 << 10}
	v100 = Device{Target: ptx.SM70, Multiprocessors: 80, Shared: 96 << 10}
)

// trial is one use of an operation with its operands.
type trial struct {
	o      *op.Operation
	attrs  op.Attrs
	types  []op.DType
	values []*op.Array // nil for an absent operand
	post   *portable.Epilogue
	out    []op.DType // types of the results of post
	packed bool       // q, k and v of attention are heads of one array, the result merged heads
}

// newTrial returns a use of an operation over operands of one type.
func newTrial(o *op.Operation, attrs op.Attrs, t op.DType, values ...*op.Array) *trial {
	c := &trial{o: o, attrs: attrs, values: values}
	for _, v := range values {
		if v == nil {
			c.types = append(c.types, op.InvalidType)
			continue
		}
		c.types = append(c.types, t)
	}
	return c
}

// request returns the request of the trial.
func (c *trial) request() (*portable.Request, error) {
	r := &portable.Request{Op: c.o, Attrs: c.attrs, Post: c.post}
	shapes := make([]op.Shape, len(c.values))
	for i, x := range c.values {
		if x == nil {
			r.In = append(r.In, portable.Array{})
			continue
		}
		shapes[i] = x.Shape
		r.In = append(r.In, portable.Array{Type: c.types[i], Shape: x.Shape})
	}
	ts, err := c.o.Types(&c.attrs, c.types)
	if err != nil {
		return nil, err
	}
	ss, err := c.o.Shapes(&c.attrs, shapes)
	if err != nil {
		return nil, err
	}
	if c.post != nil {
		ts = c.out
		for range len(ts) - 1 {
			ss = append(ss, ss[0])
		}
	}
	for i := range ts {
		r.Out = append(r.Out, portable.Array{Type: ts[i], Shape: ss[i]})
	}
	if c.packed {
		first, all := 0, shapes[0][1]+2*shapes[1][1]
		for i := range op.AttentionV + 1 {
			a := &r.In[i]
			a.Layout, a.N = optest.Heads(a.Shape, all, first)
			first += a.Shape[1]
		}
		if c.post == nil {
			y := &r.Out[0]
			y.Layout, y.N = optest.Heads(y.Shape, y.Shape[1], 0)
		}
	}
	return r, nil
}

// use returns the use of the operation that the reference checks.
func (c *trial) use() *optest.Use {
	return &optest.Use{Op: c.o, Attrs: &c.attrs, Types: c.types, Values: c.values}
}

// typesOf returns the element types of arrays.
func typesOf(as []portable.Array) []op.DType {
	var ts []op.DType
	for _, a := range as {
		ts = append(ts, a.Type)
	}
	return ts
}

// A rig runs plans in the emulator.
type rig struct {
	device    Device
	unchecked bool
	schedule  emu.Schedule
	mutate    func(text string) string // modifies the text of a kernel; nil for no change
	stats     func(stage int, s *emu.Stats)
}

// run runs a plan over operands and results in memory.
func (g *rig) run(p *Plan, in, out [][]byte) error {
	m := emu.NewMachine(emu.Config{Unchecked: g.unchecked, Schedule: g.schedule, Seed: rand.Uint64()})
	place := func(name string, b []byte) (emu.Ptr, error) {
		if b == nil {
			return 0, nil
		}
		at, err := m.Alloc(name, len(b))
		if err == nil && len(b) > 0 {
			err = m.Write(at, b)
		}
		return at, err
	}
	var arrays [3][]emu.Ptr
	for i, b := range in {
		at, err := place(fmt.Sprintf("in%d", i), b)
		if err != nil {
			return err
		}
		arrays[portable.InputRef] = append(arrays[portable.InputRef], at)
	}
	for i, b := range out {
		at, err := m.Alloc(fmt.Sprintf("out%d", i), len(b))
		if err != nil {
			return err
		}
		arrays[portable.OutputRef] = append(arrays[portable.OutputRef], at)
	}
	for i, n := range p.Scratch {
		at, err := m.Alloc(fmt.Sprintf("scratch%d", i), int(n))
		if err != nil {
			return err
		}
		arrays[portable.ScratchRef] = append(arrays[portable.ScratchRef], at)
	}
	for i, n := range p.Zeros {
		at, err := place(fmt.Sprintf("zeros%d", i), make([]byte, n))
		if err != nil {
			return err
		}
		arrays[portable.ScratchRef] = append(arrays[portable.ScratchRef], at)
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		if err := g.stage(m, s, p, arrays); err != nil {
			return fmt.Errorf("stage %d, %s: %w", i, s.Kernel.Name, err)
		}
		if g.stats != nil {
			g.stats(i, m.Stats())
		}
	}
	for i, n := range p.Zeros {
		b := make([]byte, n)
		if err := m.Read(arrays[portable.ScratchRef][len(p.Scratch)+i], b); err != nil {
			return err
		}
		if !bytes.Equal(b, make([]byte, n)) {
			return fmt.Errorf("temporary %d must end as zeros, but is %v", i, b)
		}
	}
	for i, b := range out {
		if len(b) == 0 {
			continue
		}
		if err := m.Read(arrays[portable.OutputRef][i], b); err != nil {
			return err
		}
	}
	return nil
}

func (g *rig) stage(m *emu.Machine, s *Stage, p *Plan, arrays [3][]emu.Ptr) error {
	if s.Zero >= 0 {
		if err := m.Write(arrays[portable.ScratchRef][s.Zero], make([]byte, p.Scratch[s.Zero])); err != nil {
			return err
		}
	}
	e, dynamic, err := g.built(s.Kernel)
	if err != nil {
		return err
	}
	var args []any
	for _, a := range s.Args {
		switch a.Kind {
		case Pointer:
			args = append(args, arrays[a.Array.Kind][a.Array.Index]+emu.Ptr(a.Off))
		case Word:
			args = append(args, uint32(a.Bits))
		case Double:
			args = append(args, a.Bits)
		case Map:
			args = append(args, emulatedMap(a.Tiles, arrays[a.Array.Kind][a.Array.Index]+emu.Ptr(a.Off)))
		}
	}
	dim := func(d [3]uint32) emu.Dim { return emu.Dim{X: int(d[0]), Y: int(d[1]), Z: int(d[2])} }
	return m.Launch(context.Background(), e, dim(s.Grid), dim(s.Kernel.Block), dynamic, args...)
}

// emulated is a kernel that is ready to run.
type emulated struct {
	once    sync.Once
	kernel  *emu.Kernel
	dynamic int
	err     error
}

// emulatedFor is the key of the cache of built kernels. Equal keys have the same code.
type emulatedFor struct {
	kernel *Kernel
	target ptx.Target
}

var ready sync.Map // from emulatedFor to *emulated

// built returns a kernel ready to run, and the size of its shared memory.
func (g *rig) built(s *Kernel) (*emu.Kernel, int, error) {
	e := &emulated{}
	if g.mutate == nil {
		kept, _ := ready.LoadOrStore(emulatedFor{s, g.device.Target}, e)
		e = kept.(*emulated)
	}
	e.once.Do(func() { e.kernel, e.dynamic, e.err = g.build(s) })
	return e.kernel, e.dynamic, e.err
}

func (g *rig) build(s *Kernel) (*emu.Kernel, int, error) {
	mod := ptx.NewModule(g.device.Target)
	mod.RecordPositions()
	k := mod.Kernel(s.Name, s.Build)
	if err := mod.Err(); err != nil {
		return nil, 0, err
	}
	if err := mod.Verify(); err != nil {
		return nil, 0, err
	}
	_, dynamic := k.SharedBytes()
	load := func() (*emu.Module, error) { return emu.Load(mod) }
	if g.mutate != nil {
		text, err := mod.PTX()
		if err != nil {
			return nil, 0, err
		}
		load = func() (*emu.Module, error) { return emu.Parse(g.mutate(text)) }
	}
	parsed, err := load()
	if err != nil {
		return nil, 0, err
	}
	e, err := parsed.Kernel(s.Name)
	return e, dynamic, err
}

func emulatedMap(t *Tiles, at emu.Ptr) *emu.TensorMap {
	return &emu.TensorMap{Base: at, Type: t.Type.String(), Dims: t.Size, Strides: t.Stride, Box: t.Tile, Swizzle: t.Swizzle}
}

// run plans the trial for a device, runs it in the emulator and compares the results with the reference.
func (c *trial) run(g *rig) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	p, err := For(r, g.device)
	if err != nil {
		return err
	}
	return c.runPlan(g, r, p)
}

// memory returns the operands of the request in memory.
func (c *trial) memory(r *portable.Request) [][]byte {
	in := c.use().Memory()
	for i, a := range r.In {
		if a.Layout != nil {
			in[i] = optest.Lay(in[i], a.Type, a.Layout, a.N)
		}
	}
	return in
}

func (c *trial) runPlan(g *rig, r *portable.Request, p *Plan) error {
	var out [][]byte
	for _, y := range r.Out {
		out = append(out, optest.Poisoned(int64(size(y.Shape)*y.Type.Size())))
	}
	if err := g.run(p, c.memory(r), out); err != nil {
		return fmt.Errorf("variant %s: %w", p.Variant, err)
	}
	for i, y := range r.Out {
		if y.Layout != nil {
			out[i] = optest.Taken(out[i], y.Type, y.Layout)
		}
	}
	if err := c.use().Compare(typesOf(r.Out), out); err != nil {
		return fmt.Errorf("variant %s: %w", p.Variant, err)
	}
	return nil
}

// must runs the trial with the emulator's checks, and fails the test on any finding or wrong result.
func (c *trial) must(t *testing.T, d Device) {
	t.Helper()
	if err := c.run(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}); err != nil {
		r, _ := c.request()
		t.Errorf("%v %v on %v: %v", c.o, r.In, d.Target, err)
	}
}

// sampled reports whether to run a case: always, or in short tests for a random eighth of the
// cases.
func sampled() bool { return !testing.Short() || rand.IntN(8) == 0 }

// normal returns an array of numbers around 0.
func normal(shape ...int) *op.Array {
	a := op.NewArray(shape)
	for i := range a.Data {
		a.Data[i] = float64(float32(rand.NormFloat64()))
	}
	return a
}

func TestNoKernel(t *testing.T) {
	r, err := newTrial(op.TopK, op.TopKOpts{K: 2}.Attrs(), op.F32, normal(3, 4)).request()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := For(r, h200); !errors.Is(err, op.ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
