package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/op"
)

// TestTemporariesThatLiveTogetherDoNotOverlap plans random programs and runs them on a simulated
// arena that records the owner of each byte.
func TestTemporariesThatLiveTogetherDoNotOverlap(t *testing.T) {
	for seed := range uint64(600) {
		lim := []driver.Limits{{}, {SeparateBindings: true}, {SeparateBindings: true, OffsetAlign: 512}, {OffsetAlign: 96}}[seed%4]
		r := rand.New(rand.NewPCG(seed, 1))
		p := &driver.Program{}
		p.Slots = append(p.Slots, driver.Slot{Ext: 0, Bytes: 64})
		for range 2 + r.IntN(30) {
			n := 1 + r.IntN(2000)
			p.Slots = append(p.Slots, driver.Slot{Ext: -1, Bytes: int64(4 * n)})
			out := driver.Operand{Slot: len(p.Slots) - 1, Type: op.F32, N: n}
			f := &driver.Fused{}
			for range 1 + r.IntN(3) {
				in := r.IntN(len(p.Slots) - 1)
				o := driver.Operand{Slot: in, Type: op.F32, N: int(p.Slots[in].Bytes / 4)}
				if o.N != n {
					o.Broadcast = op.Tiled
				}
				f.In = append(f.In, o)
			}
			outs := []driver.Operand{out}
			if r.IntN(3) == 0 { // a second result, like the indices of topk
				p.Slots = append(p.Slots, driver.Slot{Ext: -1, Bytes: int64(4 * n)})
				outs = append(outs, driver.Operand{Slot: len(p.Slots) - 1, Type: op.I32, N: n})
			}
			p.Steps = append(p.Steps, driver.Step{Post: f, Out: outs})
		}
		unshared := placeTemporaries(p, lim)
		if p.Arena > unshared {
			t.Fatalf("seed %d: arena %d is larger than the %d without sharing", seed, p.Arena, unshared)
		}
		owner := make([]int, p.Arena/4)
		for i, s := range p.Steps {
			for _, in := range s.Post.In {
				slot := &p.Slots[in.Slot]
				for w := slot.Off / 4; slot.Ext < 0 && w < (slot.Off+slot.Bytes)/4; w++ {
					if owner[w] != in.Slot {
						t.Fatalf("seed %d step %d: slot %d was overwritten by %d before its last use", seed, i, in.Slot, owner[w])
					}
				}
			}
			for k, o := range s.Out {
				out := &p.Slots[o.Slot]
				for _, in := range s.Post.In {
					if x := &p.Slots[in.Slot]; lim.SeparateBindings && x.Ext < 0 && bufferOf(p, x) == bufferOf(p, out) {
						t.Fatalf("seed %d step %d: reads at %d and writes at %d of one buffer, cuts %v", seed, i, x.Off, out.Off, p.Cuts)
					}
				}
				if k > 0 && lim.SeparateBindings && bufferOf(p, &p.Slots[s.Out[0].Slot]) == bufferOf(p, out) {
					t.Fatalf("seed %d step %d: writes both its results into one buffer, cuts %v", seed, i, p.Cuts)
				}
				if last := *out; bufferOf(p, out) != bufferOf(p, &driver.Slot{Off: last.Off + max(last.Bytes, 1) - 1}) {
					t.Fatalf("seed %d: slot at %d of %d bytes crosses one of the cuts %v", seed, out.Off, out.Bytes, p.Cuts)
				}
				if out.Off%arenaAlign != 0 || lim.OffsetAlign > 0 && out.Off%lim.OffsetAlign != 0 || out.Off+out.Bytes > p.Arena {
					t.Fatalf("seed %d: slot at %d of %d bytes in an arena of %d", seed, out.Off, out.Bytes, p.Arena)
				}
				for w := out.Off / 4; w < (out.Off+out.Bytes)/4; w++ {
					owner[w] = o.Slot
				}
			}
			for _, o := range s.Out {
				if owner[p.Slots[o.Slot].Off/4] != o.Slot {
					t.Fatalf("seed %d step %d: the results overlap", seed, i)
				}
			}
		}
	}
}

func TestChainRunsInPlace(t *testing.T) {
	p := &driver.Program{Slots: []driver.Slot{{Ext: 0, Bytes: 4000}}}
	for i := range 20 {
		p.Slots = append(p.Slots, driver.Slot{Ext: -1, Bytes: 4000})
		p.Steps = append(p.Steps, driver.Step{
			Post: &driver.Fused{In: []driver.Operand{{Slot: i, Type: op.F32, N: 1000}}},
			Out:  []driver.Operand{{Slot: i + 1, Type: op.F32, N: 1000}},
		})
	}
	placeTemporaries(p, driver.Limits{})
	if p.Arena != 4096 {
		t.Errorf("a chain of 20 takes %d bytes, want one buffer", p.Arena)
	}
}

// bufferOf returns the number of the buffer that contains a temporary.
func bufferOf(p *driver.Program, s *driver.Slot) int {
	n := 0
	for _, c := range p.Cuts {
		if s.Off >= c {
			n++
		}
	}
	return n
}

// strict is a device that rejects programs beyond its limits.
type strict struct {
	driver.Device
	t   *testing.T
	lim driver.Limits
}

func (d *strict) Limits() driver.Limits { return d.lim }

func (d *strict) Prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	for i := range p.Steps {
		s := &p.Steps[i]
		slots := map[int]bool{}
		eachOperand(s, func(x *driver.Operand) { slots[x.Slot] = true })
		for _, o := range s.Out {
			eachOperand(s, func(x *driver.Operand) {
				a, b := &p.Slots[x.Slot], &p.Slots[o.Slot]
				if x.Slot != o.Slot && a.Ext < 0 && a.Data == nil && b.Ext < 0 && bufferOf(p, a) == bufferOf(p, b) {
					d.t.Errorf("step %d reads and writes one buffer", i)
				}
			})
			slots[o.Slot] = true
		}
		if len(slots) > d.lim.MaxBindings {
			d.t.Errorf("step %d, %s, binds %d arrays", i, s.Name(), len(slots))
		}
	}
	return d.Device.Prepare(ctx, p)
}

// TestLimits checks that plans for a device with few bindings, and with separate bindings for reads
// and writes, obey these limits and have the same results.
func TestLimits(t *testing.T) {
	c, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	lim := c.Limits()
	lim.SeparateBindings, lim.MaxBindings, lim.OffsetAlign, lim.MaxBinding = true, 4, 512, 1<<20
	e := New(graphOnly{&strict{c, t, lim}})
	defer e.Close()
	ctx := context.Background()
	b, err := e.NewBuffer(op.F32, op.Shape{300})
	if err != nil {
		t.Fatal(err)
	}
	// buffer[0:100] = Σ of eight inputs and buffer[200:300]; buffer[100:200] = buffer[0:100] then.
	g := &graph.Graph{}
	s := op.Shape{100}
	var refs []Ref
	compute := func(o *op.Operation, x, y graph.ID) graph.ID {
		n := graph.Node{Kind: graph.Compute, Op: o, Type: op.F32, Shape: s, NIn: 2}
		n.In[0], n.In[1] = x, y
		return g.Add(n)
	}
	store := func(v graph.ID, off int64) {
		n := graph.Node{Kind: graph.Store, Type: op.F32, Shape: s, Ref: 0, Off: 4 * off, NIn: 1}
		n.In[0] = v
		g.Add(n)
	}
	refs = append(refs, Ref{Buf: b})
	all := g.Add(graph.Node{Kind: graph.Resident, Type: op.F32, Shape: s, Ref: 0, Off: 800})
	var partial []graph.ID
	for i := range 8 {
		x := make([]float32, 100)
		for k := range x {
			x[k] = float32(i * k)
		}
		refs = append(refs, Ref{Host: Bytes(x)})
		all = compute(op.Add, all, g.Add(graph.Node{Kind: graph.Input, Type: op.F32, Shape: s, Ref: int32(i + 1)}))
		partial = append(partial, all)
	}
	store(all, 0)
	store(g.Add(graph.Node{Kind: graph.Resident, Type: op.F32, Shape: s, Ref: 0, Off: 0}), 100)
	g.Outputs = partial
	init := &graph.Graph{}
	n := graph.Node{Kind: graph.Store, Type: op.F32, Shape: op.Shape{300}, Ref: 1, NIn: 1}
	n.In[0] = init.Add(graph.Node{Kind: graph.Input, Type: op.F32, Shape: op.Shape{300}, Ref: 0})
	init.Add(n)
	run := func(g *graph.Graph, refs []Ref, outs [][]byte) {
		t.Helper()
		p, err := e.Compile(ctx, g)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Run(ctx, refs, outs, nil); err != nil {
			t.Fatalf("%v\n%v", err, p.Listing())
		}
	}
	start := make([]float32, 300)
	for i := range start {
		start[i] = 1
	}
	run(init, []Ref{{Host: Bytes(start)}, {Buf: b}}, nil)
	outs := make([][]byte, len(partial))
	for i := range outs {
		outs[i] = Bytes(make([]float32, 100))
	}
	run(g, refs, outs)
	got := make([]float32, 300)
	back := &graph.Graph{}
	back.Outputs = []graph.ID{back.Add(graph.Node{Kind: graph.Resident, Type: op.F32, Shape: op.Shape{300}, Ref: 0})}
	run(back, []Ref{{Buf: b}}, [][]byte{Bytes(got)})
	for k, v := range got {
		if want := float32(1 + 28*(k%100)); k < 200 && v != want || k >= 200 && v != 1 {
			t.Fatalf("element %d is %v, want %v", k, v, want)
		}
	}
	for i, o := range outs {
		if v := View[float32](o)[2]; v != float32(1+i*(i+1)) {
			t.Errorf("output %d: %v", i, v)
		}
	}
	long := &graph.Graph{}
	long.Outputs = []graph.ID{long.Add(graph.Node{Kind: graph.Input, Type: op.F32, Shape: op.Shape{1 << 20}, Ref: 0})}
	if _, err := e.Compile(ctx, long); !errors.Is(err, driver.ErrLimit) {
		t.Errorf("%v for an array larger than a binding", err)
	}
}

// TestOverwritable checks that a scan may overwrite its operand, but not if its result has a layout.
func TestOverwritable(t *testing.T) {
	order, err := op.PermuteTo(1, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, ok := op.Permute.Layout(&order, op.RowMajor(40), op.Shape{8, 5}, op.Shape{5, 8}, op.F32)
	if !ok {
		t.Fatal("no layout")
	}
	in, out := driver.Operand{Slot: 3, Type: op.F32, N: 40}, driver.Operand{Slot: 4, Type: op.F32, N: 40}
	for _, layout := range []*op.Layout{nil, &l} {
		out.Layout = layout
		want := 3
		if layout != nil {
			want = -1
		}
		s := &driver.Step{Op: op.Cumsum, In: []driver.Operand{in}, Out: []driver.Operand{out}}
		if got := overwritable(s, out, func(int) bool { return true }); got != want {
			t.Errorf("with layout %v of the result: slot %d, want %d", layout, got, want)
		}
	}
}
