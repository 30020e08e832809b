package ptxkernels

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// following has functions that insert the instructions for programmatic dependent launch into the
// text of a kernel: where it lets the next launch begin, and where it waits for the previous one.
var following = map[string]func(text []byte) []byte{
	"alone": func(b []byte) []byte { return b },
	"first": func(b []byte) []byte {
		return beforeFirst(b, "ld.param", "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n\t")
	},
	"early": func(b []byte) []byte {
		return beforeFirst(b, "ld.param", "griddepcontrol.launch_dependents;\n\tgriddepcontrol.wait;\n\t")
	},
	"late": func(b []byte) []byte {
		return beforeFirst(beforeFirst(b, "ld.param", "griddepcontrol.launch_dependents;\n\t"), "mov.b32 %r", "griddepcontrol.wait;\n\t")
	},
	"late2": func(b []byte) []byte {
		return beforeFirst(b, "mov.b32 %r", "griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;\n\t")
	},
}

func beforeFirst(b []byte, what, put string) []byte {
	i := bytes.Index(b, []byte(what))
	if i < 0 {
		i = bytes.Index(b, []byte("ret;"))
	}
	return append(append(append([]byte(nil), b[:i]...), put...), b[i:]...)
}

// BenchmarkGPUChain measures graphs of dependent launches over few elements, with the schedules
// that RAYO_TUNE lists:
//
//	RAYO_TUNE="first softmax 4x256 32x4x1-r2; alone softmax 4x256 -"
//
// The schedule - is the one that the planner chooses.
func BenchmarkGPUChain(b *testing.B) {
	testutil.Need(b, "tuning")
	list := os.Getenv("RAYO_TUNE")
	g := openGPU(b)
	for _, line := range strings.Split(list, ";") {
		f := strings.Fields(line)
		if len(f) < 4 {
			continue
		}
		var rows, cols int
		if _, err := fmt.Sscanf(f[2], "%dx%d", &rows, &cols); err != nil {
			b.Fatal(err)
		}
		fmt.Printf("%s %s:", f[1], f[2])
		for _, schedule := range f[3:] {
			for _, mode := range strings.Split(f[0], ",") {
				twenty, each, err := g.chain(mode, f[1], schedule, rows, cols)
				if err != nil {
					fmt.Printf(" %s/%s %v", mode, schedule, err)
					continue
				}
				fmt.Printf(" %s/%s %.1f(%.2f)", mode, schedule, float64(twenty.Nanoseconds())/1e3, float64(each.Nanoseconds())/1e3)
			}
		}
		fmt.Println()
	}
}

// chain returns the time to run a graph of twenty launches and wait for it, and the time of each
// additional launch.
func (g *gpu) chain(mode, name, schedule string, rows, cols int) (twenty, each time.Duration, err error) {
	x := portable.Array{Type: op.F32, Shape: op.Shape{rows, cols}}
	var p *Plan
	if name == "empty" {
		k := &Kernel{Name: "empty", Block: [3]uint32{128, 1, 1}, Build: func(k *ptx.Kernel) {
			k.Block(128, 1, 1)
			ptx.GlobalParam[ptx.F32](k, "x")
		}}
		p = &Plan{Stages: []Stage{{Kernel: k, Grid: [3]uint32{1, 1, 1}, Args: []Arg{output(0)}, Zero: -1}}}
	} else {
		o := op.Lookup(name)
		q := &portable.Request{Op: o, Attrs: o.Defaults(), In: []portable.Array{x}, Out: []portable.Array{x}}
		for range len(o.Inputs()) - 1 {
			q.In = append(q.In, portable.Array{})
		}
		if schedule == "-" {
			p, err = For(q, g.desc)
		} else {
			w, _, _, parsed := parseRowSchedule(schedule, op.F32)
			if parsed != nil {
				return 0, 0, parsed
			}
			p, err = planRowsBy(q, w, &g.desc)
		}
		if err != nil {
			return 0, 0, err
		}
	}
	s := &p.Stages[0]
	m := ptx.NewModule(g.desc.Target)
	built := m.Kernel("k", s.Kernel.Build)
	text, err := m.AppendPTX(nil)
	if err != nil {
		return 0, 0, err
	}
	mod, err := g.dev.Load(following[mode](text))
	if err != nil {
		return 0, 0, err
	}
	fn, err := mod.Function("k")
	if err != nil {
		return 0, 0, err
	}
	_, dynamic := built.SharedBytes()
	in := randomBytes(x)
	buf, err := g.arrays(&Plan{}, [][]byte{in}, []int64{int64(len(in)), int64(len(in))})
	if err != nil {
		return 0, 0, err
	}
	defer buf.free()
	places := []cu.Ptr{buf.arrays[portable.InputRef][0], buf.arrays[portable.OutputRef][0], buf.arrays[portable.OutputRef][1]}
	params := func(from, to cu.Ptr) cu.Params {
		var v cu.Params
		for _, a := range s.Args {
			switch {
			case a.Kind == Word:
				v.U32(uint32(a.Bits))
			case a.Array.Kind == portable.InputRef:
				v.Ptr(from)
			default:
				v.Ptr(to)
			}
		}
		return v
	}
	dim := func(d [3]uint32) cu.Dim { return cu.Dim{X: d[0], Y: d[1], Z: d[2]} }
	config := cu.Config{Grid: dim(s.Grid), Block: dim(s.Kernel.Block), Shared: uint32(dynamic), Overlap: mode != "alone"}
	run := func(n int) (time.Duration, error) {
		graph, err := g.stream.Capture(func() error {
			for i := range n {
				from, to := places[1+i%2], places[1+(i+1)%2]
				if i == 0 {
					from = places[0]
				}
				if err := g.stream.Launch(fn, config, params(from, to)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		defer graph.Close()
		var took []time.Duration
		for range 151 {
			start := time.Now()
			if err := graph.Launch(g.stream); err != nil {
				return 0, err
			}
			if err := g.stream.Synchronize(); err != nil {
				return 0, err
			}
			took = append(took, time.Since(start))
		}
		return middle(took), nil
	}
	if twenty, err = run(20); err != nil {
		return 0, 0, err
	}
	more, err := run(220)
	return twenty, (more - twenty) / 200, err
}
