package engine

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/op"
)

// miscompiled is a device whose kernels of one operation compute the last element of the result
// incorrectly.
type miscompiled struct {
	driver.Device
	o *op.Operation
}

type misprogram struct {
	driver.Executable
	outs []int // external slots of the results
}

func (d *miscompiled) Prepare(ctx context.Context, p *driver.Program) (driver.Executable, error) {
	x, err := d.Device.Prepare(ctx, p)
	m := &misprogram{Executable: x}
	for i := range p.Steps {
		s := &p.Steps[i]
		moves := d.o == op.Permute && s.Post != nil && s.Post.In[0].Layout != nil
		if s.Op == d.o || moves || s.Post != nil && slices.ContainsFunc(s.Post.Body, func(in driver.Instr) bool { return in.Op == d.o }) {
			for _, o := range s.Out {
				if e := p.Slots[o.Slot].Ext; e >= 0 {
					m.outs = append(m.outs, e)
				}
			}
		}
	}
	return m, err
}

func (x *misprogram) Submit(ctx context.Context, s *driver.Submission) (driver.Fence, error) {
	f, err := x.Executable.Submit(ctx, s)
	if err == nil && f == nil {
		for _, o := range x.outs {
			h := s.Ext[o].Host
			h[len(h)-2] ^= 0x40 // of the exponent
		}
	}
	return f, err
}

// TestProofs checks that each operation is tested before its first use, and that a wrong operation
// is refused while the others work.
func TestProofs(t *testing.T) {
	ctx := context.Background()
	for _, o := range op.Catalogue() {
		if selfTestOf(o) != o {
			continue
		}
		if untested(o) {
			if o.Class() == op.Shaped && o != op.Reshape {
				t.Errorf("%s has no self-test: give its definition a selfTest", o)
			}
			continue
		}
		c, err := cpu.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		e := New(&miscompiled{graphOnly{c}, o})
		before := e.Stats()
		for range 2 {
			if err := e.selfTest(ctx, o, usual); !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, ErrWrong) {
				t.Errorf("%s miscompiled: %v", o, err)
			}
		}
		other := op.Sum
		if o == op.Sum {
			other = op.Softmax
		}
		if err := e.selfTest(ctx, other, usual); err != nil {
			t.Errorf("%s where %s is miscompiled: %v", other, o, err)
		}
		if s := e.Stats(); s != before || e.executables() != 0 {
			t.Errorf("%s: %+v before the tests, %+v after, %d programs", o, before, s, e.executables())
		}
		e.Close()
	}
	// For each size class.
	for _, o := range []*op.Operation{op.MatMul, op.Softmax, op.Max} {
		c, err := cpu.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		good, bad := New(graphOnly{c}), New(&miscompiled{graphOnly{c}, o})
		for size := range sizes {
			if err := good.selfTest(ctx, o, size); err != nil {
				t.Errorf("%s, size %d: %v", o, size, err)
			}
			if err := bad.selfTest(ctx, o, size); !errors.Is(err, ErrWrong) {
				t.Errorf("%s miscompiled, size %d: %v", o, size, err)
			}
		}
		shapes := []op.Shape{{3, widths[0]}}
		if o != op.MatMul {
			attrs := o.Defaults().Rows()
			for size, w := range widths {
				shapes[0][1] = w
				if got := sizeOf(o, &attrs, shapes); got != size {
					t.Errorf("%s of %d columns is tested as size %d, not %d", o, w, got, size)
				}
			}
		}
		bad.Close()
	}
	// Each type of quantised weights has separate kernels.
	c, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	good, bad := New(graphOnly{c}), New(&miscompiled{graphOnly{c}, op.MatMulQ})
	for size, d := range op.QuantTypes() {
		if err := good.selfTest(ctx, op.MatMulQ, size); err != nil {
			t.Errorf("matmul_q by %v: %v", d, err)
		}
		if err := bad.selfTest(ctx, op.MatMulQ, size); !errors.Is(err, ErrWrong) {
			t.Errorf("matmul_q by %v miscompiled: %v", d, err)
		}
	}
	bad.Close()
	for _, size := range []int{usual, 2, 3, sizes - 1} {
		p := products[size]
		if got := sizeOf(op.MatMul, &op.Attrs{}, []op.Shape{p[:2], p[1:]}); got != size {
			t.Errorf("a product of %v is tested as size %d, not %d", p, got, size)
		}
	}
	// Through each path of calls.
	if c, err = cpu.Open(1); err != nil {
		t.Fatal(err)
	}
	e := New(&miscompiled{graphOnly{c}, op.Dot})
	defer e.Close()
	x := []float32{1, 2, 3}
	if _, err := e.Reduce(ctx, op.Dot, &op.Attrs{}, x, x); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("a call of what is miscompiled: %v", err)
	}
	if _, err := e.Reduce(ctx, op.Sum, &op.Attrs{}, x, nil); err != nil {
		t.Error(err)
	}
}

// TestOperationWithoutKernel checks that an operation with a shape rule and a reference, but
// without a kernel or a probe, runs in calls and in graphs.
func TestOperationWithoutKernel(t *testing.T) {
	var o op.Operation // a copy of transpose, whose address is in no table
	reflect.ValueOf(&o).Elem().Set(reflect.ValueOf(op.Transpose).Elem())
	x, want := []float32{1, 2, 3, 4, 5, 6}, []float32{1, 4, 2, 5, 3, 6}
	in := []Host{HostOf(Bytes(x), op.F32, op.Shape{2, 3})}
	e := open(t)
	for name, run := range map[string]func(context.Context, *op.Operation, *op.Attrs, []Host, []Host) error{"call": e.Call, "graph": e.viaGraph} {
		got := make([]float32, 6)
		if err := run(t.Context(), &o, &op.Attrs{}, in, []Host{HostOf(Bytes(got), op.F32, op.Shape{3, 2})}); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v, want %v", name, got, err, want)
		}
	}
}
