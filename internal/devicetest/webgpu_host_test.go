//go:build cgo && !nowebgpu && !js

package devicetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/driver/webgpu"
	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// mask is a WebGPU host over lavapipe. It can report other properties of adapters, replace shader texts, and stop
// answering.
type mask struct {
	gpu.Host
	change func(a *gpu.Adapter)     // changes the properties of adapters, or nil
	text   func(text string) string // replaces shader texts, or nil
	stuck  atomic.Bool              // no submission ever completes
	opened atomic.Int32
}

func (m *mask) Adapters(ctx context.Context) ([]gpu.Adapter, error) {
	all, err := m.Host.Adapters(ctx)
	for i := range all {
		if m.change != nil {
			m.change(&all[i])
		}
	}
	return all, err
}

func (m *mask) Open(ctx context.Context, index int) (gpu.HostDevice, error) {
	d, err := m.Host.Open(ctx, index)
	if err != nil {
		return nil, err
	}
	m.opened.Add(1)
	a := *d.Adapter()
	if m.change != nil {
		m.change(&a)
	}
	return &masked{HostDevice: d, mask: m, adapter: a}, nil
}

type masked struct {
	gpu.HostDevice
	*mask
	adapter gpu.Adapter
	reached atomic.Uint64
}

func (d *masked) Adapter() *gpu.Adapter { return &d.adapter }

func (d *masked) Poll() (uint64, error) {
	if d.stuck.Load() {
		return d.reached.Load(), nil
	}
	done, err := d.HostDevice.Poll()
	d.reached.Store(done)
	return done, err
}

func (d *masked) NewPipeline(s *gpu.Shader) (gpu.HostPipeline, error) {
	if d.text != nil {
		c := *s
		c.Text = d.text(s.Text)
		c.Trusted = false // a replaced text must still stay within its buffers
		s = &c
	}
	return d.HostDevice.NewPipeline(s)
}

// wear installs m between the driver and lavapipe until the end of the test.
func wear(t *testing.T, m *mask) *mask {
	t.Helper()
	testutil.Vulkan(t, "lavapipe")
	h, err := wgpunative.New()
	if err != nil {
		testutil.Missing(t, "vulkan", err)
	}
	m.Host = h
	webgpu.Substitute = m
	t.Cleanup(func() { webgpu.Substitute = nil })
	return m
}

func openMasked(t testing.TB) *device.Device {
	t.Helper()
	d, err := device.Open(t.Context(), device.Require(device.WebGPU), device.WithName("software"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// oneOfEach returns a filter that keeps one case of each operation and operand type.
func oneOfEach() func(c *Case) bool {
	type kind struct {
		o *op.Operation
		t op.DType
	}
	seen := map[kind]int{}
	return func(c *Case) bool {
		k, most := kind{c.Op, c.In[0].Type}, 1
		if c.Op == op.Gather {
			most = 8 // not each can be called on slices
		}
		if n := c.elements(); seen[k] == most || n < 15 || n > 2000 || c.work() > 1e6 {
			return false
		}
		seen[k]++
		return true
	}
}

// TestWebGPUBare runs the operations on a device with the minimum that WebGPU requires: no half floats, no subgroups,
// few bindings, and bindings only at multiples of a large alignment.
func TestWebGPUBare(t *testing.T) {
	wear(t, &mask{change: func(a *gpu.Adapter) {
		a.Target.Features, a.Target.Limits = 0, wgsl.DefaultLimits
		a.StorageAlign, a.UniformAlign = 256, 256
	}})
	types := op.DTypes()
	if short() { // other types share most kernels with these types
		others := slices.DeleteFunc(slices.Clone(types), func(d op.DType) bool { return d == op.F32 || d == op.I32 || d == op.Bool })
		types = append([]op.DType{op.F32, op.I32, op.Bool}, someOf(newGenerator(testutil.Seed(t)), others, 3)...)
	}
	t.Run("operations", func(t *testing.T) { operations(t, openMasked, types, oneOfEach()) })
	t.Run("buffers", func(t *testing.T) { buffers(t, openMasked) })
	t.Run("blocks", func(t *testing.T) { blocks(t, openMasked) })
	t.Run("plans", func(t *testing.T) { plans(t, openMasked) })
	t.Run("views", func(t *testing.T) { placesOn(t, openMasked) })
}

// notCut reports whether an operation gives an error if an operand is larger than a binding. Such operations are sorts,
// scatter, factorisations and the products of experts: see docs/backends/webgpu.md.
func notCut(o *op.Operation) bool {
	switch o {
	case op.Sort, op.Scatter, op.MatMulExperts, op.Cholesky, op.LU, op.QR, op.Eigh, op.SVD, op.Solve, op.SolveTriangular:
		return true
	}
	return false
}

// TestWebGPUWindows runs cases of the catalogue that are larger than a binding on a
// device whose bindings are small. [TestWebGPUCut] has cases made for that.
func TestWebGPUWindows(t *testing.T) {
	const most = 16 << 10
	few := 2
	seed := testutil.Seed(t)
	some, choose := []*op.Operation{op.Add, op.Relu, op.Cast, op.Where, op.Lerp}, newGenerator(seed)
	types := []op.DType{op.F32, op.I32, op.F16, op.BF16}
	if short() {
		few, types = 1, append(types[:1:1], types[1+choose.IntN(3)])
	}
	wear(t, &mask{change: func(a *gpu.Adapter) { a.Binding, a.StorageAlign = most, 256 }})
	dev := start(t, openMasked)
	free := deviationsOf(t.Context(), dev)
	for _, o := range op.Catalogue() {
		computed := 0
		for _, d := range types {
			if o.Class() == op.Elementwise && !slices.Contains(some, o) {
				continue // the same kernels
			}
			if o == op.Attention {
				continue // TestWebGPUCut tests all divisions of this operation, with tiles that compile faster
			}
			if testutil.Raced && choose.IntN(3) > 0 {
				continue // a sample suffices for work of a single goroutine
			}
			before := computed
			for _, c := range Cases(o, d, seed+uint64(o.ID()), false) {
				if (testutil.Raced || o.Class() != op.Elementwise) && computed-before == few {
					break // the other cases would compile many kernels for divisions that TestWebGPUCut tests
				}
				if n := c.elements() * d.Size(); n <= most && !(c.Op == op.MatMul && c.work() > 4e5) || c.work() > 5e7 || c.quantized() {
					continue
				}
				_, err := c.run(t.Context(), dev, free)
				switch {
				case lacks(dev, d, err):
				case notCut(o) && errors.Is(err, device.ErrLimit):
				case err != nil:
					t.Errorf("%v: %v", &c, err)
				default:
					computed++
				}
			}
		}
		if computed == 0 && !testutil.Raced && !notCut(o) && o.Class() != op.Shaped && (o.Class() != op.Elementwise || slices.Contains(some, o)) {
			t.Errorf("%v: nothing was computed", o)
		}
	}
	// Operations that are certainly split.
	for _, c := range []Case{
		{Op: op.Sum}, {Op: op.Mean}, {Op: op.Max}, {Op: op.NormL2}, {Op: op.Sum, Rows: true}, {Op: op.Softmax}, {Op: op.MatMul}, {Op: op.MatVec},
	} {
		g := newGenerator(seed)
		shapes := []op.Shape{{300, 41}}
		switch c.Op {
		case op.MatMul:
			shapes = append(shapes, op.Shape{41, 70})
		case op.MatVec:
			shapes = append(shapes, op.Shape{41})
		}
		for _, s := range shapes {
			c.In = append(c.In, g.tensor(op.F32, s, g.tame))
		}
		if _, err := c.run(t.Context(), dev, free); err != nil {
			t.Errorf("%v: %v", &c, err)
		}
	}
}

// TestWebGPUMiscompiled simulates defects of compilers. It checks that Open does not offer the device, or that the
// operation gives an error before its first use.
func TestWebGPUMiscompiled(t *testing.T) {
	replace := func(old, new string) func(string) string {
		return func(s string) string { return strings.ReplaceAll(s, old, new) }
	}
	for _, c := range []struct {
		name string
		text func(string) string
		use  func(dev *device.Device) error // nil: Open must not offer the device
	}{
		{"greatest for least", replace("max(", "min("), nil},
		{"less for not greater", replace(" < ", " <= "), nil},
		{"operands of a difference", func(s string) string { return swapDifference(s) }, nil},
		{"conversion to an integer", replace("(i32(v", "(1i + i32(v"), nil},
		{"shifts", replace(" << 23u", " << 22u"), nil},
		{"barriers", replace("workgroupBarrier();", ""), nil},
		{"what comes after a barrier", replace("workgroupBarrier();", "return;"), nil},
		{"the second operand of a product", replace("b[", "a["), nil},
		{"transpose, a stride", func(s string) string {
			if strings.Contains(s, "fn transpose") {
				return strings.Replace(s, " * ", " + ", 1)
			}
			return s
		}, func(dev *device.Device) error {
			x := make([]float32, 35)
			return dev.Transpose(context.Background(), make([]float32, 35), x, 5, 7)
		}},
		{"softmax, sums", func(s string) string {
			if strings.Contains(s, "fn softmax") {
				return strings.ReplaceAll(s, " + ", " - ")
			}
			return s
		}, func(dev *device.Device) error {
			return dev.Softmax(context.Background(), make([]float32, 8), make([]float32, 8), 1, 8)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := wear(t, &mask{text: c.text})
			_ = m
			dev, err := device.Open(t.Context(), device.Require(device.WebGPU), device.WithName("software"))
			if c.use == nil {
				if err == nil {
					dev.Close()
					t.Fatal("the device is offered")
				}
				if !errors.Is(err, device.ErrNoDevice) || !strings.Contains(err.Error(), "self-test") {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatalf("refused before the operation is used: %v", err)
			}
			defer dev.Close()
			if err := c.use(dev); !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "self-test") {
				t.Errorf("%v", err)
			}
		})
	}
}

// swapDifference exchanges the operands of the first subtraction of two names in each line.
func swapDifference(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if a, b, ok := strings.Cut(l, " - "); ok && strings.Contains(a, " = ") && strings.HasSuffix(b, ";") && !strings.ContainsAny(b, "()") {
			at := strings.LastIndex(a, "= ") + 2
			if left := a[at:]; !strings.ContainsAny(left, "()* +") {
				lines[i] = a[:at] + strings.TrimSuffix(b, ";") + " - " + left + ";"
			}
		}
	}
	return strings.Join(lines, "\n")
}

// TestWebGPUHangs tests a GPU that stops answering: calls end by their contexts, the device is then lost, and a new
// device can be opened.
func TestWebGPUHangs(t *testing.T) {
	old := gpu.Patience
	gpu.Patience = 100 * time.Millisecond
	t.Cleanup(func() { gpu.Patience = old })
	m := wear(t, &mask{})
	m.change = func(a *gpu.Adapter) {
		if a.Type == gpu.Software {
			a.Type = gpu.Discrete // patience is for GPUs
			a.Target.Unfused = true
		}
	}
	open := func() *device.Device {
		d, err := device.Open(t.Context(), device.Require(device.WebGPU))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	dev := open()
	x, y := []float32{-1, 2}, []float32{7, 7}
	if err := dev.Relu(t.Context(), y, x); err != nil || y[1] != 2 {
		t.Fatalf("%v %v", y, err)
	}
	m.stuck.Store(true)
	later := dev.ReluAsync(t.Context(), make([]float32, 2), x)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := dev.Relu(ctx, y, x); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(began))
	}
	y[0], y[1] = 3, 3
	select {
	case <-dev.Lost():
	case <-time.After(10 * time.Second):
		t.Fatal("the device is not lost")
	}
	if err := later.Wait(t.Context()); !errors.Is(err, device.ErrDeviceLost) {
		t.Errorf("a call under way: %v", err)
	}
	if err := dev.Relu(t.Context(), y, x); !errors.Is(err, device.ErrDeviceLost) {
		t.Errorf("a call of a lost device: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- dev.Close() }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("Close waits for a lost device")
	}
	if y[0] != 3 || y[1] != 3 {
		t.Error("a slice was written after its call had returned")
	}
	m.stuck.Store(false)
	dev = open()
	defer dev.Close()
	if err := dev.Relu(t.Context(), y, x); err != nil || y[0] != 0 || y[1] != 2 {
		t.Errorf("after opening again: %v %v", y, err)
	}
}
