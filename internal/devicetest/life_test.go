package devicetest

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// plans tests plans that are replayed with other operands, also by many goroutines.
func plans(t *testing.T, open Open) {
	dev := start(t, open)
	ctx := t.Context()
	const n = 1000
	b := batch.New(dev)
	x := b.Upload(make([]float32, n))
	y := b.Scale(b.Relu(x), 2)
	s := b.Sum(y)
	plan, err := b.Compile(ctx, y, s)
	if err != nil {
		t.Fatal(err)
	}
	b.Reset() // the plan does not need it
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			in, out, sum := make([]float32, n), make([]float32, n), make([]float32, 1)
			for round := range 20 {
				want := 0.0
				for i := range in {
					in[i] = float32((i*(k+3)+round)%17 - 8)
					want += 2 * max(0, float64(in[i]))
				}
				bind := []batch.Binding{batch.BindInput(x, in), batch.BindOutput(y, out), batch.BindOutput(s, sum)}
				var err error
				if round%2 == 0 {
					err = plan.Run(ctx, bind...)
				} else {
					err = plan.RunAsync(ctx, bind...).Wait(ctx)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for i := range in {
					if out[i] != 2*max(0, in[i]) {
						t.Errorf("element %d of run %d is %v", i, round, out[i])
						return
					}
				}
				if float64(sum[0]) != want {
					t.Errorf("the sum of run %d is %v, want %v", round, sum[0], want)
				}
			}
		}()
	}
	wg.Wait()
	other := batch.New(dev)
	for name, c := range map[string]struct {
		bind batch.Binding
		want error
	}{
		"another's value": {batch.BindInput(other.Upload([]float32{1}), []float32{1}), device.ErrForeign},
		"too few":         {batch.BindInput(x, make([]float32, n-1)), device.ErrShape},
		"another type":    {batch.BindInput(x, make([]int32, n)), device.ErrUnsupported},
		"get too many":    {batch.BindOutput(y, make([]float32, n+1)), device.ErrShape},
		"get an operand":  {batch.BindOutput(x, make([]float32, n)), device.ErrForeign},
		"set a result":    {batch.BindInput(y, make([]float32, n)), device.ErrForeign},
		"the zero value":  {batch.BindInput(batch.Value{}, make([]float32, n)), device.ErrForeign},
	} {
		if err := plan.Run(ctx, c.bind); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// cancellation checks that a cancelled context stops calls, and that a call does not
// access its slices after it has returned.
func cancellation(t *testing.T, open Open) {
	dev := start(t, open)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range everyMethod(over, dev) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that is over: %v, want context.Canceled", name, err)
		}
	}
	b := batch.New(dev)
	b.Relu(b.Upload([]float32{1}))
	if err := b.Execute(over); !errors.Is(err, context.Canceled) {
		t.Errorf("Execute with a context that is over: %v", err)
	}

	const n = 256
	x, w := device.Alloc(n*n), device.Alloc(n*n)
	for i := range x {
		x[i], w[i] = float32(i%7), float32(i%5)
	}
	dst := make([]float32, n*n)
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*i)*20*time.Microsecond)
		err := dev.MatMul(ctx, dst, x, w, nil, n, n, n)
		cancel()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		// The call has returned, so it must not access the slice any more.
		for j := range dst {
			dst[j] = -1
		}
		time.Sleep(2 * time.Millisecond)
		for j, v := range dst {
			if v != -1 {
				t.Fatalf("element %d was written after the call had returned", j)
			}
		}
	}
	// Waiting ends with its own context, but the work continues.
	p := dev.MatMulAsync(t.Context(), dst, x, w, nil, n, n, n)
	if err := p.Wait(over); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Wait with a context that is over: %v", err)
	}
	if err := p.Wait(t.Context()); err != nil {
		t.Errorf("Wait: %v", err)
	}
	select {
	case <-p.Done():
	default:
		t.Error("Wait has returned and Done is open")
	}
	want := float32(0)
	for i := range n {
		want += x[i] * w[i*n] // small integers: exact
	}
	if dst[0] != want {
		t.Errorf("the product begins with %v, want %v", dst[0], want)
	}
}

// closedPlans checks that a closed plan finishes its running executions and rejects new ones,
// even if other goroutines close or run it at the same time, and that other plans of an
// equal graph still run.
func closedPlans(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	const n = 5000
	b := batch.New(dev)
	x := b.Upload(make([]float32, n))
	y := b.Softmax(b.Scale(b.Exp(x), 0.5)) // the graph has temporaries if the device does not fuse it
	for round := range 10 {
		plan, err := b.Compile(ctx, y)
		if err != nil {
			t.Fatal(err)
		}
		other, err := b.Compile(ctx, y)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		begun := make(chan struct{}, 4)
		for k := range 4 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				in, out := make([]float32, n), make([]float32, n)
				for i := 0; ; i++ {
					var err error
					if bind := []batch.Binding{batch.BindInput(x, in), batch.BindOutput(y, out)}; (k+i)%2 == 0 {
						err = plan.Run(ctx, bind...)
					} else {
						err = plan.RunAsync(ctx, bind...).Wait(ctx)
					}
					if i == 0 {
						begun <- struct{}{}
					}
					if err != nil {
						if !errors.Is(err, device.ErrClosed) {
							t.Errorf("a run that meets Close: %v", err)
						}
						return
					}
					for j, v := range out {
						if math.Abs(float64(v)-1.0/n) > 1e-7 {
							t.Errorf("run %d: element %d is %v", i, j, v)
							return
						}
					}
					clear(out)
					runtime.Gosched()
				}
			}()
		}
		for range 1 + round%4 {
			<-begun
		}
		for range 3 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				if err := plan.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}()
		}
		wg.Wait()
		for name, err := range map[string]error{"Run": plan.Run(ctx), "RunAsync": plan.RunAsync(ctx).Wait(ctx)} {
			if !errors.Is(err, device.ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", name, err)
			}
		}
		if err := other.Run(ctx); err != nil {
			t.Errorf("another plan of the graph: %v", err)
		}
		if round%2 == 0 { // the device closes the other plans
			other.Close()
		}
	}
	if err := b.Execute(ctx, y); err != nil {
		t.Errorf("the batch: %v", err)
	}
}

// closing checks that all calls return ErrClosed after Close, and that Close waits for running work.
func closing(t *testing.T, open Open) {
	ctx := t.Context()
	dev := open(t)
	buf, err := device.Upload(ctx, dev, []float32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	b := batch.New(dev)
	b.Relu(b.Upload([]float32{1, 2, 3}))
	plan, err := b.Compile(ctx)
	if err != nil {
		t.Fatal(err)
	}
	n := 300
	if short() && dev.Info().Kind == device.CUDA { // emulated
		n = 100
	}
	dst, a := make([]float32, n*n), make([]float32, n*n)
	for i := range a {
		a[i] = 1
	}
	closedPlans(t, dev)
	p := dev.MatMulAsync(ctx, dst, a, a, nil, n, n, n)
	for range 2 {
		if err := dev.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	select {
	case <-p.Done():
		if err := p.Wait(ctx); err == nil && (dst[0] != float32(n) || dst[n*n-1] != float32(n)) {
			t.Error("work that Close waited for is wrong")
		} else if err != nil && !errors.Is(err, device.ErrClosed) {
			t.Errorf("work under way: %v", err)
		}
	default:
		t.Error("Close did not wait for work under way")
	}
	errs := everyMethod(ctx, dev)
	alike(t, errs)
	for name, err := range errs {
		if !errors.Is(err, device.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	for name, err := range map[string]error{
		"Execute":        b.Execute(ctx),
		"Plan.Run":       plan.Run(ctx),
		"Plan.RunAsync":  plan.RunAsync(ctx).Wait(ctx),
		"Read":           device.Read(ctx, make([]float32, 3), buf),
		"Write":          device.Write(ctx, buf, make([]float32, 3)),
		"Upload":         second(device.Upload(ctx, dev, []float32{1})),
		"a later batch":  later(ctx, dev),
		"a later upload": second(device.Upload(ctx, dev, []op.Float16{1})),
	} {
		if !errors.Is(err, device.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
	if err := buf.Close(); err != nil {
		t.Errorf("Close of a buffer after that of its device: %v", err)
	}
	_, _, _ = dev.Info(), dev.Stats(), dev.Limits()

	// Close while other goroutines work: each call succeeds or returns ErrClosed.
	dev = open(t)
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			x, dst := make([]float32, 5000), make([]float32, 5000)
			for {
				runtime.Gosched() // in browsers goroutines are not preempted
				var err error
				switch k % 4 {
				case 0:
					err = dev.Exp(ctx, dst, x)
				case 1:
					err = dev.ExpAsync(ctx, dst, x).Wait(ctx)
				case 2:
					err = later(ctx, dev)
				case 3:
					var b *device.Buffer
					if b, err = device.Upload(ctx, dev, x); err == nil {
						err = b.Close()
					}
				}
				if err != nil {
					if !errors.Is(err, device.ErrClosed) {
						t.Errorf("while Close runs: %v", err)
					}
					return
				}
			}
		}()
	}
	time.Sleep(5 * time.Millisecond)
	if err := dev.Close(); err != nil {
		t.Errorf("Close while others work: %v", err)
	}
	wg.Wait()
}

func later(ctx context.Context, dev *device.Device) error {
	b := batch.New(dev)
	b.Sum(b.Relu(b.Upload([]float32{1, -2, 3})))
	return b.Execute(ctx)
}

// concurrency checks the results of many goroutines that use one device.
func concurrency(t *testing.T, open Open) {
	dev := start(t, open)
	ctx := t.Context()
	workers, rounds := 200, 8
	if testing.Short() {
		workers = 64
	}
	shared, err := device.Upload(ctx, dev, []float32{1, 2, 3, 4}, 2, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	var wg sync.WaitGroup
	for k := range workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			n := 1 + k*37%3000
			x, dst := make([]float32, n), make([]float32, n)
			sum := 0.0
			for i := range x {
				x[i] = float32((i+k)%9 - 4)
				sum += float64(x[i])
			}
			b := batch.New(dev)
			for r := range rounds {
				switch (k + r) % 5 {
				case 0:
					if err := dev.Relu(ctx, dst, x); err != nil {
						t.Error(err)
					}
				case 1:
					if err := dev.ReluAsync(ctx, dst, x).Wait(ctx); err != nil {
						t.Error(err)
					}
				case 2:
					if s, err := dev.Sum(ctx, x); err != nil || float64(s) != sum {
						t.Errorf("sum %v, %v, want %v", s, err, sum)
					}
					continue
				case 3:
					b.Reset()
					y := b.Relu(b.Upload(x))
					batch.ReadInto(b, y, dst)
					if err := b.Execute(ctx); err != nil {
						t.Error(err)
					}
				case 4:
					b.Reset()
					y := b.MatMul(b.Use(shared), b.Upload([]float32{1, float32(k)}, 2, 1), batch.None)
					if err := b.Execute(ctx); err != nil {
						t.Error(err)
						continue
					}
					if out, err := batch.Read[float32](ctx, b, y); err != nil || out[0] != 1+2*float32(k) || out[1] != 3+4*float32(k) {
						t.Errorf("product %v, %v", out, err)
					}
					continue
				}
				for i := range dst {
					if dst[i] != max(0, x[i]) {
						t.Errorf("goroutine %d: element %d is %v", k, i, dst[i])
						break
					}
					dst[i] = float32(math.NaN())
				}
			}
		}()
	}
	wg.Wait()
}

// leaks checks that memory and the number of goroutines do not grow.
func leaks(t *testing.T, open Open) {
	gone := testutil.Goroutines(t)
	dev := open(t)
	ctx := t.Context()
	x := make([]float32, 300)
	b := batch.New(dev)
	i := 0
	work := func() {
		i++
		b.Reset()
		b.Sum(b.Relu(b.Upload(x[:1+i%len(x)])))
		if err := b.Execute(ctx); err != nil {
			t.Fatal(err)
		}
		// Every other batch has a new shape or a new constant.
		b.Reset()
		b.Scale(b.Upload(x), float32(i))
		if err := b.ExecuteAsync(ctx).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		buf, err := device.Upload(ctx, dev, x)
		if err != nil {
			t.Fatal(err)
		}
		buf.Close()
		if err := dev.ExpAsync(ctx, x, x).Wait(ctx); err != nil {
			t.Fatal(err)
		}
		clear(x)
	}
	rounds, most := 2400, 63
	switch {
	case short():
		rounds, most = 300, 255
	case dev.Info().Kind == device.WebGPU: // TestWebGPUManyBatches runs many more rounds
		rounds = 1200
	}
	for range rounds {
		work() // until the caches of plans are full
	}
	// A plan takes some KiB, and the number of plans in the cache varies.
	if n := testutil.Growth(rounds/4, most, work); n > most {
		t.Errorf("each round of batches leaves %d bytes on the heap", n)
	}
	if s := dev.Stats(); s.Buffers != 0 || s.BufferBytes != 0 {
		t.Errorf("%d buffers of %d bytes are left", s.Buffers, s.BufferBytes)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	gone()
}
