package ptxkernels

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func TestGPURows(t *testing.T) {
	g := openGPU(t)
	for _, o := range rowOps {
		for _, typ := range rowTypes {
			for _, cols := range []int{1, 3, 5, 16, 37, 100, 127, 128, 509, 723, 1000, 1024, 1201, 2053, 3501, 4096, 5124, 7777, 8191, 9001, 12345, 15001,
				16000, 18003, 19999, 21113, 24001, 27001, 30011, 32768, 54000, 65521, 65536, 66001, 100001, 131072, 300007} {
				if !sampled() {
					continue
				}
				rows := 1 + rand.IntN(1+30000/cols)
				if rand.IntN(2) == 0 {
					rows += 40 // enough rows for clusters
				}
				g.check(t, rowTrial(o, typ, rows, cols))
			}
		}
	}
}

// rowBench measures operations on rows of one pair of large arrays.
type rowBench struct {
	g    *gpu
	size int // bytes of an array
	b    *buffers
	copy float64 // speed of a copy in bytes per second, read and written
}

func newRowBench(t testing.TB, size int) *rowBench {
	g := openGPU(t)
	r := &rowBench{g: g, size: size}
	x := randomBytes(portable.Array{Type: op.F32, Shape: op.Shape{size / 4}})
	var err error
	r.b, err = g.arrays(&Plan{}, [][]byte{x, x[:1<<22], x[1<<20 : 1<<22]}, []int64{int64(size)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.b.free)
	d, err := g.timed(func() error {
		return g.stream.Copy(r.b.arrays[portable.OutputRef][0], r.b.arrays[portable.InputRef][0], int64(size))
	}, 10)
	if err != nil {
		t.Fatal(err)
	}
	r.copy = 2 * float64(size) / d.Seconds()
	fmt.Printf("copy %.2f TB/s\n", r.copy/1e12)
	return r
}

// request returns a request for rows of cols elements in the arrays: rows of them or, if rows is 0,
// all that fit.
func (r *rowBench) request(o *op.Operation, t op.DType, cols, rows int, weights bool) *portable.Request {
	if rows == 0 {
		rows = r.size / t.Size() / cols
	}
	x := portable.Array{Type: t, Shape: op.Shape{rows, cols}}
	q := &portable.Request{Op: o, Attrs: o.Defaults(), In: []portable.Array{x}, Out: []portable.Array{x}}
	for range len(o.Inputs()) - 1 {
		w := portable.Array{}
		if weights {
			w = portable.Array{Type: t, Shape: op.Shape{cols}}
		}
		q.In = append(q.In, w)
	}
	return q
}

// run checks some rows of the plan's result. It returns the speed in bytes per second, and assumes
// that the plan reads and writes each element once.
func (r *rowBench) run(q *portable.Request, p *Plan, n int) (float64, error) {
	temp, err := r.g.arrays(p, nil, nil)
	if err != nil {
		return 0, err
	}
	defer temp.free()
	b := *r.b
	b.arrays[portable.ScratchRef] = temp.arrays[portable.ScratchRef]
	f, err := r.g.launches(p, &b)
	if err != nil {
		return 0, err
	}
	x, y := r.b.arrays[portable.InputRef][0], r.b.arrays[portable.OutputRef][0]
	if err := r.g.stream.Set32(y, optest.Poison, int64(r.size)/4); err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	rows, cols := q.In[0].Shape.Rows()
	t := q.In[0].Type
	for range 3 {
		row := rand.IntN(rows)
		if rand.IntN(2) == 0 {
			row = rows - 1
		}
		c := &trial{o: q.Op, attrs: q.Attrs}
		for i, a := range q.In {
			if a.Shape == nil {
				c.values, c.types = append(c.values, nil), append(c.types, op.InvalidType)
				continue
			}
			m := make([]byte, cols*t.Size())
			at := r.b.arrays[portable.InputRef][i]
			shape := op.Shape{cols}
			if i == 0 {
				at = x + cu.Ptr(row*cols*t.Size())
				shape = op.Shape{1, cols}
			}
			if err := r.g.stream.Download(m, at); err != nil {
				return 0, err
			}
			v := op.NewArray(shape)
			for j := range v.Data {
				v.Data[j] = t.Float64(m, j)
			}
			c.values, c.types = append(c.values, v), append(c.types, t)
		}
		one, err := c.request()
		if err != nil {
			return 0, err
		}
		m := make([]byte, cols*t.Size())
		if err := r.g.stream.Download(m, y+cu.Ptr(row*cols*t.Size())); err != nil {
			return 0, err
		}
		if err := c.use().Compare(typesOf(one.Out), [][]byte{m}); err != nil {
			return 0, fmt.Errorf("row %d: %w", row, err)
		}
	}
	d, err := r.g.timed(f, n)
	if err != nil {
		return 0, err
	}
	return 2 * float64(rows*cols*t.Size()) / d.Seconds(), nil
}

// parseRowSchedule parses the name of a schedule: see [rowSchedule.name].
func parseRowSchedule(s string, t op.DType) (w rowSchedule, parts int, twice bool, err error) {
	w = rowSchedule{Load: ptx.Once, Save: ptx.Once, Width: rowVector(t)}
	for i, f := range strings.Split(s, "-") {
		switch {
		case i == 0:
			_, err = fmt.Sscanf(f, "%dx%dx%d", &w.Lanes, &w.Groups, &w.Rows)
		case f == "staged":
			w.Staged = true
		case f == "laid":
			w.AlignedWeights = true
		case f == "packed":
			w.Packed = true
		case strings.HasPrefix(f, "ring"):
			w.Ring, err = strconv.Atoi(f[4:])
		case f == "ahead":
			w.Ahead = true
		case f[0] == 'r':
			w.Registers, err = strconv.Atoi(f[1:])
		case f[0] == 's':
			w.Shared, err = strconv.Atoi(f[1:])
		case f[0] == 'w':
			w.Width, err = strconv.Atoi(f[1:])
		case f[0] == 'b':
			w.Blocks, err = strconv.Atoi(f[1:])
		case f[0] == 'h':
			var h int
			h, err = strconv.Atoi(f[1:])
			w.Load, w.Save = ptx.Hint(h/10), ptx.Hint(h%10)
		case f[0] == 'q' || f[0] == 't':
			parts, err = strconv.Atoi(f[1:])
			twice = f[0] == 't'
		case f[0] == 'c': // the size of a cluster
			parts, err = strconv.Atoi(f[1:])
			parts = -parts
		}
		if err != nil {
			return
		}
	}
	return
}

// rowType returns the type with the given name.
func rowType(name string) op.DType {
	for _, t := range rowTypes {
		if t.String() == name {
			return t
		}
	}
	return op.InvalidType
}

// BenchmarkGPURowSchedules compares the schedules that RAYO_TUNE lists, in percent of the speed of
// a copy:
//
//	RAYO_TUNE="softmax f32 4096 256x1x1-r4 512x1x1-r2; layer_norm+ bf16 1000x64 ..."
//
// A + after the operation adds weights; 1000x64 means 64 rows of 1000 elements.
func BenchmarkGPURowSchedules(b *testing.B) {
	testutil.Need(b, "tuning")
	list := os.Getenv("RAYO_TUNE")
	r := newRowBench(b, 1<<28)
	for _, line := range strings.Split(list, ";") {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		name, weights := strings.CutSuffix(f[0], "+")
		typ, o := rowType(f[1]), op.Lookup(name)
		if typ == op.InvalidType || o == nil {
			b.Fatal(line)
		}
		length, some, _ := strings.Cut(f[2], "x")
		cols, err := strconv.Atoi(length)
		if err != nil {
			b.Fatal(err)
		}
		rows, _ := strconv.Atoi(some)
		q := r.request(o, typ, cols, rows, weights)
		fmt.Printf("%s %s %s:", f[0], f[1], f[2])
		for _, s := range f[3:] {
			if s == "-" { // the planner's choice
				p, err := For(q, r.g.desc)
				if err != nil {
					b.Fatal(err)
				}
				speed, err := r.run(q, p, 10)
				if err != nil {
					b.Errorf("%s %s: %v", line, s, err)
				}
				fmt.Printf(" %s=%.0f", p.Variant, 100*speed/r.copy)
				continue
			}
			w, parts, twice, err := parseRowSchedule(s, typ)
			if err != nil {
				b.Fatal(err)
			}
			if v := rowVectors(cols, w.Width); (v-1)/max(parts, -parts, 1)+1 > w.Lanes*(w.Registers+w.Shared) {
				b.Errorf("%s does not fit", s)
				continue
			}
			p, err := planRowsBy(q, w, &r.g.desc)
			if parts > 0 {
				p, err = planRowParts(q, w, parts, twice)
			} else if parts < 0 {
				p, err = planRowCluster(q, w, -parts)
			}
			if err != nil {
				b.Fatal(err)
			}
			speed, err := r.run(q, p, 10)
			if err != nil {
				b.Errorf("%s %s: %v", line, s, err)
			}
			fmt.Printf(" %s=%.0f", s, 100*speed/r.copy)
			if rows > 0 {
				fmt.Printf("(%.1fus)", 2e6*float64(rows*cols*typ.Size())/speed)
			}
		}
		fmt.Println()
	}
}

// BenchmarkGPURows measures the chosen schedules, and a copy of the same number of bytes.
func BenchmarkGPURows(b *testing.B) {
	r := newRowBench(b, 1<<28)
	for _, o := range rowOps {
		for _, typ := range []op.DType{op.F32, op.BF16} {
			for _, cols := range []int{5, 32, 127, 128, 1023, 1024, 4096, 4099, 8192, 16384, 20000, 32768, 50000, 65536, 131072, 1 << 20} {
				if o == op.LogSoftmax && cols != 4096 {
					continue
				}
				b.Run(fmt.Sprintf("%v/%v/%d", o.Name(), typ, cols), func(b *testing.B) {
					q := r.request(o, typ, cols, 0, true)
					p, err := For(q, r.g.desc)
					if err != nil {
						b.Fatal(err)
					}
					for b.Loop() {
						speed, err := r.run(q, p, 10)
						if err != nil {
							b.Fatal(err)
						}
						b.ReportMetric(100*speed/r.copy, "%copy")
					}
				})
			}
		}
	}
}
