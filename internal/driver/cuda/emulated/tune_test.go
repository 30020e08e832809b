package emulated

import (
	"context"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// TestTune measures the schedules of a native product, and checks that each has a module and that the fastest is kept.
func TestTune(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	ctx := context.Background()
	emulator, modules := newEmulator(cu.Capability{Major: 8}, false), 0
	emulator.fail = func(what string) error {
		if what == "load" {
			modules++
		}
		return nil
	}
	d, err := cuda.New(emulator)
	if err != nil {
		t.Fatal(err)
	}
	e := engine.New(d)
	defer e.Close()
	a := op.MatMulOpts{}.Attrs()
	types, shapes := []op.DType{op.F32, op.F32}, []op.Shape{{24, 8}, {8, 24}}
	r, err := e.Tune(ctx, op.MatMul, &a, types, shapes)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Times) < 2 || modules < len(r.Times) {
		t.Fatalf("%+v: %d modules", r, modules)
	}
	key := portable.Key(&portable.Request{Op: op.MatMul, Attrs: a, In: []portable.Array{{Type: types[0], Shape: shapes[0]}, {Type: types[1], Shape: shapes[1]}}})
	var kept driver.Variants
	if got := kept.Of(d.Info().Identity)[key]; got != r.Best {
		t.Errorf("kept %q, not %q", got, r.Best)
	}
}
