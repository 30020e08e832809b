package device_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
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

// TestCheckSaysWhere checks that findings contain the author's names, and numbers with their signs.
func TestCheckSaysWhere(t *testing.T) {
	dev := pinned(t)
	below := ready(t, dev, kernel.New("below", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
		y.Set(b.Lane(), x.At(b.Lane().Sub(kernel.U(68)).Add(kernel.U(0))))
	}))
	parted := ready(t, dev, kernel.New("parted", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		y, s := kernel.Output[kernel.F32](b, "y"), kernel.Shared[kernel.F32](b, "s", 64)
		s.Set(b.Lane(), kernel.F(1))
		y.Set(b.Lane(), s.At(kernel.U(63).Sub(b.Lane())))
	}))
	for k, c := range map[*device.Kernel]struct {
		args []device.Arg
		want string
	}{
		below:  {[]device.Arg{device.In(make([]float32, 64)), device.Out(make([]float32, 64))}, "x[-68], which has 64 elements"},
		parted: {[]device.Arg{device.Out(make([]float32, 64))}, "kernel_check_test.go:"},
	} {
		found, err := k.Check(ctx, kernel.Grid(1), nil, c.args...)
		if err != nil || len(found) == 0 {
			t.Fatalf("%v: %v, %v", k, found, err)
		}
		for _, f := range found {
			if text := f.Error(); !strings.Contains(text, c.want) || strings.Contains(text, "%") || strings.Contains(text, " at v") {
				t.Errorf("%v: %s", k, text)
			}
		}
	}
}

// TestString checks the texts of kernels, buffers and devices.
func TestString(t *testing.T) {
	dev := pinned(t)
	buf, err := device.Upload(ctx, dev, make([]float32, 12), 3, 4)
	if err != nil {
		t.Fatal(err)
	}
	for want, v := range map[string]any{
		"saxpy(input x []f32, inout y []f32, N u32, Scale f32) on " + dev.String(): ready(t, dev, saxpy),
		"f32 [3 4] on " + dev.String():                                             buf,
		"no kernel":                                                                &device.Kernel{},
		"no buffer":                                                                &device.Buffer{},
	} {
		if got := fmt.Sprint(v); got != want {
			t.Errorf("%s, not %s", got, want)
		}
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
		i := slices.IndexFunc(found, func(f *device.Finding) bool { return f.Kind == device.Race && f.Name == "s" })
		if i < 0 {
			t.Fatalf("%s: the findings %v contain no race", name, found)
		}
		if !strings.HasSuffix(found[i].File, "kernel_check_test.go") || found[i].Line == 0 {
			t.Errorf("%s: the finding %v does not name the author's line", name, found[i])
		}
	}
}
