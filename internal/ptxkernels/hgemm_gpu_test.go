package ptxkernels

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// halfGPU has operands and room for results on a GPU, for products of many sizes.
type halfGPU struct {
	*gpu
	host    [2][]byte
	in      [2]cu.Memory
	out     cu.Memory
	scratch cu.Memory
}

// newHalfGPU allocates operands and a result of n elements each, and n elements of scratch memory.
func newHalfGPU(t testing.TB, typ op.DType, n int) *halfGPU {
	t.Helper()
	h := &halfGPU{gpu: openGPU(t)}
	alloc := func(n int) cu.Memory {
		m, err := h.stream.Alloc(int64(n))
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for i := range h.in {
		h.in[i], h.host[i] = alloc(typ.Size()*n), randomBytes(portable.Array{Type: typ, Shape: op.Shape{n}})
		if i == 1 { // so that a and b differ
			copy(h.host[i], h.host[i][typ.Size()*4567:])
		}
		if err := h.stream.Upload(h.in[i].Ptr(), h.host[i]); err != nil {
			t.Fatal(err)
		}
	}
	h.out, h.scratch = alloc(typ.Size()*n), alloc(4*typ.Size()*n)
	return h
}

// launch returns a function that launches the plan.
func (h *halfGPU) launch(p *Plan) (func() error, error) {
	b := &buffers{}
	b.arrays[portable.InputRef] = []cu.Ptr{h.in[0].Ptr(), h.in[1].Ptr(), h.in[1].Ptr()} // the last one is the bias
	b.arrays[portable.OutputRef] = []cu.Ptr{h.out.Ptr()}
	b.sizes[portable.ScratchRef] = p.Scratch
	at := h.scratch.Ptr()
	for _, n := range p.Scratch {
		b.arrays[portable.ScratchRef] = append(b.arrays[portable.ScratchRef], at)
		at += cu.Ptr((n + 255) &^ 255)
	}
	return h.launches(p, b)
}

// check runs the plan and compares random elements with sums in float64.
func (h *halfGPU) check(p *halfProduct, plan *Plan) error {
	f, err := h.launch(plan)
	if err != nil {
		return err
	}
	n := p.Batch * p.M * p.N
	if err := h.stream.Set32(h.out.Ptr(), optest.Poison, int64(n*p.Type.Size()+3)/4); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	out := make([]byte, p.Type.Size()*n)
	if err := h.stream.Synchronize(); err != nil {
		return err
	}
	if err := h.stream.Download(out, h.out.Ptr()); err != nil {
		return err
	}
	ma, mb := p.lay()
	ra, rb := ma.inner, mb.inner
	a := func(q, i, k int) float64 {
		if p.TransA {
			i, k = k, i
		}
		return p.Type.Float64(h.host[0], q*p.M*p.K+i*ra+k)
	}
	b := func(q, k, j int) float64 {
		if p.TransB {
			k, j = j, k
		}
		if p.SharedB {
			q = 0
		}
		return p.Type.Float64(h.host[1], q*p.K*p.N+k*rb+j)
	}
	attrs := op.MatMulOpts{TF32: p.Type == op.F32}.Attrs()
	x, y := op.NewArray(op.Shape{1, p.K}), op.NewArray(op.Shape{p.K, 1})
	for s := range min(4000, 8+4_000_000/p.K) {
		e := rand.IntN(n)
		if s < 4 { // the corners
			e = []int{0, p.N - 1, n - p.N, n - 1}[s]
		}
		q, i, j := e/(p.M*p.N), e/p.N%p.M, e%p.N
		for k := range p.K {
			x.Data[k], y.Data[k] = a(q, i, k), b(q, k, j)
		}
		want, err := op.MatMul.Reference(&attrs, []*op.Array{x, y}, []op.DType{p.Type, p.Type})
		if err != nil {
			return err
		}
		if err := op.MatMul.Check(p.Type.Float64(out, e), want[0].Data[0], want[0].Mag[0], p.Type); err != nil {
			return fmt.Errorf("element %d (%d, %d of %d): %w", e, i, j, q, err)
		}
	}
	for e := range n {
		if v := p.Type.Float64(out, e); math.IsNaN(v) {
			return fmt.Errorf("element %d is NaN", e)
		}
	}
	return nil
}

// rate returns the TFLOP/s of a plan.
func (h *halfGPU) rate(p *halfProduct, plan *Plan) (float64, error) {
	f, err := h.launch(plan)
	if err != nil {
		return 0, err
	}
	flop := 2 * float64(p.Batch) * float64(p.M) * float64(p.K) * float64(p.N)
	n := int(max(1, min(300, 3e-3*500e12/flop))) // 3 ms
	d, err := h.timed(f, n)
	return flop / float64(d) * float64(time.Second) * 1e-12, err
}

// BenchmarkGPUHalfMatMul multiplies matrices of many sizes with every kind of tile. It checks the
// results first.
func BenchmarkGPUHalfMatMul(b *testing.B) {
	h := newHalfGPU(b, op.BF16, 8200*8200)
	run := func(name string, p *halfProduct, plan *Plan, err error) {
		b.Run(name, func(b *testing.B) {
			if err == nil && p.M <= 4200 {
				err = h.check(p, plan)
			}
			if err != nil {
				b.Fatal(err)
			}
			rate, err := h.rate(p, plan)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(rate, "TFLOP/s")
			b.ReportMetric(0, "ns/op")
		})
	}
	for _, q := range []op.Product{
		{Batch: 1, M: 1024, K: 1024, N: 1024}, {Batch: 1, M: 2048, K: 2048, N: 2048}, {Batch: 1, M: 4096, K: 4096, N: 4096}, {Batch: 1, M: 8192, K: 8192, N: 8192},
		{Batch: 1, M: 1000, K: 1000, N: 1000}, {Batch: 1, M: 4097, K: 4097, N: 4097}, {Batch: 1, M: 5000, K: 5000, N: 5000}, {Batch: 1, M: 777, K: 3333, N: 1555},
		{Batch: 1, M: 16, K: 8192, N: 8192}, {Batch: 64, M: 256, K: 256, N: 256},
	} {
		p := &halfProduct{Product: q, Type: op.BF16}
		plan, err := p.warpgroups(&h.desc)
		run(fmt.Sprintf("%dx%dx%dx%d", q.Batch, q.M, q.K, q.N), p, plan, err)
	}
	for i, o := range layouts {
		p := &halfProduct{Product: op.Product{Batch: 1, M: 4096, K: 4096, N: 4096}, Type: op.BF16, TransA: o.TransA, TransB: o.TransB}
		for _, s := range wgmmaTiles {
			plan, err := p.warpgroupsOf(wgmmaSchedule{wgmmaSpec: s.wgmmaSpec, parts: 1}, &h.desc)
			run(fmt.Sprintf("%s/%d", s.wgmmaSpec.String(), i), p, plan, err)
		}
		for _, s := range mmaTiles {
			plan, err := p.warpsOf(s.mmaSpec)
			run(fmt.Sprintf("%s/%d", s.mmaSpec.String(), i), p, plan, err)
		}
	}
}

// parseSchedule parses the result of [wgmmaSchedule.String], for schedules with one launch.
func parseSchedule(s string) (w wgmmaSchedule, err error) {
	f := strings.Split(s, "_")
	if _, err = fmt.Sscanf(strings.Replace(f[0], "t", "", 1), "wgmma%dx%dx%d", &w.Rows, &w.Cols, &w.Groups); err != nil {
		return w, err
	}
	w.parts = 1
	for _, f := range f[1:] {
		to := map[byte]*int{'s': &w.Stages, 'c': &w.Cluster, 'k': &w.parts}[f[0]]
		if to == nil {
			w.copyA, w.copyB = strings.Contains(f, "a"), strings.Contains(f, "b")
		} else if *to, err = strconv.Atoi(f[1:]); err != nil {
			return w, err
		}
	}
	return w, nil
}

// full returns the request for the same product in float32 instead of TF32.
func (p *halfProduct) full() *portable.Request {
	a, b := p.lay()
	return &portable.Request{Op: op.MatMul, Attrs: op.MatMulOpts{TransA: p.TransA, TransB: p.TransB}.Attrs(),
		In:  []portable.Array{{Type: p.Type, Shape: op.Shape{a.count, a.outer, a.inner}}, {Type: p.Type, Shape: op.Shape{b.count, b.outer, b.inner}}},
		Out: []portable.Array{{Type: p.Type, Shape: op.Shape{p.Batch, p.M, p.N}}}}
}

// BenchmarkGPUHalfSchedules compares the TFLOP/s of the schedules that RAYO_TUNE lists. It checks
// the results of each first:
//
//	RAYO_TUNE="f32 4096x4096x4096 nn - mma wgmma128x256x2_s4_c1_b; bf16 ..."
//
// The sizes are m, k and n, after the number of products if there are several. t marks a transposed
// operand. The schedule - is the one that the planner chooses, mma the kernel of single warps, and
// full the float32 kernel.
func BenchmarkGPUHalfSchedules(b *testing.B) {
	testutil.Need(b, "tuning")
	room := map[op.DType]*halfGPU{}
	for _, line := range strings.Split(os.Getenv("RAYO_TUNE"), ";") {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		p := &halfProduct{Product: op.Product{Batch: 1}, Type: map[string]op.DType{"f32": op.F32, "f16": op.F16, "bf16": op.BF16}[f[0]], TransA: f[2][0] == 't', TransB: f[2][1] == 't'}
		sizes := f[1]
		if strings.Count(sizes, "x") == 2 {
			sizes = "1x" + sizes
		}
		if _, err := fmt.Sscanf(sizes, "%dx%dx%dx%d", &p.Batch, &p.M, &p.K, &p.N); err != nil || p.Type == op.InvalidType {
			b.Fatal(line)
		}
		h := room[p.Type]
		if h == nil {
			h = newHalfGPU(b, p.Type, 8200*8200)
			room[p.Type] = h
		}
		fmt.Printf("%s %s %s:", f[0], f[1], f[2])
		checked := map[string]bool{}
		for _, s := range f[3:] {
			var plan *Plan
			var err error
			switch s {
			case "-":
				plan, err = p.warpgroups(&h.desc)
			case "mma":
				plan, err = p.warps(&h.desc)
			case "full":
				plan, err = For(p.full(), h.desc)
			default:
				var w wgmmaSchedule
				if w, err = parseSchedule(s); err == nil {
					plan, err = p.warpgroupsOf(w, &h.desc)
				}
			}
			rate := 0.0
			if err == nil && p.M <= 4200 && !checked[plan.Variant] {
				err = h.check(p, plan)
			}
			if err == nil {
				checked[plan.Variant] = true
				rate, err = h.rate(p, plan)
			}
			if err != nil {
				b.Errorf("%s %s: %v", line, s, err)
				continue
			}
			fmt.Printf(" %s=%.4g", plan.Variant, rate)
		}
		fmt.Println()
	}
}

// TestGPUHalfMatMul multiplies matrices of random sizes, which were not tuned.
func TestGPUHalfMatMul(t *testing.T) {
	for _, typ := range []op.DType{op.BF16, op.F32} {
		testGPUHalfMatMul(t, typ)
	}
}

func testGPUHalfMatMul(t *testing.T, typ op.DType) {
	h := newHalfGPU(t, typ, 3000*3000)
	side := func() int { return 1 + rand.IntN([]int{40, 300, 2000}[rand.IntN(3)]) }
	for i := range 24 {
		o := layouts[i%4]
		q := op.Product{Batch: 1 + i/4%2, M: side(), K: side(), N: side(), SharedB: rand.IntN(2) == 1}
		p := &halfProduct{q, typ, o.TransA, o.TransB, false, nil}
		for _, f := range []func(d *Device) (*Plan, error){p.warpgroups, p.warps} {
			plan, err := f(&h.desc)
			if err == nil {
				err = h.check(p, plan)
			}
			if err != nil {
				t.Errorf("%v %v: %v", plan, q, err)
			}
		}
	}
}

// TestGPUHalfTiles multiplies with every kind of tile and every kind of store. Few blocks run, so
// that each has many tiles.
func TestGPUHalfTiles(t *testing.T) {
	for _, typ := range []op.DType{op.BF16, op.F32} {
		testGPUHalfTiles(t, typ)
	}
}

func testGPUHalfTiles(t *testing.T, typ op.DType) {
	h := newHalfGPU(t, typ, 1500*1500)
	few := h.desc
	few.Multiprocessors = 6
	for i, s := range wgmmaTiles {
		for j := range 2 {
			o := layouts[(i+j)%4]
			p := &halfProduct{Product: op.Product{Batch: 2, M: 700, K: 776, N: 712}, Type: typ, TransA: o.TransA, TransB: o.TransB}
			w := wgmmaSchedule{wgmmaSpec: s.wgmmaSpec, parts: 1}
			w.copyB = typ == op.F32 && o.TransA && !o.TransB
			switch {
			case j == 1 && i%2 == 0:
				p.N, p.K = 713, 777
			case j == 1:
				w.parts = 3
			}
			t.Run(fmt.Sprint(w.String(), " ", i+j, " ", p.Product), func(t *testing.T) {
				plan, err := p.warpgroupsOf(w, &few)
				if err == nil {
					err = h.check(p, plan)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
}
