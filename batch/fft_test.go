package batch_test

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestLongFFT compares some elements of long transforms with their definition in float64: of three
// and four factors, and of a length with a large prime factor.
func TestLongFFT(t *testing.T) {
	rng := testutil.Rand(t)
	dev := openCPU(t)
	for _, n := range []int{128 * 130, 1 << 15, 2 * 9973, 1 << 19} {
		x := make([]float32, 2*n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		b := batch.New(dev)
		v := b.FFT(b.Upload(x, n, 2))
		if err := b.Execute(t.Context(), v); err != nil {
			t.Fatal(err)
		}
		y, err := batch.Read[float32](t.Context(), b, v)
		if err != nil {
			t.Fatal(err)
		}
		roots := make([]complex128, n)
		for j := range roots {
			roots[j] = cmplx.Rect(1, -2*math.Pi*float64(j)/float64(n))
		}
		for range 20 {
			k := rng.IntN(n)
			var want complex128
			for j := range n {
				want += complex(float64(x[2*j]), float64(x[2*j+1])) * roots[j*k%n]
			}
			// An element of the result has a magnitude of about the root of 2n.
			got := complex(float64(y[2*k]), float64(y[2*k+1]))
			if e := cmplx.Abs(got-want) / math.Sqrt(2*float64(n)); !(e <= 1e-5) {
				t.Errorf("element %d of %d: got %v, want %v", k, n, got, want)
			}
		}
	}
}

// TestFFTMistakes checks that invalid operands give errors.
func TestFFTMistakes(t *testing.T) {
	dev := openCPU(t)
	for name, c := range map[string]struct {
		do   func(b *batch.Batch) batch.Value
		want error
	}{
		"not pairs":  {func(b *batch.Batch) batch.Value { return b.FFT(b.Upload(make([]float32, 9), 3, 3)) }, device.ErrShape},
		"one axis":   {func(b *batch.Batch) batch.Value { return b.IFFT(b.Upload(make([]float32, 2), 2)) }, device.ErrShape},
		"empty axis": {func(b *batch.Batch) batch.Value { return b.RFFT(b.Upload([]float32{}, 3, 0)) }, device.ErrShape},
		"other axis": {func(b *batch.Batch) batch.Value {
			return b.RFFT(b.Upload(make([]float32, 4), 4), op.FFTOpts{Along: op.Axes(1)})
		}, device.ErrShape},
		"other norm": {func(b *batch.Batch) batch.Value { return b.RFFT(b.Upload(make([]float32, 4), 4), op.FFTOpts{Norm: 9}) }, device.ErrShape},
		"two options": {func(b *batch.Batch) batch.Value {
			return b.RFFT(b.Upload(make([]float32, 4), 4), op.FFTOpts{}, op.FFTOpts{})
		}, device.ErrShape},
		"other half":  {func(b *batch.Batch) batch.Value { return b.IRFFT(b.Upload(make([]float32, 8), 4, 2), 9) }, device.ErrShape},
		"half of one": {func(b *batch.Batch) batch.Value { return b.IRFFT(b.Upload(make([]float32, 2), 1, 2), 0) }, device.ErrShape},
		"integers":    {func(b *batch.Batch) batch.Value { return b.FFT(batch.Upload(b, make([]int32, 8), 4, 2)) }, device.ErrUnsupported},
		"long frames": {func(b *batch.Batch) batch.Value { return b.STFT(b.Upload(make([]float32, 8), 8), 9, 1, batch.None) }, device.ErrShape},
		"no frame":    {func(b *batch.Batch) batch.Value { return b.STFT(b.Upload(make([]float32, 8), 8), 0, 0, batch.None) }, device.ErrShape},
		"no value":    {func(b *batch.Batch) batch.Value { return b.FFT(batch.None) }, device.ErrShape},
	} {
		b := batch.New(dev)
		if err := b.Execute(t.Context(), c.do(b)); !errors.Is(err, c.want) {
			t.Errorf("%s: error %v, want %v", name, err, c.want)
		}
	}
}

// TestFFTSteps checks that a transform of many rows moves its elements only twice, in
// transpositions, and does not copy a matrix of roots for each row.
func TestFFTSteps(t *testing.T) {
	b := batch.New(openCPU(t))
	plan, err := b.Compile(t.Context(), b.FFT(b.Upload(make([]float32, 100*1024*2), 100, 1024, 2)))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, line := range strings.Split(plan.String(), "\n") {
		if f := strings.Fields(line); len(f) > 1 && strings.Contains(line, "<-") {
			names = append(names, f[1])
		}
	}
	if want := []string{"transpose", "matmul", "mul+mul+add", "matmul", "transpose"}; !slices.Equal(names, want) {
		t.Errorf("steps %v, want %v", names, want)
	}
}

// TestFFTEmpty transforms no rows.
func TestFFTEmpty(t *testing.T) {
	b := batch.New(openCPU(t))
	x := b.RFFT(b.Upload([]float32{}, 0, 200))
	y := b.IRFFT(x, 200)
	if err := b.Execute(t.Context(), x, y); err != nil {
		t.Fatal(err)
	}
	if !x.Shape().Equal(op.Shape{0, 101, 2}) || !y.Shape().Equal(op.Shape{0, 200}) {
		t.Errorf("shapes %v and %v, want [0 101 2] and [0 200]", x.Shape(), y.Shape())
	}
}
