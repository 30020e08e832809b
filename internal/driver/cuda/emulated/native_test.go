package emulated

import (
	"bytes"
	"context"
	"math/rand/v2"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/op"
)

// TestUnaligned runs a native kernel, of a program of bfloat16, over arrays of the
// device that begin anywhere.
func TestUnaligned(t *testing.T) {
	ctx := context.Background()
	const n = 4200 // of float32; twice as many here
	p := negations(n, 1)
	for i := range p.Slots {
		p.Slots[i].Type, p.Slots[i].Shape = op.BF16, op.Shape{2 * n}
	}
	s := &p.Steps[0]
	s.Post.Shape = op.Shape{2 * n}
	for _, o := range []*driver.Operand{&s.Post.In[0], &s.Out[0]} {
		o.Type, o.N = op.BF16, 2*n
	}
	s.Post.Body[0].Type = op.BF16
	d, err := cuda.New(newEmulator(cu.Capability{Major: 9}, true))
	if err != nil {
		t.Fatal(err)
	}
	x, err := d.Prepare(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	in, _ := pairOf(n)
	for i := 1; i < len(in); i += 4 {
		in[i] &= 0xbf // no NaN in the lower halves either
	}
	want := bytes.Clone(in)
	for i := 1; i < len(want); i += 2 {
		want[i] ^= 0x80
	}
	for _, off := range [][2]int64{{0, 0}, {4, 0}, {0, 8}, {12, 4}} {
		var mem [2]driver.Memory
		for i := range mem {
			if mem[i], err = d.Alloc(4*n + 32); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(d, mem[0], off[0], in); err != nil {
			t.Fatal(err)
		}
		guard := bytes.Repeat([]byte{0xa5}, 4*n+32)
		if err := write(d, mem[1], 0, guard); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Mem: mem[0], Off: off[0]}, {Mem: mem[1], Off: off[1]}}, Wait: true}); err != nil {
				t.Fatal(err)
			}
		}
		out := bytes.Clone(guard)
		if err := read(d, mem[1], out); err != nil {
			t.Fatal(err)
		}
		copy(guard[off[1]:], want)
		if !bytes.Equal(out, guard) {
			t.Errorf("%d and %d bytes from a multiple of 256: a wrong result", off[0], off[1])
		}
		for _, m := range mem {
			m.Free()
		}
	}
	x.Close()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

// TestUnalignedRows runs a native kernel that needs aligned memory over arrays that begin at
// any address of the device: the results must equal those of aligned arrays.
func TestUnalignedRows(t *testing.T) {
	ctx := context.Background()
	shape := op.Shape{5, 100}
	const n = 500
	p := &driver.Program{Ext: 2}
	for i := range 2 {
		p.Slots = append(p.Slots, driver.Slot{Type: op.F32, Shape: shape, Bytes: 4 * n, Ext: i, Written: i > 0})
	}
	p.Steps = []driver.Step{{Op: op.LogSoftmax, Attrs: op.LogSoftmax.Defaults(), Dims: []op.Shape{shape, shape},
		In: []driver.Operand{{Type: op.F32, N: n}}, Out: []driver.Operand{{Slot: 1, Type: op.F32, N: n}}}}
	d, err := cuda.New(newEmulator(cu.Capability{Major: 9}, true))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	x, err := d.Prepare(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	in := make([]byte, 4*n)
	for i := range n {
		op.F32.PutFloat64(in, i, rand.NormFloat64())
	}
	var want []byte
	for _, off := range [][2]int64{{0, 0}, {4, 0}, {0, 8}, {12, 4}} {
		var mem [2]driver.Memory
		for i := range mem {
			if mem[i], err = d.Alloc(4*n + 16); err != nil {
				t.Fatal(err)
			}
			defer mem[i].Free()
		}
		if err := write(d, mem[0], off[0], in); err != nil {
			t.Fatal(err)
		}
		if _, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Mem: mem[0], Off: off[0]}, {Mem: mem[1], Off: off[1]}}, Wait: true}); err != nil {
			t.Fatal(err)
		}
		all := make([]byte, 4*n+16)
		if err := read(d, mem[1], all); err != nil {
			t.Fatal(err)
		}
		out := all[off[1]:][:4*n]
		if want == nil {
			want = out
		}
		if !bytes.Equal(out, want) {
			t.Errorf("%d and %d bytes from a multiple of 256: another result", off[0], off[1])
		}
	}
}

// TestParameters requires that programs which differ in parameters alone have one
// kernel.
func TestParameters(t *testing.T) {
	ctx := context.Background()
	e := newEmulator(cu.Capability{Major: 9}, true)
	d, err := cuda.New(e)
	if err != nil {
		t.Fatal(err)
	}
	const n = 10
	for _, factor := range []float32{2, -0.5, 3, 1, 0} {
		p := negations(n, 1)
		i := &p.Steps[0].Post.Body[0]
		i.Op, i.Attrs = op.Scale, op.Floats(factor)
		x, err := d.Prepare(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]byte, 4*n), make([]byte, 4*n)
		for k := range n {
			op.F32.PutFloat64(in, k, float64(k))
		}
		if _, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Host: in}, {Host: out}}, Wait: true}); err != nil {
			t.Fatal(err)
		}
		for k := range n {
			if got, want := op.F32.Float64(out, k), float64(k)*float64(factor); got != want {
				t.Errorf("%d times %v is %v", k, factor, got)
			}
		}
		x.Close()
	}
	e.mu.Lock()
	modules := e.live["modules"]
	e.mu.Unlock()
	if modules != 1 {
		t.Errorf("%d modules", modules)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
