package devicetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// compare checks the result of a device against the range of the value.
func (v *known) compare(a *array) error {
	if err := a.intact(); err != nil {
		return err
	}
	size, poison := a.typ.Size(), poisonOf(a.typ)
	for i, r := range v.ranges {
		got := a.typ.Float64(a.data, i)
		switch {
		// Any byte may be a correct element, so for types of one byte the poison is an error only if the range
		// does not contain it.
		case bytes.Equal(a.data[i*size:][:size], poison) && (size > 1 || !r.Contains(got)):
			return fmt.Errorf("element %d of %v was not written", i, v.shape)
		case !r.Contains(got):
			return fmt.Errorf("element %d of %v%v is %v, want %v, from %v to %v", i, v.typ, v.shape, got, v.data[i], r.Lo, r.Hi)
		}
	}
	return nil
}

// player runs graphs on a device.
type player struct {
	dev   *device.Device
	relay *device.Kernel // nil if graphs launch no kernels
}

func newPlayer(ctx context.Context, dev *device.Device) (*player, error) {
	k, err := dev.Kernel(ctx, relay)
	return &player{dev, k}, err
}

// recording is a graph in a batch.
type recording struct {
	*graph
	b      *batch.Batch
	inputs []*array // of each node, nil if the node is not an input
	bufs   []*device.Buffer
	values []batch.Value
	outs   map[int]*array // results by value
	keeps  bool           // results are kept on the device and read after the run
}

// record records the graph over arrays with its inputs.
func (p *player) record(ctx context.Context, r *graph) (*recording, error) {
	k := &recording{graph: r, b: batch.New(p.dev), outs: map[int]*array{}}
	for _, t := range r.buffers {
		buf, err := p.upload(ctx, t)
		if err != nil {
			k.close()
			return nil, err
		}
		k.bufs = append(k.bufs, buf)
	}
	for i := range r.nodes {
		n := &r.nodes[i]
		var a *array
		if n.kind == input {
			a = arrayOf(n.source)
		}
		k.inputs = append(k.inputs, a)
		v, err := k.node(n, a, p.relay)
		if err != nil {
			k.close()
			return nil, err
		}
		k.values = append(k.values, v...)
	}
	return k, k.b.Err()
}

// node records a node.
func (k *recording) node(n *node, a *array, relay *device.Kernel) ([]batch.Value, error) {
	var in []batch.Value
	for _, x := range n.args {
		in = append(in, batch.None)
		if x >= 0 {
			in[len(in)-1] = k.values[x]
		}
	}
	switch n.kind {
	case input:
		if n.constant {
			return []batch.Value{k.b.Const(float32(n.source.Data[0]), n.source.Shape...)}, nil
		}
		return []batch.Value{a.upload(k.b, n.source.Shape)}, nil
	case used:
		return []batch.Value{k.b.Use(k.bufs[n.buf])}, nil
	case stored:
		k.b.Store(k.bufs[n.buf], n.off, in[0])
		return nil, k.b.Err()
	case launched:
		x := k.graph.values[n.args[0]]
		return k.b.Launch(relay, kernel.GridFor(len(x.data), 64), nil, batch.In(in[0]), batch.InOut(in[1]), batch.Out(op.F32, x.shape...)), k.b.Err()
	}
	return n.c.record(k.b, in)
}

func (k *recording) close() {
	for _, b := range k.bufs {
		b.Close()
	}
}

// upload makes an array on the device.
func (p *player) upload(ctx context.Context, t Tensor) (*device.Buffer, error) {
	if t.Type.Quantized() {
		return device.UploadBlocks(ctx, p.dev, t.Blocks, t.Type, t.Shape...)
	}
	buf, err := p.dev.NewBuffer(ctx, t.Type, t.Shape...)
	if err == nil {
		err = arrayOf(t).write(ctx, buf)
	}
	return buf, err
}

// ask records that the results are read, by Get or by Keep.
func (k *recording) ask(keep bool) {
	k.keeps = keep
	for _, i := range k.sinks() {
		v := k.graph.values[i]
		k.outs[i] = newArray(v.typ, len(v.data))
		if keep {
			k.b.Keep(k.values[i])
		} else {
			k.outs[i].get(k.b, k.values[i])
		}
	}
}

// check compares results and arrays on the device with the state of the interpreter.
func (k *recording) check(ctx context.Context, s *state) error {
	for i, a := range k.outs {
		if k.keeps {
			if err := a.read(ctx, k.b, k.values[i]); err != nil {
				return fmt.Errorf("v%d: %w", i, err)
			}
		}
		if err := s.values[i].compare(a); err != nil {
			return fmt.Errorf("v%d: %w", i, err)
		}
	}
	for i, buf := range k.bufs {
		m := &s.memory[i]
		if m.typ.Quantized() {
			continue
		}
		a := newArray(m.typ, len(m.data))
		if err := a.fetch(ctx, buf); err != nil {
			return err
		}
		if err := m.compare(a); err != nil {
			return fmt.Errorf("b%d: %w", i, err)
		}
	}
	return nil
}

// run executes the graph in one batch, in which a device may fuse operations, then operation by operation, then as
// a plan.
func (p *player) run(ctx context.Context, r *graph) error {
	k, err := p.record(ctx, r)
	if err != nil {
		return err
	}
	defer k.close()
	if k.ask(r.keeps); len(k.outs) == 0 {
		return nil
	}
	if err := k.b.Execute(ctx); err != nil {
		return fmt.Errorf("in one batch: %w", err)
	}
	if err := k.check(ctx, &r.state); err != nil {
		return fmt.Errorf("in one batch: %w", err)
	}
	for i, a := range k.inputs {
		if a == nil {
			continue
		}
		if err := a.unchanged(arrayOf(r.nodes[i].source)); err != nil {
			return fmt.Errorf("in one batch: v%d: %w", r.nodes[i].first, err)
		}
	}
	if err := p.alone(ctx, r); err != nil {
		return err
	}
	return p.replay(ctx, r)
}

// alone runs the operations one at a time, each on the actual results of its
// predecessors, and checks each result against the operation's own tolerance.
func (p *player) alone(ctx context.Context, r *graph) error {
	s, err := r.play(own, func(c *Case, in []known) ([]known, error) {
		one := *c
		one.In = nil
		for i := range in {
			one.In = append(one.In, in[i].tensor())
		}
		want, types, err := one.Reference()
		if err != nil {
			return nil, err
		}
		var out []*array
		for i, w := range want {
			out = append(out, newArray(types[i], len(w.Data)))
		}
		if err := one.inBatch(ctx, p.dev, one.operands(), out); err != nil {
			return nil, fmt.Errorf("alone: %v: %w", &one, err)
		}
		also, err := one.allows(r.free)
		if err != nil {
			return nil, err
		}
		var got []known
		for i, w := range want {
			if err := out[i].check(one.Op, w, &also, i); err != nil {
				return nil, fmt.Errorf("alone: result %d of %v: %w", i, &one, err)
			}
			got = append(got, exactly(out[i].tensor(w.Shape)))
		}
		if err := one.asWhole(out, want); err != nil {
			return nil, fmt.Errorf("alone: %v: %w", &one, err)
		}
		return got, nil
	})
	if err != nil {
		return err
	}
	for _, i := range r.sinks() {
		if err := r.values[i].compare(arrayOf(s.values[i].tensor())); err != nil {
			return fmt.Errorf("one by one: v%d: %w", i, err)
		}
	}
	return nil
}

// replay runs the graph as a plan, and twice more with other operands.
func (p *player) replay(ctx context.Context, r *graph) error {
	k, err := p.record(ctx, r)
	if err != nil {
		return err
	}
	defer k.close()
	k.ask(false)
	plan, err := k.b.Compile(ctx)
	if err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	defer plan.Close()
	for round := range 2 {
		s := &r.state
		if round == 1 {
			if s, err = r.others(); err != nil {
				return err
			}
		}
		var bind []batch.Binding
		for i, a := range k.inputs {
			if a == nil || r.nodes[i].constant {
				continue
			}
			v := s.values[r.nodes[i].first]
			now := arrayOf(v.tensor())
			// A scalar is a reshaped upload, so its value is not the value of the upload itself.
			if v.typ == op.F32 && len(v.shape) > 0 {
				bind = append(bind, batch.BindInput(k.values[r.nodes[i].first], now.float32s()))
				a.poison()
			} else {
				copy(a.data, now.data)
			}
		}
		for i, t := range r.buffers {
			if t.Type.Quantized() {
				continue
			}
			if err := arrayOf(t).write(ctx, k.bufs[i]); err != nil {
				return err
			}
		}
		for _, a := range k.outs {
			a.poison()
		}
		if err := plan.Run(ctx, bind...); err != nil {
			return fmt.Errorf("plan: %w", err)
		}
		if err := k.check(ctx, s); err != nil {
			return fmt.Errorf("plan, run %d: %w\n%v", round, err, plan)
		}
	}
	return nil
}

// others returns the state after a run with other inputs. If the device may assume that there are no infinities
// and NaN, the graph must not produce any. If new random inputs lead to one, for example by the root of a negative
// difference, others keeps the signs of the inputs, then their proportions, and finally the inputs themselves.
func (r *graph) others() (*state, error) {
	for try := range 16 {
		scale := 0.5 + r.g.Float64()/2
		special := false
		s, err := r.play(func(n *node) Tensor {
			if n.source.Type != op.F32 || n.constant {
				return n.source
			}
			t := r.g.tensor(op.F32, n.source.Shape, r.g.tame)
			for k, was := range n.source.Data {
				switch {
				case try >= 8:
					t.Data[k] = op.F32.Round(was * scale)
				case try >= 4:
					t.Data[k] = math.Copysign(t.Data[k], was)
				}
			}
			return t
		}, func(c *Case, in []known) ([]known, error) {
			out, err := infer(c, in, r.free)
			for _, v := range out {
				special = special || slices.ContainsFunc(v.data, func(e float64) bool { return e-e != 0 })
			}
			return out, err
		})
		if err != nil {
			return nil, err
		}
		if !special || !r.free.finite {
			return s, nil
		}
	}
	return &r.state, nil
}

// scopeOf returns the features that graphs for a device may use.
func scopeOf(ctx context.Context, dev *device.Device, quantised bool) scope {
	s := scope{any: true, quantised: quantised}
	for _, d := range op.DTypes() {
		b := batch.New(dev)
		v := b.Cast(b.Cast(b.Upload([]float32{1}), d), op.F32)
		if err := b.Execute(ctx, v); !lacks(dev, d, err) {
			s.types = append(s.types, d)
		}
	}
	return s
}

func graphs(t *testing.T, open Open) {
	dev := start(t, open)
	n := 150
	switch {
	case testutil.Raced && dev.Info().Kind != device.CPU: // the test has one goroutine and calls a library written in C
		n = 5
	case short():
		n = 20
	case strings.HasPrefix(dev.Info().Detail, "software"): // software compiles each kernel for half a second
		n = 60
	}
	t.Logf("%d graphs", n)
	seed, free := testutil.Seed(t), deviationsOf(t.Context(), dev)
	p, err := newPlayer(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	sc := scopeOf(t.Context(), dev, true)
	for i := range n {
		own := scope{}
		if i%3 > 0 {
			own = sc
		}
		r, err := newGraph(seed+uint64(i), 4+i%28, free, own)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.run(t.Context(), r); err != nil {
			t.Fatalf("graph %d: %v\n%v", i, err, r)
		}
	}
}

// fuzzGraphs is the body of a fuzz target: random graphs, in one batch, as a
// plan and operation by operation, against the reference.
func fuzzGraphs(f *testing.F, open Open) {
	for seed := range 10 {
		f.Add(uint64(1000+seed), uint8(3*seed))
	}
	dev := start(f, open)
	p, err := newPlayer(f.Context(), dev)
	if err != nil {
		f.Fatal(err)
	}
	sc := scopeOf(f.Context(), dev, true)
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		own := scope{}
		if seed%3 > 0 {
			own = sc
		}
		r, err := newGraph(seed, int(n%64), deviations{}, own)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.run(t.Context(), r); err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("%v\n%v", err, r)
		}
	})
}
