package kernels

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func TestGPUReduce(t *testing.T) {
	g := openGPU(t)
	for _, o := range reduceOps {
		for _, typ := range rowTypes {
			for _, n := range []int{1, 1000, 4099, 300017} {
				g.check(t, reduceTrial(o, typ, -1, n))
			}
			for _, cols := range []int{1, 3, 8, 37, 100, 509, 1024, 8191, 30011} {
				g.check(t, reduceTrial(o, typ, 1+rand.IntN(1+100000/cols), cols))
			}
		}
	}
}

// TestGPUReduceVariants compares ways that the environment lists:
// RAYO_REDUCE="sum f32 rows cols 256x1-b4-p1056 ...; ...".
func TestGPUReduceVariants(t *testing.T) {
	list := os.Getenv("RAYO_REDUCE")
	if list == "" {
		t.Skip("no variants")
	}
	r := newRowBench(t, 1<<28)
	second, err := r.g.arrays(&Plan{}, [][]byte{randomBytes(lib.Array{Type: op.F32, Shape: op.Shape{1 << 26}})}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(second.free)
	ops := map[string]*op.Operation{}
	for _, o := range reduceOps {
		ops[o.Name()] = o
	}
	for _, line := range strings.Split(list, ";") {
		f := strings.Fields(line)
		if len(f) < 5 {
			continue
		}
		typ := map[string]op.DType{"f32": op.F32, "f16": op.F16, "bf16": op.BF16}[f[1]]
		rows, _ := strconv.Atoi(f[2])
		cols, _ := strconv.Atoi(f[3])
		x := lib.Array{Type: typ, Shape: op.Shape{rows, cols}}
		q := &lib.Request{Op: ops[f[0]], Attrs: ops[f[0]].Defaults().Rows(), Out: []lib.Array{{Type: typ, Shape: op.Shape{rows}}}}
		for range q.Op.Inputs() {
			q.In = append(q.In, x)
		}
		fmt.Printf("%s %s %dx%d:", f[0], f[1], rows, cols)
		for _, s := range f[4:] {
			var w reduceWay
			parts := 1
			p, err := planReduce(q, &r.g.desc)
			if err != nil {
				t.Fatal(err)
			}
			if s != "-" {
				w, parts = reduceWay{Load: ptx.Once, Width: rowVector(typ)}, 1
				for i, f := range strings.Split(s, "-") {
					n := 0
					if i == 0 {
						_, err = fmt.Sscanf(f, "%dx%d", &w.Lanes, &w.Teams)
					} else {
						n, err = strconv.Atoi(f[1:])
					}
					if err != nil {
						t.Fatal(err)
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
			}
			if s != "-" {
				if p, err = planReduceBy(q, w, parts); err != nil {
					t.Fatal(err)
				}
			}
			b := &buffers{}
			b.arrays[lib.InputRef] = append(b.arrays[lib.InputRef], r.b.arrays[lib.InputRef][0], second.arrays[lib.InputRef][0])
			b.arrays[lib.OutputRef] = r.b.arrays[lib.OutputRef]
			temp, err := r.g.arrays(p, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.arrays[lib.ScratchRef] = temp.arrays[lib.ScratchRef]
			launch, err := r.g.launches(p, b)
			if err != nil {
				t.Fatal(err)
			}
			// In a graph, so that it is the device that is timed.
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
				t.Fatal(err)
			}
			d, err := r.g.timed(func() error { return graph.Launch(r.g.stream) }, 1)
			if err != nil {
				t.Fatal(err)
			}
			temp.free()
			d /= n
			speed := float64(rows*cols*typ.Size()*len(q.In)) / d.Seconds()
			fmt.Printf(" %s=%.0f", s, 100*speed/r.copy)
			if rows*cols <= 1<<22 {
				fmt.Printf("(%.1fus)", float64(d.Nanoseconds())/1e3)
			}
		}
		fmt.Println()
	}
}
