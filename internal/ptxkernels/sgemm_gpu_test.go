package ptxkernels

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// product has the sizes of a product to measure.
type product struct{ m, k, n int }

func (p product) String() string { return fmt.Sprintf("%dx%dx%d", p.m, p.k, p.n) }

func (p product) request(o op.MatMulOpts) *portable.Request {
	a, b := op.Shape{p.m, p.k}, op.Shape{p.k, p.n}
	if o.TransA {
		a = op.Shape{p.k, p.m}
	}
	if o.TransB {
		b = op.Shape{p.n, p.k}
	}
	return &portable.Request{Op: op.MatMul, Attrs: o.Attrs(), In: []portable.Array{{Type: op.F32, Shape: a}, {Type: op.F32, Shape: b}},
		Out: []portable.Array{{Type: op.F32, Shape: op.Shape{p.m, p.n}}}}
}

// bench has device memory for products.
type bench struct {
	*gpu
	a, b      []float32
	da, db, c cu.Ptr
	scratch   cu.Ptr
	room      int64
	from, to  *cu.Event
}

func newBench(t testing.TB, n int) *bench {
	g := openGPU(t)
	x := &bench{gpu: g, a: make([]float32, n), b: make([]float32, n), room: 2 << 30}
	for i := range x.a {
		x.a[i], x.b[i] = float32(pattern[i%len(pattern)]), float32(pattern[(i+i/len(pattern)*7+12345)%len(pattern)])
	}
	must := func(m cu.Memory, err error) cu.Ptr {
		if err != nil {
			t.Fatal(err)
		}
		return m.Ptr()
	}
	x.da, x.db, x.c = must(g.stream.Alloc(int64(4*n))), must(g.stream.Alloc(int64(4*n))), must(g.stream.Alloc(int64(4*n)))
	x.scratch = must(g.stream.Alloc(x.room))
	for _, u := range []struct {
		to cu.Ptr
		v  []float32
	}{{x.da, x.a}, {x.db, x.b}} {
		if err := g.stream.Upload(u.to, cu.AsBytes(u.v)); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if x.from, err = g.dev.NewEvent(true); err != nil {
		t.Fatal(err)
	}
	if x.to, err = g.dev.NewEvent(true); err != nil {
		t.Fatal(err)
	}
	return x
}

// launcher returns a function that launches a plan with the memory of the bench.
func (x *bench) launcher(p *Plan) (func() error, error) {
	b := &buffers{}
	b.arrays[portable.InputRef] = []cu.Ptr{x.da, x.db}
	b.arrays[portable.OutputRef] = []cu.Ptr{x.c}
	at := int64(0)
	for _, n := range p.Scratch {
		b.arrays[portable.ScratchRef] = append(b.arrays[portable.ScratchRef], x.scratch+cu.Ptr(at))
		if at += (n + 511) &^ 511; at > x.room {
			return nil, fmt.Errorf("%d bytes of scratch", at)
		}
	}
	return x.launches(p, b)
}

// verify compares some elements of the product with sums in float64.
func (x *bench) verify(p product, o op.MatMulOpts, f func() error) error {
	if err := x.stream.Set32(x.c, optest.Poison, int64(p.m*p.n)); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	c := make([]byte, 4*p.m*p.n)
	if err := x.stream.Download(c, x.c); err != nil {
		return err
	}
	for i := 0; i < len(c); i += 4 {
		if binary.NativeEndian.Uint32(c[i:]) == optest.Poison {
			return fmt.Errorf("element %d was not written", i/4)
		}
	}
	ai, ak, bk, bj := p.k, 1, p.n, 1
	if o.TransA {
		ai, ak = 1, p.m
	}
	if o.TransB {
		bk, bj = 1, p.k
	}
	for range 200 {
		i, j := rand.IntN(p.m), rand.IntN(p.n)
		switch rand.IntN(4) {
		case 0:
			i = p.m - 1 - min(i, 3)
		case 1:
			j = p.n - 1 - min(j, 3)
		}
		want, mag := 0.0, 0.0
		for k := range p.k {
			v := float64(x.a[i*ai+k*ak]) * float64(x.b[k*bk+j*bj])
			want += v
			mag += math.Abs(v)
		}
		got := float64(math.Float32frombits(binary.NativeEndian.Uint32(c[4*(i*p.n+j):])))
		if !(math.Abs(got-want) <= 1e-6*mag) {
			return fmt.Errorf("element %d, %d is %v, not %v (magnitude %v)", i, j, got, want, mag)
		}
	}
	return nil
}

// best returns the shortest time of a call in several measurements; each measurement lasts about
// the duration each.
func (x *bench) best(f func() error, each time.Duration, times int) (time.Duration, error) {
	minimum := time.Duration(math.MaxInt64)
	n := 1
	for i := range times + 1 {
		if err := x.stream.Record(x.from); err != nil {
			return 0, err
		}
		for range n {
			if err := f(); err != nil {
				return 0, err
			}
		}
		if err := x.stream.Record(x.to); err != nil {
			return 0, err
		}
		if err := x.stream.Synchronize(); err != nil {
			return 0, err
		}
		d, err := cu.Elapsed(x.from, x.to)
		if err != nil {
			return 0, err
		}
		d /= time.Duration(n)
		if i == 0 {
			n = int(max(1, each/max(d, 1)))
			continue
		}
		minimum = min(minimum, d)
	}
	return minimum, nil
}

// sgemmProducts are the sizes to measure: multiples of tiles, and others.
var sgemmProducts = []product{
	{1024, 1024, 1024}, {2048, 2048, 2048}, {4096, 4096, 4096}, {8192, 8192, 8192},
	{1000, 1000, 1000}, {4095, 1023, 2049}, {777, 3333, 1555}, {8192, 64, 8192}, {8192, 8192, 64}, {3001, 1111, 5003}, {513, 8191, 513},
}

func TestGPUSgemm(t *testing.T) {
	x := newBench(t, 1<<24)
	for _, p := range []product{{1, 1, 1}, {9, 9, 9}, {100, 7, 300}, {129, 1025, 65}, {640, 480, 320}, {1023, 1021, 1019}, {65, 5000, 33}, {2049, 100, 2047}, {300, 20000, 20}, {12, 3000, 3000}, {777, 3333, 1555}} {
		one := rand.IntN(4) // short tests run one of the layouts
		for i := range 4 {
			if testing.Short() && (i != one || p.m*p.k*p.n > 1<<28) {
				continue
			}
			o := op.MatMulOpts{TransA: i&1 != 0, TransB: i&2 != 0}
			plan, err := For(p.request(o), x.desc)
			if err != nil {
				t.Errorf("%v %+v: %v", p, o, err)
				continue
			}
			f, err := x.launcher(plan)
			if err == nil {
				err = x.verify(p, o, f)
			}
			if err != nil {
				t.Errorf("%v transposed %v, %v by %s: %v", p, o.TransA, o.TransB, plan.Variant, err)
			}
			if x.dev.Err() != nil {
				t.Fatal(x.dev.Err())
			}
		}
	}
	for _, c := range [][4]int{{3, 70, 90, 130}, {2, 129, 300, 65}, {1, 33, 1500, 40}} {
		o := op.MatMulOpts{Act: op.Silu}
		x.check(t, sgemmTrial(c[0], c[1], c[2], c[3], o, true))
	}
}

func BenchmarkGPUSgemm(b *testing.B) {
	x := newBench(b, 8192*8192)
	for _, p := range sgemmProducts {
		b.Run(p.String(), func(b *testing.B) {
			plan, err := For(p.request(op.MatMulOpts{}), x.desc)
			if err != nil {
				b.Fatal(err)
			}
			f, err := x.launcher(plan)
			if err != nil {
				b.Fatal(err)
			}
			if err := x.verify(p, op.MatMulOpts{}, f); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				d, err := x.best(f, 8*time.Millisecond, 4)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(2*float64(p.m)*float64(p.k)*float64(p.n)/d.Seconds()/1e12, "TFLOP/s")
				b.ReportMetric(d.Seconds()*1e6, "us")
			}
			b.Log(plan.Variant)
		})
	}
}
