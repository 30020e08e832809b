//go:build (linux || windows) && !nocuda

package devicetest

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/internal/driver/cuda/emulated"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

// openCUDA opens a GPU, or the emulator after a call of emulate.
func openCUDA(t testing.TB) *device.Device {
	t.Helper()
	if cuda.Substitute == nil {
		testutil.Need(t, "cuda")
	}
	d, err := device.Open(t.Context(), device.Require(device.CUDA))
	if errors.Is(err, device.ErrNoDevice) && cuda.Substitute == nil {
		testutil.Missing(t, "cuda", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestCUDA runs everything on a GPU, if there is one.
func TestCUDA(t *testing.T) {
	testutil.Need(t, "cuda")
	Run(t, openCUDA)
}

// TestCUDAPair copies between two GPUs, if there are two.
func TestCUDAPair(t *testing.T) {
	one := start(t, openCUDA)
	two, err := device.Open(t.Context(), device.Require(device.CUDA), device.WithIndex(1))
	if errors.Is(err, device.ErrNoDevice) {
		testutil.Missing(t, "cuda2", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = two.Close() })
	for _, way := range [][2]*device.Device{{one, two}, {two, one}} {
		for _, n := range []int{1, 7, 1000, 1<<20 + 3, 64 << 20} {
			carry[float32](t, way[0], way[1], n)
		}
		carryBlocks(t, way[0], way[1])
	}
	refused(t, one, two)
	// Copies in both directions at once, beside other work, must not deadlock.
	var work sync.WaitGroup
	for i := range 16 {
		way := [][2]*device.Device{{one, two}, {two, one}}[i%2]
		work.Go(func() {
			for range 20 {
				carry[float32](t, way[0], way[1], 10007)
			}
		})
	}
	work.Wait()
}

// emulate replaces CUDA devices by the emulator, with compute capability major.0, until the end of the test.
func emulate(t *testing.T, major int, checked bool) {
	cuda.Substitute = func(ordinal int) (driver.Device, error) {
		if ordinal != 0 {
			return nil, fmt.Errorf("cuda:%d: %w", ordinal, driver.ErrNoDevice)
		}
		return emulated.Open(cu.Capability{Major: major}, checked)
	}
	t.Cleanup(func() { cuda.Substitute = nil })
}

// TestCUDAEmulated runs small tests with the kernels for GPUs in the emulator of PTX.
// TestCUDAEmulatedNumbers tests the operations.
func TestCUDAEmulated(t *testing.T) {
	emulate(t, 9, false)
	t.Run("rounding", func(t *testing.T) { rounding(t, openCUDA) })
	t.Run("streams", func(t *testing.T) { streams(t, openCUDA) })
	t.Run("pages", func(t *testing.T) { pages(t, openCUDA) })
	t.Run("factors", func(t *testing.T) { factors(t, openCUDA) })
	t.Run("axes", func(t *testing.T) { axesOn(t, openCUDA) })
	t.Run("aliasing", func(t *testing.T) { aliasing(t, openCUDA) })
	t.Run("mistakes", func(t *testing.T) { mistakes(t, openCUDA) })
	t.Run("buffers", func(t *testing.T) { buffers(t, openCUDA) })
	t.Run("plans", func(t *testing.T) { plans(t, openCUDA) })
	t.Run("closing", func(t *testing.T) { closing(t, openCUDA) })
}

// BenchmarkCUDA measures round trips.
func BenchmarkCUDA(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	roundTrips(b, dev)
}

// BenchmarkCUDAResident measures operations over arrays that stay on the GPU.
func BenchmarkCUDAResident(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	printGoals(cudaGoals, onTheDevice(b, dev))
}

// BenchmarkCUDAPermutes measures permuted copies with each variant of their kernels.
func BenchmarkCUDAPermutes(b *testing.B) { timePermutes(b, openCUDA) }

// BenchmarkCUDASmallPermutes measures permuted copies of elements of one and two bytes beside copies.
func BenchmarkCUDASmallPermutes(b *testing.B) { timeSmallPermutes(b, openCUDA) }

// BenchmarkCUDAArrays measures sorts, scatters and factorisations beside PyTorch.
func BenchmarkCUDAArrays(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	onArrays(b, dev)
}

// BenchmarkCUDAFormats measures products with quantised weights of every format.
func BenchmarkCUDAFormats(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	timeFormats(b, dev)
}

// BenchmarkCUDALengths measures operations on rows and arrays of any lengths.
func BenchmarkCUDALengths(b *testing.B) {
	dev := openCUDA(b)
	defer dev.Close()
	anyLengths(b, dev)
}

type faultParams struct{ N uint32 }

// TestCUDAFaults runs kernels with mistakes. They must end with errors that name the author's
// line, and other work must not be affected.
func TestCUDAFaults(t *testing.T) {
	emulate(t, 8, true)
	dev := start(t, openCUDA)
	for name, c := range map[string]struct {
		build func(b *kernel.Builder, p *faultParams)
		want  string
	}{
		"load": {func(b *kernel.Builder, p *faultParams) {
			x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
			y.Set(b.Lane(), x.At(b.Lane().Add(b.U32(&p.N))))
		}, "buffer x has 64 elements"},
		"store": {func(b *kernel.Builder, p *faultParams) {
			x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
			b.If(b.Lane().Eq(kernel.U(3)), func() { y.Set(b.U32(&p.N).Mul(kernel.U(1<<20)), x.At(b.Lane())) })
		}, "buffer y has"},
		"shared": {func(b *kernel.Builder, p *faultParams) {
			x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
			s := kernel.Shared[kernel.F32](b, "s", 4)
			b.If(b.Lane().Lt(kernel.U(4)), func() { s.Set(b.Lane(), kernel.F(0)) })
			b.Barrier()
			y.Set(b.Lane(), s.At(b.U32(&p.N)).Add(x.At(b.Lane())))
		}, "workgroup array s has"},
		"loop": {func(b *kernel.Builder, p *faultParams) {
			x, y := kernel.Input[kernel.F32](b, "x"), kernel.Output[kernel.F32](b, "y")
			b.Budget(1000)
			b.Loop(func() { b.If(x.At(b.Lane()).Gt(kernel.F(1e9)), b.Break) })
			y.Set(b.Lane(), kernel.F(1))
		}, "a loop had more than"},
	} {
		k, err := dev.Kernel(t.Context(), kernel.New(name, func(b *kernel.Builder, p *faultParams) {
			b.LocalSize(64, 1, 1)
			c.build(b, p)
		}))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x, y := make([]float32, 64), make([]float32, 64)
		err = k.Run(t.Context(), kernel.Grid(1), faultParams{N: 64}, device.In(x), device.Out(y))
		if !errors.Is(err, device.ErrFault) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "cuda_test.go") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The device still works.
	x := []float32{-1, 2}
	if err := dev.Relu(t.Context(), x, x); err != nil || x[0] != 0 || x[1] != 2 {
		t.Errorf("%v %v", x, err)
	}
}
