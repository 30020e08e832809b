package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// cpu opens the CPU with a number of threads.
func cpu(threads int) Open {
	return func(t testing.TB) *device.Device {
		d, err := device.Open(t.Context(), device.Require(device.CPU), device.WithThreads(threads))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

func TestCPU(t *testing.T) { Run(t, cpu(0)) }

// TestCPUThreads runs cases that are large enough to be split, with one thread and with
// more threads than many machines have processors.
func TestCPUThreads(t *testing.T) {
	for name, open := range map[string]Open{"one": cpu(1), "five": cpu(5)} {
		t.Run(name, func(t *testing.T) {
			some := sampled(testutil.Seed(t))
			large := func(c *Case) bool {
				return (c.elements() > parted || c.Op.Class() == op.Shaped && c.work() > 200_000) && some(c)
			}
			t.Run("operations", func(t *testing.T) { operations(t, open, []op.DType{op.F32}, large) })
			t.Run("concurrency", func(t *testing.T) { concurrency(t, open) })
			t.Run("closing", func(t *testing.T) { closing(t, open) })
		})
	}
}

// openPortable opens a CPU that runs portable kernels in the interpreter.
func openPortable(t testing.TB) *device.Device {
	d, err := device.Open(t.Context(), device.Require(device.CPU), device.WithPortableKernels())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestPortable runs the operations by the portable kernels, which GPUs run, in the interpreter.
func TestPortable(t *testing.T) {
	t.Parallel()
	t.Run("operations", func(t *testing.T) {
		// Portable kernels do not support quantised blocks yet.
		some := sampled(testutil.Seed(t))
		small := func(c *Case) bool { return c.elements() < 20_000 && c.work() < 5e6 && !c.quantized() && some(c) }
		operations(t, openPortable, []op.DType{op.F32, op.I32, op.U32, op.Bool, op.U8, op.I8}, small)
	})
	t.Run("axes", func(t *testing.T) { axesOn(t, openPortable) })
	t.Run("graphs", func(t *testing.T) { graphs(t, openPortable) })
}

// TestConv2DAtRandom runs small convolutions at random.
func TestConv2DAtRandom(t *testing.T) {
	dev := start(t, cpu(0))
	free := deviationsOf(t.Context(), dev)
	g := newGenerator(testutil.Seed(t))
	n := 2000
	if short() {
		n = 100
	}
	for range n {
		c := g.anyConv2D(op.F32)
		if _, err := c.run(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
		if t.Failed() && n > 100 {
			t.Fatal("and perhaps more")
		}
	}
}

func FuzzGraph(f *testing.F) { fuzzGraphs(f, cpu(2)) }
