//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64)

package measure

import (
	"context"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/wgpunative"
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

var (
	adapterName = flag.String("adapter", "", "a part of the name of the adapter to measure on")
	cases       = flag.String("cases", "", "measure only cases whose name contains one of these, separated by commas")
	variants    = flag.String("variants", "", "measure these variants, separated by commas, where they fit; all for each")
	megabytes   = flag.Int("megabytes", 256, "size of the largest operand")
)

// rig is an open device.
type rig struct {
	t      *testing.T
	d      webgpu.HostDevice
	a      *webgpu.Adapter
	target lib.Target
	code   map[string]webgpu.HostPipeline
}

func open(t *testing.T) *rig {
	t.Helper()
	if *adapterName == "" {
		t.Skip("no -adapter")
	}
	h, err := wgpunative.New()
	if err != nil {
		t.Fatal(err)
	}
	as, err := h.Adapters(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for i, a := range as {
		if !strings.Contains(a.Name, *adapterName) {
			continue
		}
		d, err := h.Open(context.Background(), i)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.Close)
		g := &rig{t: t, d: d, a: d.Adapter(), code: map[string]webgpu.HostPipeline{}}
		if g.a.Type == webgpu.Software {
			g.a.Target.Unfused = true
		}
		if g.a.Vendor == 0x10de {
			g.a.Target.SubgroupSize = [2]uint32{32, 32}
		}
		g.target = targetOf(&g.a.Target)
		fmt.Printf("%s, %s: %+v, subgroups of %v\n", g.a.Name, g.a.Driver, g.target, g.a.Target.SubgroupSize)
		return g
	}
	t.Fatalf("no adapter %q among %+v", *adapterName, as)
	return nil
}

// targetOf returns what the portable library may use.
func targetOf(w *wgsl.Target) lib.Target {
	t := lib.Target{Lanes: int(w.Limits.Invocations), Shared: int(w.Limits.WorkgroupBytes), Buffers: w.Limits.Bindings, Groups: int(w.Limits.Grid),
		Subgroups: w.Features&wgsl.Subgroups != 0, F16: w.Features&wgsl.Half != 0}
	if s := w.SubgroupSize; s[0] == s[1] {
		t.Subgroup = int(s[0])
	}
	return t
}

func (g *rig) buffer(bytes int64, u webgpu.Usage) webgpu.HostBuffer {
	g.t.Helper()
	b, err := g.d.NewBuffer(max((bytes+3)&^3, 4), u)
	if err != nil {
		g.t.Fatalf("%d bytes: %v", bytes, err)
	}
	return b
}

// run submits commands and waits.
func (g *rig) run(list []webgpu.HostCommand, remap ...webgpu.HostBuffer) {
	g.t.Helper()
	ticket, err := g.d.Submit(list, remap)
	if err != nil {
		g.t.Fatal(err)
	}
	for {
		done, err := g.d.Poll()
		if err != nil {
			g.t.Fatal(err)
		}
		if done >= ticket {
			return
		}
		time.Sleep(20 * time.Microsecond)
	}
}

// upload returns a buffer that holds data again and again.
func (g *rig) upload(data []byte, bytes int64) webgpu.HostBuffer {
	b := g.buffer(bytes, webgpu.Storage)
	n := min(int64(len(data)), bytes) &^ 3
	up := g.buffer(max(n, 4), webgpu.Upload)
	copy(up.Mapped(), data)
	up.Unmap()
	var list []webgpu.HostCommand
	for at := int64(0); at < bytes; at += n {
		list = append(list, webgpu.HostCommand{Do: webgpu.Copy, Src: up, Dst: b, To: at, Bytes: min(n, (bytes+3)&^3-at)})
	}
	g.run(list)
	up.Release()
	return b
}

func (g *rig) download(b webgpu.HostBuffer, off, bytes int64) []byte {
	n := (bytes + 3) &^ 3
	down := g.buffer(n, webgpu.Readback)
	g.run([]webgpu.HostCommand{{Do: webgpu.Copy, Src: b, Dst: down, From: off, Bytes: n}}, down)
	m := append([]byte(nil), down.Mapped()[:bytes]...)
	down.Unmap()
	down.Release()
	return m
}

// pipeline compiles a text of the library.
func (g *rig) pipeline(s *webgpu.Shader) webgpu.HostPipeline {
	g.t.Helper()
	p := g.code[s.Text]
	if p == nil {
		var err error
		if p, err = g.d.NewPipeline(s); err != nil {
			g.t.Fatalf("%v\n%s", err, s.Text)
		}
		g.code[s.Text] = p
	}
	return p
}

// shader returns a printed text as the host wants it.
func shader(s *wgsl.Shader) *webgpu.Shader {
	w := &webgpu.Shader{Label: s.Entry, Text: s.Text, Entry: s.Entry, Lanes: s.Local, Shared: uint64(s.SharedBytes), Trusted: true}
	for _, a := range s.Bindings {
		w.Bindings = append(w.Bindings, map[wgsl.Access]webgpu.BindingKind{wgsl.Read: webgpu.ReadOnly, wgsl.ReadWrite: webgpu.ReadWrite}[a])
	}
	if s.Params >= 0 {
		w.Bindings = append(w.Bindings, webgpu.Block)
	}
	return w
}

// work is a plan over buffers.
type work struct {
	list []webgpu.HostCommand
	out  []webgpu.HostBuffer
	free []interface{ Release() }
}

func (w *work) release() {
	for _, x := range w.free {
		x.Release()
	}
}

// bytesOf returns the size of an array in memory.
func bytesOf(a lib.Array) int64 {
	n, err := a.Shape.Size()
	if err != nil {
		panic(err)
	}
	return int64(n) * int64(a.Type.Size())
}

// prepare makes the commands of a plan for r. in are the operands, those of the
// epilogue behind them; outputs are full of NaN.
func (g *rig) prepare(r *lib.Request, p *lib.Plan, in []webgpu.HostBuffer) *work {
	g.t.Helper()
	w := &work{}
	sizes := [4][]int64{}
	for _, a := range r.In {
		n := int64(0)
		if a.Shape != nil {
			n = bytesOf(a)
		}
		sizes[lib.InputRef] = append(sizes[lib.InputRef], n)
	}
	if r.Post != nil {
		for _, x := range r.Post.In {
			sizes[lib.InputRef] = append(sizes[lib.InputRef], int64(x.N*x.Type.Size()))
		}
	}
	arrays := [4][]webgpu.HostBuffer{lib.InputRef: in}
	add := func(k lib.RefKind, b webgpu.HostBuffer, n int64) {
		arrays[k], sizes[k], w.free = append(arrays[k], b), append(sizes[k], n), append(w.free, b)
	}
	nan := []byte{0xad, 0xde, 0xc0, 0xff}
	for _, o := range r.Out {
		add(lib.OutputRef, g.fill(nan, bytesOf(o)), bytesOf(o))
	}
	w.out = arrays[lib.OutputRef]
	for _, n := range p.Scratch {
		add(lib.ScratchRef, g.fill(nan, n), n)
	}
	for _, c := range p.Constants {
		add(lib.ConstantRef, g.upload(c, int64(len(c))), int64(len(c)))
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		text, err := wgsl.Kernel(s.Kernel, g.a.Target)
		if err != nil {
			g.t.Fatal(err)
		}
		pipe := g.pipeline(shader(&text))
		var ranges []webgpu.HostRange
		for _, b := range s.Bind {
			ranges = append(ranges, webgpu.HostRange{Buffer: arrays[b.Kind][b.Index], Bytes: max((sizes[b.Kind][b.Index]+3)&^3, 4)})
		}
		if text.Params >= 0 {
			block := make([]byte, text.ParamBytes)
			copy(block, s.Params)
			u := g.buffer(int64(len(block)), webgpu.Uniform)
			up := g.buffer(int64(len(block)), webgpu.Upload)
			copy(up.Mapped(), block)
			up.Unmap()
			g.run([]webgpu.HostCommand{{Do: webgpu.Copy, Src: up, Dst: u, Bytes: int64(len(block))}})
			up.Release()
			w.free = append(w.free, u)
			ranges = append(ranges, webgpu.HostRange{Buffer: u, Bytes: int64(len(block))})
		}
		group, err := g.d.NewGroup(pipe, ranges)
		if err != nil {
			g.t.Fatal(err)
		}
		w.free = append(w.free, group)
		w.list = append(w.list, webgpu.HostCommand{Do: webgpu.Dispatch, Pipeline: pipe, Group: group, Grid: s.Grid})
	}
	return w
}

// fill returns a buffer full of a word.
func (g *rig) fill(word []byte, bytes int64) webgpu.HostBuffer {
	m := make([]byte, min(max((bytes+3)&^3, 4), 1<<20))
	for i := 0; i < len(m); i += 4 {
		copy(m[i:], word)
	}
	return g.upload(m, max(bytes, 4))
}

// time returns the median time of one execution.
func (g *rig) time(w *work) time.Duration {
	const rounds = 5
	down := g.buffer(16, webgpu.Readback)
	defer down.Release()
	once := func(n int) time.Duration {
		list := []webgpu.HostCommand{{Do: webgpu.Stamp}}
		for range n {
			list = append(list, w.list...)
		}
		list = append(list, webgpu.HostCommand{Do: webgpu.Stamp, Mark: 1}, webgpu.HostCommand{Do: webgpu.Stamps, Dst: down, Bytes: 2})
		g.run(list, down)
		m := down.Mapped()
		at := func(i int) (v uint64) {
			for k := range 8 {
				v |= uint64(m[8*i+k]) << (8 * k)
			}
			return v
		}
		ns := float64(at(1)-at(0)) * g.a.Tick
		down.Unmap()
		return time.Duration(ns)
	}
	first := once(1)
	n := int(max(min(10*time.Millisecond/max(first, 1), 200), 3))
	var times []time.Duration
	for range rounds {
		times = append(times, once(n)/time.Duration(n))
	}
	sort.Slice(times, func(i, j int) bool { return times[i] < times[j] })
	return times[rounds/2]
}

// normal fills memory with elements around 0.
func normal(n int, t op.DType) []byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	m := make([]byte, n*t.Size())
	for i := range n {
		t.PutFloat64(m, i, rnd.NormFloat64())
	}
	return m
}

// vanishing is what may become of numbers that the device takes for 0.
const vanishing = 0x1p-120

// check compares results with the reference: twice what is promised of other
// devices is allowed, as the language allows sqrt and quotients more.
func check(r *lib.Request, in, out [][]byte) error {
	values, types := make([]*op.Array, len(r.In)), make([]op.DType, len(r.In))
	for i, a := range r.In {
		if a.Shape == nil {
			continue
		}
		types[i] = a.Type
		values[i] = op.NewArray(a.Shape)
		for j := range values[i].Data {
			values[i].Data[j] = a.Type.Float64(in[i], j)
		}
	}
	want, err := r.Op.Reference(&r.Attrs, values, types)
	if err != nil {
		return err
	}
	for i, y := range r.Out {
		for j, v := range want[i].Data {
			mag := 0.0
			if want[i].Mag != nil {
				mag = want[i].Mag[j]
			}
			got := y.Type.Float64(out[i], j)
			if err := r.Op.Check(got, v, mag, y.Type); err != nil && math.Abs(got-v) > vanishing && r.Op.Check(v+(got-v)/2, v, mag, y.Type) != nil {
				return fmt.Errorf("element %d of result %d: %w", j, i, err)
			}
		}
	}
	return nil
}

// selected reports whether a case is to be measured.
func selected(name string) bool {
	if *cases == "" {
		return true
	}
	for _, c := range strings.Split(*cases, ",") {
		if strings.Contains(name, c) {
			return true
		}
	}
	return false
}
