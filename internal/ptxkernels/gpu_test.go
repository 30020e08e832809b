package ptxkernels

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/ptx"
)

// gpu is the first GPU of the machine.
type gpu struct {
	dev    *cu.Device
	stream *cu.Stream
	desc   Device
	code   map[*Kernel]compiled
}

type compiled struct {
	fn      *cu.Function
	dynamic int
}

func openGPU(t testing.TB) *gpu {
	t.Helper()
	testutil.Need(t, "cuda")
	dev, err := cu.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	s, err := dev.NewStream(0)
	if err != nil {
		t.Fatal(err)
	}
	i := dev.Info()
	target := ptx.Target(100*i.Capability.Major + 10*i.Capability.Minor)
	if target == ptx.SM90 {
		target = ptx.SM90a
	}
	return &gpu{dev: dev, stream: s, code: map[*Kernel]compiled{},
		desc: Device{Target: target, Multiprocessors: i.Multiprocessors, Shared: target.MaxShared()}}
}

func (g *gpu) compile(k *Kernel) (compiled, error) {
	if c, ok := g.code[k]; ok {
		return c, nil
	}
	m := ptx.NewModule(g.desc.Target)
	built := m.Kernel(k.Name, k.Build)
	text, err := m.AppendPTX(nil)
	if err != nil {
		return compiled{}, err
	}
	mod, err := g.dev.Load(text)
	if err != nil {
		return compiled{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	fn, err := mod.Function(k.Name)
	if err != nil {
		return compiled{}, err
	}
	_, dynamic := built.SharedBytes()
	c := compiled{fn, dynamic}
	g.code[k] = c
	return c, nil
}

// buffers is the device memory of a plan.
type buffers struct {
	mem    []cu.Memory
	arrays Arrays
	sizes  [len(Arrays{})][]int64
}

func (b *buffers) free() {
	for _, m := range b.mem {
		_ = m.Free()
	}
}

// arrays copies the operands of a plan to the device and allocates the results and temporaries.
func (g *gpu) arrays(p *Plan, in [][]byte, out []int64) (*buffers, error) {
	b := &buffers{}
	add := func(kind portable.RefKind, n int64, data []byte) error {
		m, err := g.stream.Alloc(max(n, 16))
		if err != nil {
			return err
		}
		b.mem = append(b.mem, m)
		b.arrays[kind], b.sizes[kind] = append(b.arrays[kind], m.Ptr()), append(b.sizes[kind], n)
		if len(data) > 0 {
			return g.stream.Upload(m.Ptr(), data)
		}
		return g.stream.Set32(m.Ptr(), optest.Poison, max(n, 16)/4)
	}
	for _, x := range in {
		if err := add(portable.InputRef, int64(len(x)), x); err != nil {
			return nil, err
		}
	}
	for _, n := range out {
		if err := add(portable.OutputRef, n, nil); err != nil {
			return nil, err
		}
	}
	for _, n := range p.Scratch {
		if err := add(portable.ScratchRef, n, nil); err != nil {
			return nil, err
		}
	}
	for _, n := range p.Zeros {
		if err := add(portable.ScratchRef, n, make([]byte, n)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// launches prepares the launches of a plan, and returns a function that performs them.
func (g *gpu) launches(p *Plan, b *buffers) (func() error, error) {
	var calls []func() error
	for i := range p.Stages {
		s := &p.Stages[i]
		c, err := g.compile(s.Kernel)
		if err != nil {
			return nil, err
		}
		params, err := s.AppendArgs(nil, &b.arrays, func(i int, at cu.Ptr) (cu.TensorMap, error) { return g.dev.TensorMap(s.Args[i].Tiles.Tiled(at)) })
		if err != nil {
			return nil, err
		}
		config := s.Config(c.dynamic)
		if s.Zero >= 0 {
			at, n := b.arrays[portable.ScratchRef][s.Zero], p.Scratch[s.Zero]
			calls = append(calls, func() error { return g.stream.Set8(at, 0, n) })
		}
		calls = append(calls, func() error { return g.stream.Launch(c.fn, config, params) })
	}
	return func() error {
		for _, f := range calls {
			if err := f(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// run runs a plan once over operands and results in memory.
func (g *gpu) run(p *Plan, in, out [][]byte) error {
	var sizes []int64
	for _, y := range out {
		sizes = append(sizes, int64(len(y)))
	}
	b, err := g.arrays(p, in, sizes)
	if err != nil {
		return err
	}
	defer b.free()
	f, err := g.launches(p, b)
	if err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := g.stream.Synchronize(); err != nil {
		return err
	}
	for i, y := range out {
		if err := g.stream.Download(y, b.arrays[portable.OutputRef][i]); err != nil {
			return err
		}
	}
	return nil
}

// check runs the trial on the device and compares the whole result with the reference, which is
// slow for large results.
func (g *gpu) check(t *testing.T, c *trial) {
	t.Helper()
	r, err := c.request()
	if err != nil {
		t.Error(err)
		return
	}
	p, err := For(r, g.desc)
	if err == nil {
		var out [][]byte
		for _, y := range r.Out {
			out = append(out, optest.Poisoned(int64(size(y.Shape)*y.Type.Size())))
		}
		if err = g.run(p, c.use().Memory(), out); err == nil {
			err = c.use().Compare(typesOf(r.Out), out)
		}
	}
	if err != nil {
		t.Errorf("%v %v: %v", c.o, r.In, err)
	}
}

// timed returns the median time of f over seven measurements of n calls.
func (g *gpu) timed(f func() error, n int) (time.Duration, error) {
	from, err := g.dev.NewEvent(true)
	if err != nil {
		return 0, err
	}
	to, err := g.dev.NewEvent(true)
	if err != nil {
		return 0, err
	}
	for range 2 {
		if err := f(); err != nil {
			return 0, err
		}
	}
	if err := g.stream.Synchronize(); err != nil {
		return 0, err
	}
	var took []time.Duration
	for range 7 {
		if err := g.stream.Record(from); err != nil {
			return 0, err
		}
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if err := g.stream.Record(to); err != nil {
			return 0, err
		}
		if err := g.stream.Synchronize(); err != nil {
			return 0, err
		}
		d, err := cu.Elapsed(from, to)
		if err != nil {
			return 0, err
		}
		took = append(took, d/time.Duration(n))
	}
	return middle(took), nil
}

func middle(d []time.Duration) time.Duration {
	for i := range d {
		for j := i; j > 0 && d[j] < d[j-1]; j-- {
			d[j], d[j-1] = d[j-1], d[j]
		}
	}
	return d[len(d)/2]
}

// pattern has random numbers around 0. It is long enough that caches and compression do not help
// when it is repeated.
var pattern = func() []float64 {
	v := make([]float64, 1<<20-3)
	for i := range v {
		v[i] = rand.NormFloat64()
	}
	return v
}()

// randomBytes returns the bytes of an array of random numbers.
func randomBytes(x portable.Array) []byte {
	n, width := size(x.Shape), x.Type.Size()
	if width == 0 {
		bytes, _ := x.Type.Bytes(x.Shape)
		b := make([]byte, bytes)
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		return b
	}
	one := make([]byte, min(n, len(pattern))*width)
	for i := range len(one) / width {
		x.Type.PutFloat64(one, i, pattern[i])
	}
	b := make([]byte, n*width)
	for i := 0; i < len(b); i += len(one) {
		copy(b[i:], one)
	}
	return b
}
