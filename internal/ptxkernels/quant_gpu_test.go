package ptxkernels

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// quantGPU has several quantised matrices on a GPU; together they are larger than its caches.
type quantGPU struct {
	*gpu
	blocks  op.DType
	typ     op.DType // of activations
	pattern []byte   // bytes that all matrices repeat
	w       []cu.Memory
	bytes   int
	x, y    cu.Memory
	acts    []byte
}

// quantActivations and quantResults are the largest numbers of activations and results.
const (
	quantActivations = 8 << 20
	quantResults     = 30 << 20
)

func newQuantGPU(t testing.TB, typ, blocks op.DType, matrices, bytes int) *quantGPU {
	t.Helper()
	q := &quantGPU{gpu: openGPU(t), blocks: blocks, typ: typ, bytes: bytes}
	alloc := func(n int) cu.Memory {
		m, err := q.stream.Alloc(int64(n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Free() })
		return m
	}
	f := blocks.Block()
	q.pattern = randomBlocks(blocks, op.Shape{(8<<20)/f.Bytes() - 5, f.Elements()})
	for range matrices {
		m := alloc(bytes)
		for at := 0; at < bytes; at += len(q.pattern) {
			if err := q.stream.Upload(m.Ptr()+cu.Ptr(at), q.pattern[:min(len(q.pattern), bytes-at)]); err != nil {
				t.Fatal(err)
			}
		}
		q.w = append(q.w, m)
	}
	q.x, q.y = alloc(4*quantActivations), alloc(4*quantResults)
	q.acts = randomBytes(portable.Array{Type: typ, Shape: op.Shape{quantActivations}})
	if err := q.stream.Upload(q.x.Ptr(), q.acts); err != nil {
		t.Fatal(err)
	}
	return q
}

// request returns a product of m rows of k activations with all rows of a matrix.
func (q *quantGPU) request(m, k int) (*portable.Request, op.Product) {
	row, _ := q.blocks.Bytes(op.Shape{1, k})
	n := q.bytes / row
	return &portable.Request{Op: op.MatMulQ, Attrs: op.MatMulQOpts{}.Attrs(),
		In:  []portable.Array{{Type: q.typ, Shape: op.Shape{m, k}}, {Type: q.blocks, Shape: op.Shape{n, k}}, {}},
		Out: []portable.Array{{Type: q.typ, Shape: op.Shape{m, n}}}}, op.Product{Batch: 1, M: m, K: k, N: n, SharedB: true}
}

// launch returns a function that runs the plan, each time with another matrix.
func (q *quantGPU) launch(p *Plan) (func() error, error) {
	var calls []func() error
	for _, w := range q.w {
		b := &buffers{}
		b.arrays[portable.InputRef] = []cu.Ptr{q.x.Ptr(), w.Ptr()}
		b.arrays[portable.OutputRef] = []cu.Ptr{q.y.Ptr()}
		for _, n := range append(p.Scratch[:len(p.Scratch):len(p.Scratch)], p.Zeros...) {
			m, err := q.stream.Alloc(n)
			if err == nil {
				err = q.stream.Set8(m.Ptr(), 0, n)
			}
			if err != nil {
				return nil, err
			}
			b.arrays[portable.ScratchRef] = append(b.arrays[portable.ScratchRef], m.Ptr())
		}
		f, err := q.launches(p, b)
		if err != nil {
			return nil, err
		}
		calls = append(calls, f)
	}
	next := 0
	return func() error {
		next = (next + 1) % len(calls)
		return calls[next]()
	}, nil
}

// sample compares some rows of the result with sums in float64.
func (q *quantGPU) sample(p op.Product, f func() error) error {
	if err := q.stream.Set32(q.y.Ptr(), optest.Poison, int64(p.M*p.N*q.typ.Size()/4)); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	if err := q.stream.Synchronize(); err != nil {
		return err
	}
	out := make([]byte, q.typ.Size()*p.M*p.N)
	if err := q.stream.Download(out, q.y.Ptr()); err != nil {
		return err
	}
	row, _ := q.blocks.Bytes(op.Shape{1, p.K})
	mem := make([]byte, row)
	for s := range 60 {
		j := rand.IntN(p.N)
		if s == 0 {
			j = p.N - 1
		}
		for i := range mem {
			mem[i] = q.pattern[(j*row+i)%len(q.pattern)]
		}
		w, err := q.blocks.Array(op.Shape{1, p.K}, mem)
		if err != nil {
			return err
		}
		m := rand.IntN(p.M)
		sum, mag := 0.0, 0.0
		for k, v := range w.Data {
			a := q.typ.Float64(q.acts, m*p.K+k)
			sum, mag = sum+a*v, mag+math.Abs(a*w.Mag[k])
		}
		if err := op.MatMulQ.Check(q.typ.Float64(out, m*p.N+j), sum, mag*op.Depth(p.K), q.typ); err != nil {
			return fmt.Errorf("row %d: %w", j, err)
		}
	}
	for i := range p.M * p.N {
		if v := q.typ.Float64(out, i); math.IsNaN(v) {
			return fmt.Errorf("element %d is NaN", i)
		}
	}
	return nil
}

// TestGPUMatMulQ tests random sizes for each format, because kernels take long to compile.
func TestGPUMatMulQ(t *testing.T) {
	for _, blocks := range blockTypes() {
		t.Run(blocks.String(), func(t *testing.T) {
			g, unit := openGPU(t), blocks.Block().Elements()
			sizes := []struct{ m, k, n int }{
				{1, 512, 5303}, {1, 12800, 1}, {2, 768, 333}, {3, 1536, 170}, {8, unit, 16}, {1, 256 + unit, 4001}, {1, 23 * unit, 1019}, {1, 4096, 2500}, {1, 5120, 5001}, {1, 11008, 4999}, {1, 28672, 2113}, {1, 18944, 2113}, {1, 2304, 4001}, {1, 1792, 4003}, {1, 1024, 7001}, {1, 1536, 4999}, {1, 512, 9001}, {1, 3072, 2999}, {2, 4096, 2501}, {3, 8192, 2003}, {4, 2048, 3001}, {2, 28672, 1003}, {1, 2880, 3001}, {1, 17920, 2001}, {1, 29568, 1999},
				{7, 3 * unit, 999}, {16, 2048, 1000}, {100, 1024, 333}, {300, 512, 500}, {33, 1280, 1001},
			}
			for i, at := range rand.Perm(len(sizes))[:3] {
				s := sizes[at]
				if s.k%unit != 0 {
					continue
				}
				x, err := newQuantTrial([]op.DType{op.F32, op.F16, op.BF16}[rand.IntN(3)], blocks, s.m, s.k, s.n, i%2 == 0, op.MatMulQOpts{}, true)
				if err != nil {
					t.Fatal(err)
				}
				p, err := For(x.request, g.desc)
				if errors.Is(err, op.ErrUnsupported) && s.k%256 != 0 {
					continue
				}
				if err != nil {
					t.Errorf("%v: %v", s, err)
					continue
				}
				out := optest.Poisoned(int64(s.m * s.n * x.request.Out[0].Type.Size()))
				if err = g.run(p, x.in, [][]byte{out}); err == nil {
					err = x.check(out)
				}
				if err != nil {
					t.Errorf("%v %s: %v", s, p.Variant, err)
				}
			}
		})
	}
}

// fewTunings lists the warps, groups and stages to try, and how many variants: by rows, by tiles,
// and by tiles without digits.
var fewTunings = [][4]int{{8, 2, 2, 1}, {8, 2, 3, 1}, {8, 2, 4, 1}, {16, 2, 2, 1}}

// BenchmarkGPUMatMulQSchedules measures variants of products of one row. It takes minutes, so it
// runs only if RAYO_TUNE is set.
func BenchmarkGPUMatMulQSchedules(b *testing.B) {
	testutil.Need(b, "tuning")
	for _, blocks := range []op.DType{op.Q4_K, op.Q6_K, op.Q8_0, op.Q5_K, op.Q4_0, op.Q5_0} {
		b.Run(blocks.String(), func(b *testing.B) {
			q := newQuantGPU(b, op.F32, blocks, 3, 210<<20)
			for _, k := range []int{4096, 14336} {
				for _, v := range fewTunings {
					r, p := q.request(1, k)
					s, err := quantFewFor(p, op.F32, blocks, &q.desc)
					if err != nil {
						b.Fatal(err)
					}
					s.Warps, s.SharingWarps, s.Groups, s.Stages, s.Tensor = v[0], v[0], v[1], v[2], v[3] > 0
					if v[3] > 1 {
						s.Digits = 0
					}
					if !s.fit(&q.desc) || s.Tensor && !s.tileable() {
						continue // the block does not fit into a multiprocessor
					}
					b.Run(fmt.Sprintf("k%d/w%dg%ds%dt%d", k, v[0], v[1], v[2], v[3]), func(b *testing.B) {
						plan, err := s.plan(r, p, &q.desc)
						if err != nil {
							b.Fatal(err)
						}
						q.speed(b, plan, p, 6)
					})
				}
			}
		})
	}
}

// ringTunings lists the warps that multiply, the warps that fill stages, and the digits to try.
var ringTunings = [][3]int{{8, 4, digits}, {8, 2, digits}, {8, 8, digits}, {12, 4, digits}, {8, 4, digits - 2}}

// BenchmarkGPUMatMulQRing is BenchmarkGPUMatMulQSchedules for kernels whose warps share stages.
func BenchmarkGPUMatMulQRing(b *testing.B) {
	testutil.Need(b, "tuning")
	for _, blocks := range blockTypes() {
		b.Run(blocks.String(), func(b *testing.B) {
			q := newQuantGPU(b, op.F32, blocks, 3, 270<<20)
			for _, k := range chosenLengths {
				for _, v := range ringTunings {
					r, p := q.request(1, k)
					s, err := ringFor(p, op.F32, blocks, &q.desc)
					if err != nil {
						b.Fatal(err)
					}
					s.Warps, s.SharingWarps, s.Width, s.Groups, s.Fill, s.Digits, s.Stages = v[0], v[0], v[0], 1, v[1], v[2], ringStages
					s.Tall, s.Solid = 1, false
					if !s.fit(&q.desc) {
						continue
					}
					b.Run(fmt.Sprintf("k%d/w%df%dd%d", k, v[0], v[1], v[2]), func(b *testing.B) {
						plan, err := s.plan(r, p, &q.desc)
						if err != nil {
							b.Fatal(err)
						}
						q.speed(b, plan, p, 4)
					})
				}
			}
		})
	}
}

// aloneTunings lists the warps, groups and stages to try for kernels whose warps do not share rows.
var aloneTunings = [][3]int{{8, 2, 2}, {8, 3, 2}, {8, 4, 2}, {8, 8, 2}, {12, 2, 2}, {12, 3, 2}, {12, 4, 2}, {16, 1, 3}, {16, 2, 2}, {16, 4, 2}}

// wideTunings lists the warps, the width, the warps that fill stages and the stages to try for kernels whose warps share stages.
var wideTunings = [][4]int{{8, 16, 4, 3}, {8, 16, 4, 4}, {8, 16, 2, 4}, {12, 12, 4, 4}, {16, 16, 4, 3}}

// BenchmarkGPUMatMulQAlone is BenchmarkGPUMatMulQSchedules for the formats of lone, and of ringed with wide stages. RAYO_TUNE_K is the
// length of a row.
func BenchmarkGPUMatMulQAlone(b *testing.B) {
	testutil.Need(b, "tuning")
	k, err := strconv.Atoi(cmp.Or(os.Getenv("RAYO_TUNE_K"), "8192"))
	if err != nil {
		b.Fatal(err)
	}
	for _, blocks := range blockTypes() {
		wide := ringed[blocks.Block()].wide > 0
		if lone[blocks.Block()] == nil && !wide {
			continue
		}
		b.Run(blocks.String(), func(b *testing.B) {
			q := newQuantGPU(b, op.F32, blocks, 3, 270<<20)
			r, p := q.request(1, k)
			groups := k / digitGroup
			try := func(name string, s *quantFewSpec) {
				fits := false
				for s.Split = 1; s.Split <= maxLone && !fits; s.Split++ {
					s.Room = ceilDiv(s.part(groups)*digitGroup, 1024) * 1024
					if fits = s.Ring && s.bytes() <= q.desc.Shared || !s.Ring && s.fitStages(groups, &q.desc); fits {
						break
					}
				}
				if !fits || s.part(groups)*(s.Split-1) >= groups {
					return
				}
				b.Run(name, func(b *testing.B) {
					plan, err := s.plan(r, p, &q.desc)
					if err != nil {
						b.Fatal(err)
					}
					q.speed(b, plan, p, 3)
				})
			}
			base := quantFewSpec{Type: op.F32, Blocks: blocks, M: 1, Whole: true, SharingWarps: 1, Digits: digits}
			for _, v := range aloneTunings {
				s := base
				s.Warps, s.Groups, s.Stages = v[0], v[1], v[2]
				try(fmt.Sprintf("w%dg%ds%d", v[0], v[1], v[2]), &s)
			}
			for _, v := range wideTunings {
				s, err := ringFor(p, op.F32, blocks, &q.desc)
				if err != nil || !wide {
					continue
				}
				s.Solid, s.Tall = false, 1
				s.Warps, s.SharingWarps, s.Width, s.Fill, s.Stages, s.Digits = v[0], v[0], v[1], v[2], v[3], digits
				s.Groups = ceilDiv(s.Width, s.Warps)
				try(fmt.Sprintf("ring_w%dx%df%ds%d", v[0], v[1], v[2], v[3]), s)
			}
		})
	}
}

// speed checks the result of a plan and reports its speed.
func (q *quantGPU) speed(b *testing.B, plan *Plan, p op.Product, calls int) {
	b.Helper()
	f, err := q.launch(plan)
	if err == nil {
		err = q.sample(p, f)
	}
	if err != nil {
		b.Fatal(plan.Variant, err)
	}
	d, err := q.timed(f, calls)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(q.bytes)/float64(d)*float64(time.Second)*1e-9, "GB/s")
	b.ReportMetric(0, "ns/op")
}

// chosenLengths are lengths of rows in models. With Q6_K, some begin at multiples of 16 bytes, some
// of 8, some only of 2.
var chosenLengths = []int{4096, 5120, 8192, 11008, 14336, 28672}

// BenchmarkGPUMatMulQChosen times products of few rows: it reports GB/s of weights for each number
// and length of rows of activations.
func BenchmarkGPUMatMulQChosen(b *testing.B) {
	for _, blocks := range blockTypes() {
		b.Run(blocks.String(), func(b *testing.B) {
			q := newQuantGPU(b, op.F32, blocks, 3, 270<<20)
			shapes := [][2]int{{4, 4096}}
			for _, k := range chosenLengths {
				shapes = append(shapes, [2]int{1, k})
			}
			for _, s := range shapes {
				b.Run(fmt.Sprintf("%dx%d", s[0], s[1]), func(b *testing.B) {
					r, p := q.request(s[0], s[1])
					plan, err := For(r, q.desc)
					if err != nil {
						b.Fatal(err)
					}
					q.speed(b, plan, p, 4)
				})
			}
		})
	}
}

// manyShapes are shapes of products in models.
var manyShapes = []op.Product{{M: 16, K: 4096, N: 14336}, {M: 64, K: 4096, N: 14336}, {M: 512, K: 4096, N: 4096}, {M: 2048, K: 4096, N: 14336}}

// BenchmarkGPUMatMulQMany times products of many rows.
func BenchmarkGPUMatMulQMany(b *testing.B) {
	for _, blocks := range []op.DType{op.Q4_K, op.Q6_K, op.Q8_0} {
		for _, typ := range []op.DType{op.F32, op.BF16} {
			b.Run(fmt.Sprintf("%v/%v", blocks, typ), func(b *testing.B) {
				for _, s := range manyShapes {
					bytes, _ := blocks.Bytes(op.Shape{s.N, s.K})
					q := newQuantGPU(b, typ, blocks, 1, bytes)
					r, p := q.request(s.M, s.K)
					plan, err := For(r, q.desc)
					if err != nil {
						b.Fatal(err)
					}
					f, err := q.launch(plan)
					if err == nil {
						err = q.sample(p, f)
					}
					if err != nil {
						b.Fatal(plan.Variant, err)
					}
					d, err := q.timed(f, 4)
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(2*float64(s.M)*float64(s.K)*float64(s.N)/float64(d)*float64(time.Second)*1e-12, fmt.Sprintf("TFLOP/s/%dx%d", s.M, s.N))
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
