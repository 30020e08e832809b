package emulated

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/op"
)

// TestGraphOfPlaces stores rows at places that come with each submission: one graph
// serves them all.
func TestGraphOfPlaces(t *testing.T) {
	ctx := context.Background()
	e := newEmulator(cu.Capability{Major: 9}, false)
	d, err := cuda.New(e)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const rows, cols = 16, 8
	whole, row, one := op.Shape{rows, cols}, op.Shape{1, cols}, op.Shape{1}
	buf := driver.Operand{Slot: 0, Type: op.F32, N: rows * cols}
	p := &driver.Program{Ext: 4, Slots: []driver.Slot{
		{Type: op.F32, Shape: whole, Bytes: 4 * rows * cols, Ext: 0, Written: true},
		{Type: op.I32, Shape: one, Bytes: 4, Ext: 1},
		{Type: op.F32, Shape: row, Bytes: 4 * cols, Ext: 2},
		{Type: op.F32, Shape: whole, Bytes: 4 * rows * cols, Ext: 3, Written: true},
	}, Steps: []driver.Step{
		{Op: op.Update, Attrs: op.UpdateOf(0), In: []driver.Operand{buf, {Slot: 1, Type: op.I32, N: 1}, {Slot: 2, Type: op.F32, N: cols}},
			Out: []driver.Operand{buf}, Dims: []op.Shape{whole, one, row, whole}},
		{Post: &driver.Fused{In: []driver.Operand{buf}, Body: []driver.Instr{{Op: op.Neg, Args: []int{0}, Type: op.F32}}, Out: []int{1}, Shape: whole},
			Out: []driver.Operand{{Slot: 3, Type: op.F32, N: rows * cols}}},
	}}
	x, err := d.Prepare(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	m, err := d.Alloc(4 * rows * cols)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	want := make([]float32, rows*cols)
	written := make([]bool, rows)
	for i := range 2 * rows {
		place := i * 5 % (rows + 2) // two of them are behind the last row
		at, v, out := binary.NativeEndian.AppendUint32(nil, uint32(place)), []byte(nil), make([]byte, 4*rows*cols)
		for k := range cols {
			f := float32(i*cols + k)
			v = binary.NativeEndian.AppendUint32(v, math.Float32bits(f))
			if place < rows {
				want[place*cols+k], written[place] = -f, true
			}
		}
		f, err := x.Submit(ctx, &driver.Submission{Ext: []driver.Binding{{Mem: m}, {Host: at}, {Host: v}, {Host: out}}, Wait: true})
		if err == nil && f != nil {
			err = f.Wait(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		for k, w := range want {
			if got := math.Float32frombits(binary.NativeEndian.Uint32(out[4*k:])); written[k/cols] && got != w {
				t.Fatalf("submission %d: element %d is %v, want %v", i, k, got, w)
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.live["graphs"] != 1 {
		t.Errorf("%d graphs, want 1", e.live["graphs"])
	}
}
