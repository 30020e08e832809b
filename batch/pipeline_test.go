package batch_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func reluOf(b *batch.Batch, x batch.Value) batch.Value { return b.Relu(x) }

func sumOfRelu(b *batch.Batch, x batch.Value) batch.Value { return b.Sum(b.Relu(x)) }

func pipeline[In, Out device.Element](t testing.TB, dev *device.Device, f func(*batch.Batch, batch.Value) batch.Value, o batch.PipelineOpts) *batch.Pipeline[In, Out] {
	t.Helper()
	p, err := batch.NewPipeline[In, Out](dev, f, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// ramp returns n small integers of both signs, so that their sums are exact.
func ramp(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%61 - 30)
	}
	return x
}

func relus(x []float32) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = max(v, 0)
	}
	return y
}

func gather[T any](t *testing.T, results iter.Seq2[[]T, error]) []T {
	t.Helper()
	var all []T
	for out, err := range results {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, out...)
	}
	return all
}

func native(x []float32) []byte {
	var b bytes.Buffer
	_ = binary.Write(&b, binary.NativeEndian, x)
	return b.Bytes()
}

// pieces yields data in slices of random lengths, all in one memory.
func pieces(rng *rand.Rand, data []float32, longest int) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		mem := make([]float32, longest)
		for len(data) > 0 {
			n := copy(mem[:rng.IntN(longest+1)], data)
			data = data[n:]
			if !yield(mem[:n], nil) {
				return
			}
		}
	}
}

// noGoroutines fails the test if goroutines leak.
func noGoroutines(t *testing.T) {
	t.Helper()
	t.Cleanup(testutil.Goroutines(t))
}

func TestPipelineOrder(t *testing.T) {
	dev := openCPU(t)
	for _, n := range []int{0, 1, 2, 7, 64, 65, 1000, 100_003, 3_000_001} {
		for _, o := range []batch.PipelineOpts{{}, {Rows: 64}, {Rows: 1000}, {Memory: 1 << 20}, {Memory: 1}} {
			if n/max(o.Rows, 1) > 2000 && (o.Rows > 0 || o.Memory == 1) || n > 1000 && o.Memory == 1 || testing.Short() && n > 1_000_000 && o.Memory == 0 {
				continue
			}
			x := ramp(n)
			want := relus(x)
			p := pipeline[float32, float32](t, dev, reluOf, o)
			ctx := context.Background()
			equalSlices(t, "RunSlice", gather(t, p.RunSlice(ctx, x)), want)
			equalSlices(t, "Run", gather(t, p.Run(ctx, pieces(testutil.Rand(t), x, 5000))), want)
			equalSlices(t, "RunReader", gather(t, p.RunReader(ctx, bytes.NewReader(native(x)))), want)
			var out bytes.Buffer
			written, err := p.Copy(ctx, &out, iotest.HalfReader(bytes.NewReader(native(x))))
			if err != nil || written != int64(4*n) || !bytes.Equal(out.Bytes(), native(want)) {
				t.Errorf("Copy of %d with %+v: %d bytes, %v", n, o, written, err)
			}
		}
	}
}

func equalSlices(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d results, want %d", what, len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s: result %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestPipelineSum(t *testing.T) {
	dev := openCPU(t)
	x := ramp(1_000_003)
	want := 0.0
	for _, v := range relus(x) {
		want += float64(v)
	}
	p := pipeline[float32, float32](t, dev, sumOfRelu, batch.PipelineOpts{})
	for range 3 { // the later runs use the size that the first one chose
		got := 0.0
		for sum, err := range p.RunSlice(context.Background(), x) {
			if err != nil || len(sum) != 1 {
				t.Fatal(len(sum), err)
			}
			got += float64(sum[0])
		}
		if got != want {
			t.Errorf("sum %v, want %v", got, want)
		}
	}
}

// A value in a buffer is carried from chunk to chunk.
func TestPipelineCarry(t *testing.T) {
	dev := openCPU(t)
	ctx := context.Background()
	acc, err := device.Upload(ctx, dev, []float32{0})
	if err != nil {
		t.Fatal(err)
	}
	defer acc.Close()
	x := ramp(10_007)
	p := pipeline[float32, float32](t, dev, func(b *batch.Batch, x batch.Value) batch.Value {
		b.Store(acc, 0, b.Add(b.Use(acc), b.Sum(x)))
		return batch.Value{}
	}, batch.PipelineOpts{Rows: 100})
	chunks := 0
	for out, err := range p.RunSlice(ctx, x) {
		if err != nil || len(out) != 0 {
			t.Fatal(out, err)
		}
		chunks++
	}
	got := make([]float32, 1)
	if err := device.Read(ctx, got, acc); err != nil {
		t.Fatal(err)
	}
	var want float32
	for _, v := range x {
		want += v
	}
	if got[0] != want || chunks != 101 {
		t.Errorf("carried %v in %d chunks, want %v in 101", got[0], chunks, want)
	}
}

// Rows of several elements, results of another type and width than the operand.
func TestPipelineRows(t *testing.T) {
	dev := openCPU(t)
	x := ramp(3 * 4 * 1001)
	p := pipeline[float32, int32](t, dev, func(b *batch.Batch, x batch.Value) batch.Value {
		return b.Cast(b.Sum(x, op.Axes(1, 2)), op.I32)
	}, batch.PipelineOpts{Row: []int{3, 4}})
	got := gather(t, p.Run(context.Background(), pieces(testutil.Rand(t), x, 40)))
	if len(got) != 1001 {
		t.Fatalf("%d results", len(got))
	}
	for i, v := range got {
		var want float32
		for _, e := range x[12*i : 12*i+12] {
			want += e
		}
		if v != int32(want) {
			t.Fatalf("row %d: %d, want %v", i, v, want)
		}
	}
}

func TestPipelineConcurrent(t *testing.T) {
	dev := openCPU(t)
	p := pipeline[float32, float32](t, dev, reluOf, batch.PipelineOpts{})
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			x := ramp(200_000 + i)
			var all []float32
			for out, err := range p.RunSlice(context.Background(), x) {
				if err != nil {
					t.Error(err)
				}
				all = append(all, out...)
			}
			for j, v := range relus(x) {
				if j >= len(all) || all[j] != v {
					t.Errorf("run %d differs at %d", i, j)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestPipelineSourceErrors(t *testing.T) {
	dev := openCPU(t)
	noGoroutines(t)
	bad := errors.New("bad disk")
	ctx := context.Background()
	x := ramp(1000)
	p := pipeline[float32, float32](t, dev, reluOf, batch.PipelineOpts{Row: []int{4}, Rows: 8})
	for name, c := range map[string]struct {
		results iter.Seq2[[]float32, error]
		want    error
		rows    int
	}{
		"reader":                  {p.RunReader(ctx, io.MultiReader(bytes.NewReader(native(x)), iotest.ErrReader(bad))), bad, 250},
		"reader, a part of a row": {p.RunReader(ctx, io.MultiReader(bytes.NewReader(native(x)[:3990]), iotest.ErrReader(bad))), bad, 249},
		"short row":               {p.RunReader(ctx, bytes.NewReader(native(x)[:3990])), io.ErrUnexpectedEOF, 249},
		"short slice":             {p.RunSlice(ctx, x[:31]), io.ErrUnexpectedEOF, 7},
		"no progress":             {p.RunReader(ctx, idle{}), io.ErrNoProgress, 0},
		"wrong count":             {p.RunReader(ctx, liar{}), device.ErrUnsupported, 0},
		"nil reader":              {p.RunReader(ctx, nil), device.ErrUnsupported, 0},
		"sequence": {p.Run(ctx, func(yield func([]float32, error) bool) {
			if yield(x, nil) {
				yield(x[:4], bad)
			}
		}), bad, 251},
		"exit": {p.Run(ctx, func(func([]float32, error) bool) { runtime.Goexit() }), nil, 0},
	} {
		rows, last := 0, error(nil)
		for out, err := range c.results {
			if last != nil {
				t.Errorf("%s: a result after the error", name)
			}
			rows += len(out) / 4
			last = err
		}
		if c.want != nil && !errors.Is(last, c.want) || last == nil || rows != c.rows {
			t.Errorf("%s: %d rows, %v; want %d, %v", name, rows, last, c.rows, c.want)
		}
	}
	w, err := p.Copy(ctx, failing{bad}, bytes.NewReader(native(x)))
	if !errors.Is(err, bad) || w != 3 {
		t.Errorf("Copy to a failing writer: %d, %v", w, err)
	}
	if _, err = p.Copy(ctx, failing{nil}, bytes.NewReader(native(x))); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("Copy to a short writer: %v", err)
	}
}

type idle struct{}

func (idle) Read([]byte) (int, error) { return 0, nil }

type liar struct{}

func (liar) Read(p []byte) (int, error) { return len(p) + 1, nil }

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 3, f.err }

// forever yields the same slice until it is stopped, and records the stop.
func forever(x []float32, stopped *bool) iter.Seq2[[]float32, error] {
	return func(yield func([]float32, error) bool) {
		for yield(x, nil) {
		}
		*stopped = true
	}
}

func TestPipelineStops(t *testing.T) {
	dev := openCPU(t)
	noGoroutines(t)
	x := ramp(5000)
	p := pipeline[float32, float32](t, dev, sumOfRelu, batch.PipelineOpts{})
	stopped := false
	for range p.Run(context.Background(), forever(x, &stopped)) {
		break
	}
	if !stopped {
		t.Error("break did not stop the source")
	}
	ctx, cancel := context.WithCancel(context.Background())
	n, last := 0, error(nil)
	for _, err := range p.Run(ctx, forever(x, new(bool))) {
		if n++; n == 5 {
			cancel()
		}
		last = err
	}
	if last != context.Canceled {
		t.Errorf("cancelled after 5 of %d results: %v", n, last)
	}
	for _, err := range p.RunSlice(ctx, x) {
		if err != context.Canceled {
			t.Errorf("a cancelled context: %v", err)
		}
	}
	// A source that hangs does not block a cancelled run.
	r, w := io.Pipe()
	ctx, cancel = context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	for _, err := range p.RunReader(ctx, r) {
		if err != context.DeadlineExceeded {
			t.Errorf("a reader that hangs: %v", err)
		}
	}
	w.Close()
}

// Panics of the source and of the loop reach the caller, and no goroutine leaks.
func TestPipelinePanics(t *testing.T) {
	dev := openCPU(t)
	noGoroutines(t)
	p := pipeline[float32, float32](t, dev, sumOfRelu, batch.PipelineOpts{Rows: 8})
	caught := func(f func()) (e any) {
		defer func() { e = recover() }()
		f()
		return nil
	}
	if e := caught(func() {
		for range p.Run(context.Background(), func(func([]float32, error) bool) { panic("source") }) {
		}
	}); e != "source" {
		t.Errorf("panic of the source: %v", e)
	}
	stopped := false
	if e := caught(func() {
		for range p.Run(context.Background(), forever(ramp(100), &stopped)) {
			panic("loop")
		}
	}); e != "loop" || !stopped {
		t.Errorf("panic of the loop: %v, source stopped: %v", e, stopped)
	}
}

func TestPipelineMistakes(t *testing.T) {
	dev := openCPU(t)
	other := batch.New(dev).Const(1)
	for name, c := range map[string]struct {
		dev  *device.Device
		f    func(*batch.Batch, batch.Value) batch.Value
		o    batch.PipelineOpts
		want error
	}{
		"nil function": {dev, nil, batch.PipelineOpts{}, device.ErrUnsupported},
		"nil device":   {nil, reluOf, batch.PipelineOpts{}, device.ErrNoDevice},
		"empty row":    {dev, reluOf, batch.PipelineOpts{Row: []int{2, 0}}, device.ErrShape},
		"negative row": {dev, reluOf, batch.PipelineOpts{Row: []int{-2}}, device.ErrShape},
		"huge row":     {dev, reluOf, batch.PipelineOpts{Row: []int{1 << 15, 1 << 15}}, device.ErrLimit},
		"negative":     {dev, reluOf, batch.PipelineOpts{Rows: -1}, device.ErrShape},
		"budget":       {dev, reluOf, batch.PipelineOpts{Rows: 1000, Memory: 4000}, device.ErrLimit},
		"memory":       {dev, reluOf, batch.PipelineOpts{Memory: -1}, device.ErrShape},
		"shape":        {dev, func(b *batch.Batch, x batch.Value) batch.Value { return b.MatMul(x, x, batch.None) }, batch.PipelineOpts{Row: []int{3}}, device.ErrShape},
		"foreign":      {dev, func(b *batch.Batch, x batch.Value) batch.Value { return other }, batch.PipelineOpts{}, device.ErrForeign},
		"type":         {dev, func(b *batch.Batch, x batch.Value) batch.Value { return b.Cast(x, op.I32) }, batch.PipelineOpts{}, device.ErrUnsupported},
	} {
		if _, err := batch.NewPipeline[float32, float32](c.dev, c.f, c.o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	var zero batch.Pipeline[float32, float32]
	for _, err := range zero.RunSlice(context.Background(), ramp(3)) {
		if !errors.Is(err, device.ErrNotExecuted) {
			t.Errorf("zero pipeline: %v", err)
		}
	}
	if err := zero.Close(); !errors.Is(err, device.ErrNotExecuted) {
		t.Errorf("Close of the zero pipeline: %v", err)
	}
	p := pipeline[float32, float32](t, dev, reluOf, batch.PipelineOpts{})
	n := 0
	for _, err := range p.Run(context.Background(), forever(ramp(100), new(bool))) {
		if n++; n == 3 {
			p.Close()
		}
		if err != nil && !errors.Is(err, device.ErrClosed) {
			t.Errorf("closed under way: %v", err)
		}
	}
	for _, err := range p.RunSlice(context.Background(), ramp(3)) {
		if !errors.Is(err, device.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// BenchmarkPipeline alternately streams a file of 1 GiB from the page cache through relu and sum,
// and only reads it.
func BenchmarkPipeline(b *testing.B) {
	const size = 1 << 30
	name := filepath.Join(b.TempDir(), "data")
	writeFile(b, name, size)
	for what, f := range map[string]func(*batch.Batch, batch.Value) batch.Value{
		"relu+sum": sumOfRelu,
		"relu":     reluOf,
	} {
		b.Run(what, func(b *testing.B) {
			p := pipeline[float32, float32](b, openCPU(b), f, batch.PipelineOpts{})
			var read, flow time.Duration
			run := func() {
				start := time.Now()
				readFile(b, name)
				read += time.Since(start)
				start = time.Now()
				file, err := os.Open(name)
				if err != nil {
					b.Fatal(err)
				}
				defer file.Close()
				for _, err := range p.RunReader(context.Background(), file) {
					if err != nil {
						b.Fatal(err)
					}
				}
				flow += time.Since(start)
			}
			b.SetBytes(2 * size)
			for b.Loop() {
				run()
			}
			n := float64(b.N) * size / 1e9
			b.ReportMetric(n/read.Seconds(), "read-GB/s")
			b.ReportMetric(n/flow.Seconds(), "pipeline-GB/s")
			b.ReportMetric(100*read.Seconds()/flow.Seconds(), "%read")
		})
	}
}

func writeFile(b *testing.B, name string, size int) {
	b.Helper()
	file, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	part := native(ramp(1 << 20))
	for n := 0; n < size; n += len(part) {
		if _, err := file.Write(part); err != nil {
			b.Fatal(err)
		}
	}
}

func readFile(b *testing.B, name string) {
	b.Helper()
	file, err := os.Open(name)
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	part := make([]byte, 256<<10)
	for {
		if _, err := file.Read(part); err == io.EOF {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}
