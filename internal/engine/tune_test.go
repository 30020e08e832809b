package engine

import (
	"context"
	"errors"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/op"
)

func TestTune(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	ctx := context.Background()
	d, err := cpu.OpenPortable(1)
	if err != nil {
		t.Fatal(err)
	}
	e := New(d)
	f := op.F32
	a := op.Attrs{}
	r, err := e.Tune(ctx, op.Sum, &a, []op.DType{f}, []op.Shape{{3000}})
	if kept := measured.Path("x") != ""; kept != (err == nil) { // web pages store nothing and return an error
		t.Fatal(err)
	}
	best := r.Times[0]
	for _, v := range r.Times {
		if v.Took < best.Took {
			best = v
		}
	}
	if len(r.Times) < 2 || best.Variant != r.Best {
		t.Errorf("%+v: the best of %+v is not %s", r, r.Times, r.Best)
	}
	// A new device of the same kind has the measurement.
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Tune(ctx, op.Sum, &a, []op.DType{f}, []op.Shape{{3000}}); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	plain, err := cpu.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	e = New(plain)
	defer e.Close()
	if _, err := e.Tune(ctx, op.Sum, &a, []op.DType{f}, []op.Shape{{3000}}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("an operation with a kernel of its own: %v", err)
	}
	if _, err := e.Tune(ctx, op.Dot, &a, []op.DType{f, f}, []op.Shape{{3}, {4}}); !errors.Is(err, driver.ErrShape) {
		t.Errorf("shapes that do not fit: %v", err)
	}
}
