package cpu

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// open returns a device with the given number of threads for one test.
func open(t testing.TB, threads int) *processor {
	t.Helper()
	d, err := Open(threads)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d.(*processor)
}

// chosen reports whether to run one of many cases of a kind. Without -short it is always true. With
// -short it is true for a random one in n cases, in 2n under the race detector, or in 3n under
// emulation. The messages of failures name the case.
func chosen(n int) bool {
	if testutil.Raced {
		n *= 2
	} else if runtime.GOARCH != "amd64" {
		n *= 3
	}
	return !testing.Short() || rand.IntN(n) == 0
}

// A rig builds a program step by step and computes its expected results.
type rig struct {
	t    testing.TB
	rand *rand.Rand
	p    driver.Program
	data [][]byte // contents of the external slots: operands, and results before the run
	want []result
	// casts lets random programs round to halves. A small error of an operand may then
	// become a large error of the result.
	casts bool
}

type result struct {
	slot  int
	want  *op.Array
	check func(got, want, mag float64, d op.DType) error
}

func newRig(t testing.TB, seed uint64) *rig {
	return &rig{t: t, rand: rand.New(rand.NewPCG(seed, 1))}
}

// slot adds an external slot. There are guard bytes before and after its memory.
func (r *rig) slot(t op.DType, s op.Shape, written bool) int {
	r.t.Helper()
	n, err := s.Size()
	if err != nil {
		r.t.Fatal(err)
	}
	r.p.Slots = append(r.p.Slots, driver.Slot{Type: t, Shape: s, Bytes: int64(n * t.Size()), Ext: r.p.Ext, Written: written})
	r.p.Ext++
	r.data = append(r.data, guarded(n*t.Size()))
	return len(r.p.Slots) - 1
}

const guard = 64

// guarded returns bytes with guard bytes on both sides in their array.
func guarded(bytes int) []byte {
	words := make([]uint64, (bytes+2*guard+7)/8)
	b := unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), len(words)*8)
	for i := range b {
		b[i] = 0xa5
	}
	return b[guard : guard+bytes]
}

// checkGuards reports writes outside b.
func checkGuards(t testing.TB, b []byte) {
	t.Helper()
	all := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -guard)), len(b)+2*guard)
	for i := range guard {
		if all[i] != 0xa5 || all[guard+len(b)+i] != 0xa5 {
			t.Fatalf("wrote outside %d bytes", len(b))
		}
	}
}

// input adds an operand of random elements and returns its slot and value.
func (r *rig) input(t op.DType, s op.Shape) (int, *op.Array) {
	slot := r.slot(t, s, false)
	return slot, r.randomize(slot)
}

// randomize fills the memory of an external slot and returns its value.
func (r *rig) randomize(slot int) *op.Array {
	s := &r.p.Slots[slot]
	a := op.NewArray(s.Shape)
	mem := r.data[s.Ext]
	for i := range a.Data {
		v := r.rand.NormFloat64() * 1.5
		switch s.Type {
		case op.I32:
			v = float64(r.rand.IntN(41) - 20)
		case op.U32:
			v = float64(r.rand.IntN(41))
		case op.Bool:
			v = float64(r.rand.IntN(2))
		}
		s.Type.PutFloat64(mem, i, v)
		a.Data[i] = s.Type.Float64(mem, i)
	}
	return a
}

// output adds a result.
func (r *rig) output(t op.DType, want *op.Array, check func(got, want, mag float64, d op.DType) error) int {
	slot := r.slot(t, want.Shape, true)
	r.want = append(r.want, result{slot, want, check})
	return slot
}

// operand describes the use of a slot by an elementwise program over shape.
func (r *rig) operand(slot int, over op.Shape) driver.Operand {
	r.t.Helper()
	s := &r.p.Slots[slot]
	n, _ := s.Shape.Size()
	o := driver.Operand{Slot: slot, Type: s.Type, N: n}
	if over != nil {
		spread, err := op.BroadcastOf(s.Shape, over)
		if err != nil {
			r.t.Fatal(err)
		}
		o.Broadcast = spread
	}
	return o
}

// poison fills the results with bits that no operation returns.
func (r *rig) poison() {
	for _, w := range r.want {
		mem := r.data[r.p.Slots[w.slot].Ext]
		for i := range mem {
			mem[i] = 0xff // NaN, and -1 in integers
		}
	}
}

func (r *rig) bindings() []driver.Binding {
	ext := make([]driver.Binding, len(r.data))
	for i, b := range r.data {
		ext[i].Host = b
	}
	return ext
}

// call returns a call of the only operation of the program, over the memory of its slots.
func (r *rig) call(d *processor) func() error {
	ctx, s := context.Background(), &r.p.Steps[0]
	if s.Op == nil {
		in := &s.Post.Body[0]
		var x [4][]float32 // operands, then the result
		for i, o := range append(s.Post.In[:len(s.Post.In):len(s.Post.In)], s.Out...) {
			b := r.data[r.p.Slots[o.Slot].Ext]
			x[i] = unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
		}
		y := x[len(s.Post.In)]
		return func() error { return d.Elementwise(ctx, in.Op, &in.Attrs, y, x[0], x[1], x[2]) }
	}
	hosts := func(os []driver.Operand, dims []op.Shape) []driver.Host {
		h := make([]driver.Host, len(os))
		for i, o := range os {
			if o.Slot >= 0 {
				h[i].Set(r.data[r.p.Slots[o.Slot].Ext], o.Type, dims[i])
			}
		}
		return h
	}
	in, out := hosts(s.In, s.Dims), hosts(s.Out, s.Dims[len(s.In):])
	return func() error { return d.Call(ctx, s.Op, &s.Attrs, in, out) }
}

// verify compares the results with the expected ones.
func (r *rig) verify(what string) {
	r.t.Helper()
	for _, b := range r.data {
		checkGuards(r.t, b)
	}
	for k, w := range r.want {
		s := &r.p.Slots[w.slot]
		for i, want := range w.want.Data {
			mag := 0.0
			if w.want.Mag != nil {
				mag = w.want.Mag[i]
			}
			got := s.Type.Float64(r.data[s.Ext], i)
			if err := w.check(got, want, mag, s.Type); err != nil {
				r.t.Fatalf("%s: result %d of %v %v, element %d: %v", what, k, s.Type, s.Shape, i, err)
			}
		}
	}
}

// run prepares the program and runs it synchronously and asynchronously.
func (r *rig) run(d *processor, what string) {
	r.t.Helper()
	ctx := context.Background()
	e, err := d.Prepare(ctx, &r.p)
	if err != nil {
		r.t.Fatalf("%s: %v", what, err)
	}
	defer e.Close()
	for _, wait := range []bool{true, true, false} {
		r.poison()
		f, err := e.Submit(ctx, &driver.Submission{Ext: r.bindings(), Wait: wait})
		if err == nil && !wait {
			err = f.Wait(ctx)
		}
		if err != nil {
			r.t.Fatalf("%s: %v", what, err)
		}
		r.verify(fmt.Sprintf("%s, wait %v", what, wait))
	}
}

// immediate runs the only operation of a program with [driver.Immediate].
func (r *rig) immediate(d *processor, what string) {
	r.t.Helper()
	call := r.call(d)
	for range 2 {
		r.poison()
		if err := call(); err != nil {
			r.t.Fatalf("%s, at once: %v", what, err)
		}
		r.verify(what + ", at once")
	}
}

// loose is a comparison for programs of several well-conditioned operations, whose rounding errors
// may accumulate.
func loose(got, want, _ float64, d op.DType) error {
	if got == want || got != got && want != want {
		return nil
	}
	eps := 3e-6
	switch d {
	case op.F16:
		eps = 2e-3
		if math.IsInf(got, 0) && math.Abs(want) > 65000 && got*want > 0 {
			return nil
		}
	case op.BF16:
		eps = 1e-2
	case op.F32:
	default:
		return fmt.Errorf("got %v, want %v", got, want)
	}
	if math.Abs(got-want) <= eps*(1+math.Abs(want)) {
		return nil
	}
	return fmt.Errorf("got %v, want %v", got, want)
}
