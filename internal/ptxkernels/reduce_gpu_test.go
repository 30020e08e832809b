package ptxkernels

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func TestGPUReduce(t *testing.T) {
	g := openGPU(t)
	for _, o := range reduceOps {
		for _, typ := range rowTypes {
			for _, n := range []int{1, 1000, 4099, 300017} {
				if sampled() {
					g.check(t, reduceTrial(o, typ, -1, n))
				}
			}
			for _, cols := range []int{1, 3, 8, 37, 100, 509, 1024, 8191, 30011} {
				if sampled() {
					g.check(t, reduceTrial(o, typ, 1+rand.IntN(1+100000/cols), cols))
				}
			}
		}
	}
}

// reduceBench times reductions over two large arrays.
type reduceBench struct {
	*rowBench
	second *buffers
}

func newReduceBench(b *testing.B) *reduceBench {
	r := &reduceBench{rowBench: newRowBench(b, 1<<28)}
	var err error
	r.second, err = r.g.arrays(&Plan{}, [][]byte{randomBytes(portable.Array{Type: op.F32, Shape: op.Shape{1 << 26}})}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(r.second.free)
	return r
}

// request returns a reduction along rows.
func (r *reduceBench) request(o *op.Operation, t op.DType, rows, cols int) *portable.Request {
	x := portable.Array{Type: t, Shape: op.Shape{rows, cols}}
	q := &portable.Request{Op: o, Attrs: o.Defaults().Rows(), Out: []portable.Array{{Type: t, Shape: op.Shape{rows}}}}
	if o == op.ArgMin || o == op.ArgMax {
		q.Out[0].Type = op.I32
	}
	for range o.Inputs() {
		q.In = append(q.In, x)
	}
	return q
}

// time returns the device time of a plan. It runs a graph of several launches, so that the host
// does not affect the result.
func (r *reduceBench) time(q *portable.Request, p *Plan) (time.Duration, error) {
	b := &buffers{}
	b.arrays[portable.InputRef] = append(b.arrays[portable.InputRef], r.b.arrays[portable.InputRef][0], r.second.arrays[portable.InputRef][0])
	b.arrays[portable.OutputRef] = r.b.arrays[portable.OutputRef]
	temp, err := r.g.arrays(p, nil, nil)
	if err != nil {
		return 0, err
	}
	defer temp.free()
	b.arrays[portable.ScratchRef] = temp.arrays[portable.ScratchRef]
	launch, err := r.g.launches(p, b)
	if err != nil {
		return 0, err
	}
	const n = 10
	graph, err := r.g.stream.Capture(func() error {
		for range n {
			if err := launch(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	d, err := r.g.timed(func() error { return graph.Launch(r.g.stream) }, 1)
	return d / n, err
}

// BenchmarkGPUReduceSchedules compares the schedules that RAYO_TUNE lists, in percent of the speed
// of a copy. The schedule - is the one that the planner chooses:
//
//	RAYO_TUNE="sum f32 1 67108864 - 256x1-b4-p528; ..."
func BenchmarkGPUReduceSchedules(b *testing.B) {
	testutil.Need(b, "tuning")
	list := os.Getenv("RAYO_TUNE")
	r := newReduceBench(b)
	for _, line := range strings.Split(list, ";") {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		typ, o := rowType(f[1]), op.Lookup(f[0])
		rows, _ := strconv.Atoi(f[2])
		cols, _ := strconv.Atoi(f[3])
		if typ == op.InvalidType || o == nil || rows < 1 || cols < 1 {
			b.Fatal(line)
		}
		q := r.request(o, typ, rows, cols)
		fmt.Printf("%s %s %dx%d:", f[0], f[1], rows, cols)
		for _, s := range f[4:] {
			p, err := planReduce(q, &r.g.desc)
			if s != "-" {
				var w reduceSchedule
				var parts int
				if w, parts, err = parseReduceSchedule(s, typ); err == nil {
					p, err = planReduceBy(q, w, parts)
				}
			}
			if err != nil {
				b.Fatal(err)
			}
			d, err := r.time(q, p)
			if err != nil {
				b.Fatal(err)
			}
			fmt.Printf(" %s=%.0f", s, 100*float64(rows*cols*typ.Size()*len(q.In))/d.Seconds()/r.copy)
			if rows*cols <= 1<<22 {
				fmt.Printf("(%.1fus)", float64(d.Nanoseconds())/1e3)
			}
		}
		fmt.Println()
	}
}

// parseReduceSchedule parses 256x1-b4-p528: lanes, teams, batch and parts; w is the width
// and h the hint.
func parseReduceSchedule(s string, t op.DType) (w reduceSchedule, parts int, err error) {
	w, parts = reduceSchedule{Load: ptx.Once, Width: rowVector(t)}, 1
	for i, f := range strings.Split(s, "-") {
		if i == 0 {
			if _, err = fmt.Sscanf(f, "%dx%d", &w.Lanes, &w.Groups); err != nil {
				return
			}
			continue
		}
		n, err := strconv.Atoi(f[1:])
		if err != nil {
			return w, parts, err
		}
		switch f[0] {
		case 'b':
			w.Batch = n
		case 'w':
			w.Width = n
		case 'p':
			parts = n
		case 'h':
			w.Load = ptx.Hint(n)
		}
	}
	return
}

// BenchmarkGPUReduce measures the chosen schedules: the rate at which they read, relative to the
// rate of a copy.
func BenchmarkGPUReduce(b *testing.B) {
	r := newReduceBench(b)
	for _, c := range []struct {
		o          *op.Operation
		t          op.DType
		rows, cols int
	}{
		{op.Sum, op.F32, 1, 1 << 26}, {op.Dot, op.F32, 1, 1 << 26}, {op.Max, op.F32, 1, 1 << 26}, {op.ArgMax, op.F32, 1, 1 << 26},
		{op.Var, op.F32, 1, 1 << 26}, {op.NormL2, op.F32, 1, 1 << 26}, {op.Sum, op.BF16, 1, 1 << 27}, {op.ArgMax, op.BF16, 1, 1 << 27},
		{op.Sum, op.F32, 1, 1 << 20}, {op.Var, op.F32, 1, 1 << 20}, {op.ArgMax, op.F32, 1, 1 << 20}, {op.Sum, op.F32, 1, 1000},
		{op.Sum, op.F32, 1 << 20, 64}, {op.Sum, op.F32, 1 << 16, 1024}, {op.Sum, op.F32, 67000, 1001}, {op.Var, op.F32, 1 << 16, 1024},
		{op.Max, op.BF16, 1 << 14, 8192}, {op.Sum, op.F32, 9000000, 7},
	} {
		b.Run(fmt.Sprintf("%v/%v/%dx%d", c.o, c.t, c.rows, c.cols), func(b *testing.B) {
			q := r.request(c.o, c.t, c.rows, c.cols)
			p, err := For(q, r.g.desc)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				d, err := r.time(q, p)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(100*float64(c.rows*c.cols*c.t.Size()*len(q.In))/d.Seconds()/r.copy, "%copy")
				b.ReportMetric(float64(d.Nanoseconds())/1e3, "µs")
			}
		})
	}
}
