package devicetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// Open opens a new device, which the test closes. The device must be pinned: a device that sends work to another
// device would test the latter.
type Open func(t testing.TB) *device.Device

// Run tests devices that open returns. With -short it leaves out large arrays.
func Run(t *testing.T, open Open) {
	seed := testutil.Seed(t)
	runAll(t, open, 1, seed, sampled(seed))
}

// sampled returns a function that chooses the cases to run. Under the race detector these
// are the first few cases of an operation, and the first few that are large enough for several goroutines, because
// the race detector has little to find in the other cases. In short runs the function chooses further cases at random.
func sampled(seed uint64) func(*Case) bool {
	if !testutil.Raced && testing.Short() {
		return firstAndSome(seed, 3, 3)
	}
	type kind struct {
		o     *op.Operation
		large bool
	}
	seen := map[kind]int{}
	return func(c *Case) bool {
		if !testutil.Raced {
			return true
		}
		k := kind{c.Op, c.elements() > parted}
		seen[k]++
		return seen[k] <= 3 || c.Op == op.Gather
	}
}

// firstAndSome returns a function that chooses the first few cases of each operation and type, and a random sample of
// the others. It is for software GPUs, which are slow.
func firstAndSome(seed uint64, first, of int) func(*Case) bool {
	type kind struct {
		o *op.Operation
		d op.DType
	}
	choose, seen := newGenerator(seed), map[kind]int{}
	return func(c *Case) bool {
		k := kind{c.Op, c.In[0].Type}
		seen[k]++
		return seen[k] <= first || choose.IntN(of) == 0
	}
}

// parted is the number of elements from which on several threads share an operation.
const parted = 10_000

// runAll is Run with the cases that keep chooses from those of a seed, on the given number of devices at a time.
func runAll(t *testing.T, open Open, devices int, seed uint64, keep func(*Case) bool) {
	t.Run("operations", func(t *testing.T) { operationsOn(t, open, devices, seed, op.DTypes(), keep) })
	t.Run("graphs", func(t *testing.T) { graphs(t, open) })
	t.Run("rounding", func(t *testing.T) { rounding(t, open) })
	t.Run("factors", func(t *testing.T) { factors(t, open) })
	t.Run("axes", func(t *testing.T) { axesOn(t, open) })
	t.Run("aliasing", func(t *testing.T) { aliasing(t, open) })
	t.Run("mistakes", func(t *testing.T) { mistakes(t, open) })
	t.Run("buffers", func(t *testing.T) { buffers(t, open) })
	t.Run("blocks", func(t *testing.T) { blocks(t, open) })
	t.Run("copies", func(t *testing.T) { copies(t, open) })
	t.Run("streams", func(t *testing.T) { streams(t, open) })
	t.Run("pages", func(t *testing.T) { pages(t, open) })
	t.Run("plans", func(t *testing.T) { plans(t, open) })
	t.Run("cancellation", func(t *testing.T) { cancellation(t, open) })
	t.Run("closing", func(t *testing.T) { closing(t, open) })
	t.Run("concurrency", func(t *testing.T) { concurrency(t, open) })
	t.Run("leaks", func(t *testing.T) { leaks(t, open) })
}

// start opens a pinned device and closes it at the end of the test.
func start(t testing.TB, open Open) *device.Device {
	t.Helper()
	dev := open(t)
	if dev == nil {
		t.Fatal("no device")
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	if !dev.Pinned() {
		t.Fatalf("%v is not pinned: it may run work elsewhere", dev)
	}
	return dev
}

// lacks reports whether err means that the device does not support an element type, and its kind need not support
// it. The CPU supports all types, and every device supports float32 and int32.
func lacks(dev *device.Device, d op.DType, err error) bool {
	return errors.Is(err, device.ErrUnsupported) && dev.Info().Threads == 0 && (d == op.F16 || d == op.BF16)
}

// operations runs every case of the catalogue over the element types in only: in a batch and, if the device has a
// method, by synchronous and asynchronous one-shot calls.
func operations(t *testing.T, open Open, types []op.DType, only func(*Case) bool) {
	operationsOn(t, open, 1, testutil.Seed(t), types, only)
}

// operationsOn is operations on several devices, which run different operations at the same time.
func operationsOn(t *testing.T, open Open, devices int, seed uint64, types []op.DType, only func(*Case) bool) {
	devs := make(chan *device.Device, devices)
	var free deviations
	for range devices {
		dev := start(t, open)
		free = deviationsOf(t.Context(), dev)
		devs <- dev
	}
	var mu sync.Mutex
	chosen := func(c *Case) bool {
		mu.Lock()
		defer mu.Unlock()
		return only(c)
	}
	for _, o := range op.Catalogue() {
		t.Run(o.Name(), func(t *testing.T) {
			if devices > 1 {
				t.Parallel()
			}
			dev := <-devs
			defer func() { devs <- dev }()
			offered, callable, calls := 0, 0, 0 // one-shot methods take slices of numbers, not quantised blocks
			cases := 0
			for _, d := range types {
				for _, c := range Cases(o, d, seed+uint64(o.ID()*16)+uint64(d), short()) {
					offered++
					if !chosen(&c) {
						continue
					}
					n, err := c.run(t.Context(), dev, free)
					if lacks(dev, d, err) {
						t.Logf("%v lacks %v: %v", dev, d, err)
						break
					}
					cases++
					if !c.quantized() {
						callable++
					}
					calls += n
					if err != nil {
						t.Errorf("%v: %v", &c, err)
					}
					if t.Failed() && cases > 200 {
						t.Fatal("and perhaps more")
					}
				}
			}
			if offered == 0 && len(types) == len(op.DTypes()) {
				t.Error("no cases")
			}
			if _, listed := lists[o]; callable > 0 && calls == 0 && !listed && !o.CheckedAsWhole() && hasMethod(o) {
				t.Error("never called one-shot")
			}
		})
	}
}

// short reports whether to leave out large cases. Under the race detector they take long and find no more defects than
// small cases.
func short() bool { return testing.Short() || testutil.Raced }

// hasMethod reports whether devices have a one-shot method for o: its operands and results must be numbers.
func hasMethod(o *op.Operation) bool {
	types := make([]op.DType, len(o.Inputs()))
	for i := range types {
		types[i] = op.F32
	}
	if o == op.Gather || o == op.Rope {
		types = []op.DType{op.F32, op.I32}
	}
	out, err := o.Types(new(op.Attrs), types)
	return err == nil && (out[0] == op.F32 || o.Class() != op.Elementwise && out[0] != op.Bool)
}

// run computes the case by all kinds of calls and compares each result. It returns the number of one-shot calls.
// free has the deviations of the device.
func (c *Case) run(ctx context.Context, dev *device.Device, free deviations) (calls int, err error) {
	return c.runIn(ctx, dev, free, true, true)
}

// runCalls is run with one-shot calls only.
func (c *Case) runCalls(ctx context.Context, dev *device.Device, free deviations) error {
	_, err := c.runIn(ctx, dev, free, false, true)
	return err
}

// runBatch is run in a batch only.
func (c *Case) runBatch(ctx context.Context, dev *device.Device, free deviations) error {
	_, err := c.runIn(ctx, dev, free, true, false)
	return err
}

func (c *Case) runIn(ctx context.Context, dev *device.Device, free deviations, inBatch, alone bool) (calls int, err error) {
	want, types, err := c.Reference()
	if err != nil {
		return 0, fmt.Errorf("reference: %w", err)
	}
	also, err := c.allows(free)
	if err != nil {
		return 0, fmt.Errorf("reference: %w", err)
	}
	in := c.operands()
	var was []*array
	for _, a := range in {
		if a == nil {
			was = append(was, nil)
			continue
		}
		was = append(was, a.clone())
	}
	try := func(how string, call func(out []*array) error) error {
		var out []*array
		for i, w := range want {
			out = append(out, newArray(types[i], len(w.Data)))
		}
		if err := call(out); err != nil {
			return fmt.Errorf("%s: %w", how, err)
		}
		for i, w := range want {
			if err := out[i].check(c.Op, w, &also, i); err != nil {
				return fmt.Errorf("%s: result %d: %w", how, i, err)
			}
		}
		if err := c.asWhole(out, want); err != nil {
			return fmt.Errorf("%s: %w", how, err)
		}
		for i := range in {
			if in[i] == nil {
				continue
			}
			if err := in[i].unchanged(was[i]); err != nil {
				return fmt.Errorf("%s: operand %d: %w", how, i, err)
			}
		}
		return nil
	}
	if inBatch {
		if err := try("batch", func(out []*array) error { return c.inBatch(ctx, dev, in, out) }); err != nil {
			return 0, err
		}
	}
	if !alone {
		return 0, nil
	}
	for _, async := range []bool{false, true} {
		how := map[bool]string{false: "call", true: "async call"}[async]
		err := try(how, func(out []*array) error { return c.oneShot(ctx, dev, async, in, out) })
		if errors.Is(err, errNoCall) {
			return calls, nil
		}
		if err != nil {
			return calls, err
		}
		calls++
	}
	return calls, nil
}
