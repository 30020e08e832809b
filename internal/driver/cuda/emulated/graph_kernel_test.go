package emulated

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

type powerParams struct {
	N, Ahead uint32 // elements, and how far before them the kernel reads
	Factor   float32
}

// TestKernelGraph runs a program of a user's kernels with parameters often enough that
// it becomes a graph, which serves all parameters and reports faults.
func TestKernelGraph(t *testing.T) {
	ctx := context.Background()
	const n, steps = 100, 5
	scale := kernel.New("scale", func(b *kernel.Builder, p *powerParams) {
		b.LocalSize(64, 1, 1)
		x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
		i := b.Index()
		b.If(i.Lt(b.U32(&p.N)), func() { y.Set(i, x.At(i.Add(b.U32(&p.Ahead))).Mul(b.F32(&p.Factor))) })
	})
	prog, err := scale.Program()
	if err != nil {
		t.Fatal(err)
	}
	p := negations(n, steps)
	p.Ext = 3
	params := len(p.Slots)
	p.Slots = append(p.Slots, driver.Slot{Type: op.U32, Shape: op.Shape{3}, Bytes: 12, Ext: 2})
	for i := range p.Steps {
		p.Steps[i] = driver.Step{In: []driver.Operand{{Slot: i, Type: op.F32, N: n}, {Slot: params, Type: op.U32, N: 3}}, Out: p.Steps[i].Out,
			Kernel: &driver.Kernel{Program: prog, Grid: [3]uint32{2, 1, 1}, Params: params, Bind: []int{i, i + 1}}}
	}
	e := newEmulator(cu.Capability{Major: 8}, false)
	d, err := cuda.New(e)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x, err := d.Prepare(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	run := func(factor float32, ahead uint32) ([]byte, error) {
		in, out := make([]byte, 4*n), make([]byte, 4*n)
		for i := range n {
			binary.NativeEndian.PutUint32(in[4*i:], math.Float32bits(float32(i)))
		}
		block := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, n), ahead)
		block = binary.NativeEndian.AppendUint32(block, math.Float32bits(factor))
		_, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Host: in}, {Host: out}, {Host: block}}, Wait: true})
		return out, err
	}
	for turn := range 6 {
		factor := float32(turn + 1)
		out, err := run(factor, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			want := float32(i) * float32(math.Pow(float64(factor), steps))
			if got := math.Float32frombits(binary.NativeEndian.Uint32(out[4*i:])); got != want {
				t.Fatalf("run %d: element %d is %v, not %v", turn, i, got, want)
			}
		}
	}
	e.mu.Lock()
	if e.live["graphs"] != 1 {
		t.Errorf("%d graphs, not 1", e.live["graphs"])
	}
	e.mu.Unlock()
	if _, err := run(1, 7); !errors.Is(err, driver.ErrFault) {
		t.Errorf("a read behind the end in a graph: %v", err)
	}
	if _, err := run(1, 0); err != nil {
		t.Errorf("the run after a fault: %v", err)
	}
}
