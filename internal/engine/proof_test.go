package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/op"
)

// miscompiled is a device whose kernels of one operation get the last element
// of their result wrong.
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
		if s := &p.Steps[i]; s.Op == d.o {
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

// TestProofs: each operation is tested before its first use, and one that is
// wrong is refused while the others work.
func TestProofs(t *testing.T) {
	ctx := context.Background()
	for _, o := range op.Catalogue() {
		if o.Class() == op.Elementwise || unproven[o] {
			continue
		}
		if _, ok := probes[o]; !ok && o.Class() == op.Shaped {
			t.Errorf("%s has no self-test: add a probe", o)
			continue
		}
		c, err := cpu.Open(1)
		if err != nil {
			t.Fatal(err)
		}
		e := New(&miscompiled{graphOnly{c}, o})
		before := e.Stats()
		for range 2 {
			if err := e.prove(ctx, o); !errors.Is(err, driver.ErrUnsupported) || !errors.Is(err, errWrong) {
				t.Errorf("%s miscompiled: %v", o, err)
			}
		}
		other := op.Sum
		if o == op.Sum {
			other = op.Softmax
		}
		if err := e.prove(ctx, other); err != nil {
			t.Errorf("%s where %s is miscompiled: %v", other, o, err)
		}
		if s := e.Stats(); s != before || e.executables() != 0 {
			t.Errorf("%s: %+v before the tests, %+v after, %d programs", o, before, s, e.executables())
		}
		e.Close()
	}
	// By the ways that calls take.
	c, err := cpu.Open(1)
	if err != nil {
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
