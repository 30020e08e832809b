package compute

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
)

func cpu(t *testing.T) *device.Device {
	t.Helper()
	dev, err := device.Open(context.Background(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

// picture is a gradient with some noise.
func picture(w, h int) []byte {
	p := make([]byte, 4*w*h)
	for i := range p {
		p[i] = byte(i*i%251 + i/(4*w))
	}
	return p
}

// want returns channel c of pixel x, y filtered, in float64, from 0 to 1.
func want(name string, p []byte, w, h, x, y, c int, by float64) float64 {
	at := func(x, y, c int) float64 {
		x, y = min(max(x, 0), w-1), min(max(y, 0), h-1)
		return float64(p[4*(y*w+x)+c]) / 255
	}
	grey := func(x, y int) float64 { return 0.299*at(x, y, 0) + 0.587*at(x, y, 1) + 0.114*at(x, y, 2) }
	soft := 0.0
	for v, f := range []float64{1, 4, 6, 4, 1} {
		for u, g := range []float64{1, 4, 6, 4, 1} {
			soft += f * g / 256 * at(x+u-2, y+v-2, c)
		}
	}
	i, full := at(x, y, c), 0.0
	switch name {
	case "contrast":
		return (i-0.5)*(1+2*by) + 0.5
	case "saturation":
		return grey(x, y) + (i-grey(x, y))*3*by
	case "sharpen":
		return i + (i-soft)*3*by
	case "sepia":
		full = grey(x, y) * []float64{1.12, 0.93, 0.7}[c]
	case "invert":
		full = 1 - i
	case "blur":
		full = soft
	case "edges":
		across := grey(x+1, y-1) + 2*grey(x+1, y) + grey(x+1, y+1) - grey(x-1, y-1) - 2*grey(x-1, y) - grey(x-1, y+1)
		down := grey(x-1, y+1) + 2*grey(x, y+1) + grey(x+1, y+1) - grey(x-1, y-1) - 2*grey(x, y-1) - grey(x+1, y-1)
		full = math.Hypot(across, down)
	}
	return i + (full-i)*by
}

func TestFilters(t *testing.T) {
	ctx, dev := context.Background(), cpu(t)
	if len(Filters) != len(filters) {
		t.Fatalf("%d filters have names, expected %d", len(Filters), len(filters))
	}
	for _, size := range [][2]int{{1, 1}, {7, 5}, {33, 20}} {
		w, h := size[0], size[1]
		for _, name := range Filters {
			f, err := NewFilter(ctx, dev, name, w, h)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for _, by := range []float32{0, 0.3, 1} {
				before := picture(w, h)
				after := slices.Clone(before)
				if err := f.Run(ctx, after, by); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for i := range after {
					exact := float64(before[i])
					if c := i % 4; c < 3 {
						exact = 255 * min(max(want(name, before, w, h, i/4%w, i/4/w, c, float64(by)), 0), 1)
					}
					if math.Abs(float64(after[i])-exact) > 0.51 {
						t.Fatalf("%s by %v of %d×%d: byte %d is %d, not %.2f", name, by, w, h, i, after[i], exact)
					}
				}
			}
			if err := f.Run(ctx, make([]byte, 3), 1); !errors.Is(err, device.ErrShape) {
				t.Errorf("filter %s of 3 bytes gave the error %v", name, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := NewFilter(ctx, dev, "no such", 1, 1); !errors.Is(err, device.ErrUnsupported) {
		t.Error(err)
	}
	for _, size := range [][2]int{{0, 1}, {-1, -1}, {math.MaxInt, math.MaxInt}, {1 << 15, 1 << 15}} {
		if _, err := NewFilter(ctx, dev, "blur", size[0], size[1]); !errors.Is(err, device.ErrLimit) {
			t.Errorf("%v: %v", size, err)
		}
	}
}

func TestMandelbrot(t *testing.T) {
	ctx, dev := context.Background(), cpu(t)
	const w, h, steps = 60, 40, 50
	got := make([]byte, 4*w*h)
	if err := Mandelbrot(ctx, dev, got, w, h, -0.5, 0, 3, steps); err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for i := range w * h {
		c := complex(-2+3.0/w*float64(i%w), 3.0/w*(h/2-float64(i/w)))
		z, n := complex128(0), 0
		for n < steps && real(z)*real(z)+imag(z)*imag(z) <= 4 {
			z, n = z*z+c, n+1
		}
		if !slices.Equal(got[4*i:4*i+4], colour(float64(n), steps)) {
			wrong++
		}
	}
	// Rounding to float32 changes the counts of points near the edge of the set.
	if wrong > w*h/50 {
		t.Errorf("%d of %d points have other colours", wrong, w*h)
	}
	for _, err := range []error{
		Mandelbrot(ctx, dev, got, w, h+1, 0, 0, 3, steps), Mandelbrot(ctx, dev, nil, 0, 0, 0, 0, 3, steps), Mandelbrot(ctx, dev, got, w, h, 0, 0, 3, 0),
	} {
		if err == nil {
			t.Error("a wrong call gave no error")
		}
	}
}

func TestDigits(t *testing.T) {
	ctx := context.Background()
	d, err := NewDigits(ctx, cpu(t))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	right := 0
	for i := range 397 {
		pixels, digit := Sample(i)
		p, err := d.Read(ctx, pixels)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Index(p, slices.Max(p)) == digit {
			right++
		}
	}
	if right != 375 {
		t.Errorf("%d of 397 digits are right, expected 375 as in examples/digits", right)
	}
	if _, err := d.Read(ctx, nil); !errors.Is(err, device.ErrShape) {
		t.Error(err)
	}
}

func TestReduce(t *testing.T) {
	// Reduce scales a square of any place and size to 32 points.
	for _, c := range [][3]int{{0, 0, 32}, {5, 9, 64}, {60, 60, 20}} {
		ink := make([]byte, 100*100)
		for y := range c[2] {
			for x := range c[2] {
				if ink := ink; x < 100-c[0] && y < 100-c[1] {
					ink[(c[1]+y)*100+c[0]+x] = 255
				}
			}
		}
		p, err := Reduce(ink, 100, 100)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range p {
			if v != 16 {
				t.Fatalf("%v: pixel %d is %v, not 16", c, i, v)
			}
		}
	}
	empty, err := Reduce(make([]byte, 12), 4, 3)
	if err != nil || slices.Max(empty) != 0 {
		t.Errorf("an empty drawing gave %v, error %v", empty, err)
	}
	if _, err := Reduce(nil, 4, 3); !errors.Is(err, device.ErrShape) {
		t.Error(err)
	}
}

func TestBench(t *testing.T) {
	for _, name := range []string{"matmul", "softmax"} {
		r, err := Bench(context.Background(), cpu(t), name)
		if err != nil || !(r.Device > 0 && r.Plain > 0) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Bench(context.Background(), cpu(t), "no such"); !errors.Is(err, device.ErrUnsupported) {
		t.Error(err)
	}
}
