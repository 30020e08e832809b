package device_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/kernel"
)

func TestCheckFindsNothing(t *testing.T) {
	dev := pinned(t)
	x := []float32{1, 2, 3}
	y := []float32{10, 20, 30}
	found, err := ready(t, dev, saxpy).Check(ctx, kernel.Grid(1), saxpyParams{3, 2}, device.In(x), device.InOut(y))
	if err != nil || len(found) > 0 {
		t.Errorf("%v, %v", found, err)
	}
	if want := []float32{12, 24, 36}; !slices.Equal(y, want) {
		t.Errorf("got %v, want %v", y, want)
	}
	bins := []uint32{7, 7}
	found, err = ready(t, dev, count).Check(ctx, kernel.Grid(1), nil, device.In([]uint32{0, 1, 1}), device.Out(bins))
	if err != nil || len(found) > 0 || !slices.Equal(bins, []uint32{1, 2}) {
		t.Errorf("%v, %v, %v", bins, found, err)
	}
}

// mirror reads what another lane wrote without waiting for it.
var mirror = kernel.New("mirror", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(64, 1, 1)
	y := kernel.InOut[kernel.F32](b, "y")
	s := kernel.Shared[kernel.F32](b, "s", 64)
	i := b.Lane()
	s.Set(i, y.At(i))
	y.Set(i, s.At(kernel.U(63).Sub(i))) // needs a Barrier before
})

func TestCheckFindsARace(t *testing.T) {
	dev := pinned(t)
	k := ready(t, dev, mirror)
	buf, err := device.Upload(ctx, dev, make([]float32, 64))
	if err != nil {
		t.Fatal(err)
	}
	for name, arg := range map[string]device.Arg{"slice": device.InOut(make([]float32, 64)), "buffer": device.Bind(buf)} {
		found, err := k.Check(ctx, kernel.Grid(1), nil, arg)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(found, func(f *device.Finding) bool { return f.Kind == interp.Race && f.Name == "s" })
		if i < 0 {
			t.Fatalf("%s: no race among %v", name, found)
		}
		if !strings.HasSuffix(found[i].File, "kernel_check_test.go") || found[i].Line == 0 {
			t.Errorf("%s: %v: not the line of the author", name, found[i])
		}
	}
}
