//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64)

package measure

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
)

// copyRate is the bytes a second, read and written, of a copy on an H200: what
// percentages are of.
const copyRate = 4.16e12

// use is an operation on operands of some shapes.
type use struct {
	name  string
	o     *op.Operation
	attrs op.Attrs
	in    []op.Shape
	flops float64 // 0 where bytes count
}

// request returns the request of a use.
func (u *use) request(t lib.Target, variant string) (*lib.Request, error) {
	r := &lib.Request{Op: u.o, Attrs: u.attrs, Target: t, Variant: variant}
	types := make([]op.DType, len(u.in))
	for i, s := range u.in {
		if s != nil {
			types[i] = op.F32
		}
		if u.o == op.Gather && i == 1 {
			types[i] = op.I32
		}
		r.In = append(r.In, lib.Array{Type: types[i], Shape: s})
	}
	ts, err := u.o.Types(&r.Attrs, types)
	if err != nil {
		return nil, err
	}
	ss, err := u.o.Shapes(&r.Attrs, u.in)
	if err != nil {
		return nil, err
	}
	for i := range ts {
		r.Out = append(r.Out, lib.Array{Type: ts[i], Shape: ss[i]})
	}
	return r, nil
}

// measure compares the results of the small use, and says how fast the large one
// is, which is the same with more rows.
func (g *rig) measure(small, large *use, variant string) {
	r, err := small.request(g.target, variant)
	if err != nil {
		g.t.Fatal(err)
	}
	big, err := large.request(g.target, variant)
	if err != nil {
		g.t.Fatal(err)
	}
	p, err := lib.For(big)
	if err != nil {
		return // does not fit
	}
	r.Variant = p.Variant
	ps, err := lib.For(r)
	if err != nil {
		return
	}
	name := fmt.Sprintf("%-24s %-18s", large.name, p.Variant)
	var in [][]byte
	var bufs []webgpu.HostBuffer
	load := func(r *lib.Request) {
		for _, b := range bufs {
			if b != nil {
				b.Release()
			}
		}
		in, bufs = nil, nil
		for i, a := range r.In {
			if a.Shape == nil {
				in, bufs = append(in, nil), append(bufs, nil)
				continue
			}
			n := bytesOf(a)
			var m []byte
			if large.o == op.Gather && i == 1 {
				m = make([]byte, n)
				rows := r.In[0].Shape[0]
				for j := range n / 4 {
					op.I32.PutFloat64(m, int(j), float64((int(j)*7919)%rows))
				}
			} else {
				m = normal(int(min(n/4, 1<<20)), op.F32)
			}
			in, bufs = append(in, m), append(bufs, g.upload(m, n))
		}
	}
	load(r)
	for i, a := range r.In {
		if a.Shape != nil {
			if want := bytesOf(a); int64(len(in[i])) < want {
				m := make([]byte, want)
				for at := 0; at < len(m); at += len(in[i]) {
					copy(m[at:], in[i])
				}
				in[i] = m
			}
		}
	}
	w := g.prepare(r, ps, bufs)
	g.run(w.list)
	var out [][]byte
	for i, o := range r.Out {
		out = append(out, g.download(w.out[i], 0, bytesOf(o)))
	}
	w.release()
	if err := check(r, in, out); err != nil {
		fmt.Println(name, "WRONG:", err)
		return
	}
	load(big)
	w = g.prepare(big, p, bufs)
	d := g.time(w)
	bytes := 0.0
	for _, a := range append(append([]lib.Array(nil), big.In...), big.Out...) {
		if a.Shape != nil {
			bytes += float64(bytesOf(a))
		}
	}
	if large.o == op.Gather {
		bytes = 2 * float64(bytesOf(big.Out[0]))
	}
	w.release()
	for _, b := range bufs {
		if b != nil {
			b.Release()
		}
	}
	if large.flops > 0 {
		fmt.Printf("%s %9.1f us %7.2f TFLOP/s\n", name, float64(d)/1e3, large.flops/d.Seconds()/1e12)
		return
	}
	fmt.Printf("%s %9.1f us %6.0f GB/s %5.1f%%\n", name, float64(d)/1e3, bytes/d.Seconds()/1e9, 100*bytes/d.Seconds()/copyRate)
}

// all measures a use by the variants that the flag names.
func (g *rig) all(small, large *use) {
	if !selected(large.name) {
		return
	}
	names := []string{""}
	if *variants == "all" {
		names = lib.Variants(large.o)
	} else if *variants != "" {
		names = strings.Split(*variants, ",")
	}
	if len(names) == 0 {
		names = []string{""}
	}
	for _, v := range names {
		g.measure(small, large, v)
	}
}

// rows measures an operation on rows of some lengths.
func (g *rig) rows(o *op.Operation, attrs op.Attrs, weights int, lengths ...int) {
	total := *megabytes << 18
	for _, cols := range lengths {
		make := func(n int) *use {
			u := &use{name: fmt.Sprintf("%s %dx%d", o.Name(), n, cols), o: o, attrs: attrs, in: []op.Shape{{n, cols}}}
			for range weights {
				u.in = append(u.in, op.Shape{cols})
			}
			if o == op.Dot {
				u.in = append(u.in, op.Shape{n, cols})
			}
			return u
		}
		g.all(make(max(min(total, 1<<17)/cols, 1)), make(max(total/cols, 1)))
	}
}

func TestRows(t *testing.T) {
	g := open(t)
	lengths := []int{128, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 1 << 20}
	for _, o := range []*op.Operation{op.Softmax, op.LayerNorm, op.RMSNorm} {
		g.rows(o, o.Defaults(), map[*op.Operation]int{op.LayerNorm: 2, op.RMSNorm: 1}[o], lengths...)
	}
}

func TestReductions(t *testing.T) {
	g := open(t)
	for _, o := range []*op.Operation{op.Sum, op.Max, op.ArgMax, op.Var, op.Dot} {
		g.rows(o, o.Defaults().Rows(), 0, 128, 512, 1000, 1024, 2048, 4096, 16384, 1<<20)
		g.rows(o, o.Defaults(), 0, 1<<26)
	}
}

func TestShaped(t *testing.T) {
	g := open(t)
	g.all(&use{name: "transpose", o: op.Transpose, in: []op.Shape{{500, 700}}}, &use{name: "transpose nx8192", o: op.Transpose, in: []op.Shape{{*megabytes * 32, 8192}}})
	g.all(&use{name: "gather", o: op.Gather, in: []op.Shape{{1000, 768}, {300}}}, &use{name: "gather nx768", o: op.Gather, in: []op.Shape{{*megabytes * 200, 768}, {*megabytes * 200}}})
	g.all(&use{name: "rope", o: op.Rope, attrs: op.Rope.Defaults(), in: []op.Shape{{100, 8, 128}, nil}}, &use{name: "rope nx64x128", o: op.Rope, attrs: op.Rope.Defaults(), in: []op.Shape{{*megabytes * 32, 64, 128}, nil}})
	for _, d := range []int{64, 128} {
		s, l := op.Shape{1, 2, 70, d}, op.Shape{2, 16, *megabytes * 16, d}
		for _, causal := range []bool{false, true} {
			a := op.AttentionOpts{Causal: causal}.Attrs()
			n := float64(l[2])
			flops := 4 * 2 * 16 * n * n * float64(d)
			if causal {
				flops /= 2
			}
			g.all(&use{name: "attention", o: op.Attention, attrs: a, in: []op.Shape{s, s, s}},
				&use{name: fmt.Sprintf("attention %dx%d %v", l[2], d, causal), o: op.Attention, attrs: a, in: []op.Shape{l, l, l}, flops: flops})
		}
	}
}
