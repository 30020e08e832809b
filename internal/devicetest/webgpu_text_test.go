//go:build !nowebgpu && !js

package devicetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// uniforms is a text with several uniform buffers.
const uniforms = `
struct View { scale: f32, shift: f32 }
@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(1) @binding(0) var<uniform> n: u32;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
	if id.x < n { y[id.x] = view.scale * x[id.x] + view.shift; }
}
`

// several is a text with two entry points that share binding numbers. One of them requires a
// value for an override.
const several = `
override n: u32; override m = 4u;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(2) @binding(9) var<uniform> p: vec4f;
@group(1) @binding(9) var<storage, read> z: array<vec4f>;
var<workgroup> w: array<f32, n>;
fn help(i: u32) -> f32 { w[i % n] = p.x; return z[i].y; }
@compute @workgroup_size(m) fn first(@builtin(global_invocation_id) id: vec3u) { x[id.x] = f32(m + id.x); }
@compute @workgroup_size(n) fn second(@builtin(global_invocation_id) id: vec3u) { y[id.x] = u32(help(id.x)) + n; }
`

// saxpy has its bindings in the wrong order and in two groups.
const saxpy = `
struct Params { a: f32, n: u32, shift: vec3f }
@group(1) @binding(5) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
@group(0) @binding(0) var<uniform> params: Params;
override TWICE: bool = false;
@compute @workgroup_size(64)
fn saxpy(@builtin(global_invocation_id) id: vec3u) {
	if id.x >= params.n { return; }
	var v = params.a * x[id.x] + y[id.x] + params.shift.z;
	if TWICE { v *= 2.0; }
	y[id.x] = v;
}`

type saxpyParams struct {
	Shift [3]float32
	A     float32
	N     uint32
}

func TestTexts(t *testing.T) {
	dev := webGPU(t, "lavapipe")(t)
	defer dev.Close()
	for name, run := range map[string]func(t *testing.T, dev *device.Device){
		"slices":       textSlices,
		"entry points": textEntryPoints,
		"uniforms":     textUniforms,
		"batch":        textBatch,
		"resident":     textResident,
		"kinds":        textStructures,
		"arguments":    textArguments,
		"mistakes":     textMistakes,
		"bounds":       textBounds,
		"together":     textConcurrent,
	} {
		t.Run(name, func(t *testing.T) { run(t, dev) })
	}
}

// textKernel compiles a text.
func textKernel(t *testing.T, dev *device.Device, s wgsl.Source) *device.Kernel {
	t.Helper()
	k, err := dev.Kernel(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func textSlices(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	for _, twice := range []float64{0, 1} {
		k := textKernel(t, dev, wgsl.Source{Text: saxpy, Constants: map[string]float64{"TWICE": twice}})
		if k.Name() != "saxpy" {
			t.Errorf("it is called %q", k.Name())
		}
		for _, n := range []int{1, 63, 64, 65, 1009} {
			x, y, want := make([]float32, n), make([]float32, n+2), make([]float32, n)
			for i := range x {
				x[i], y[1+i] = rand.Float32(), rand.Float32()
				want[i] = (2.5*x[i] + y[1+i] + 3) * float32(1+twice)
			}
			y[0], y[n+1] = 77, 78 // guards
			p := saxpyParams{[3]float32{1, 2, 3}, 2.5, uint32(n)}
			if err := k.Run(ctx, k.GridFor(n), &p, device.In(x), device.InOut(y[1:n+1])); err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if d := y[1+i] - want[i]; !(d > -1e-5 && d < 1e-5) {
					t.Fatalf("n %d: element %d is %g, not %g", n, i, y[1+i], want[i])
				}
			}
			if y[0] != 77 || y[n+1] != 78 {
				t.Error("guards were written")
			}
		}
	}
}

func textEntryPoints(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	k := textKernel(t, dev, wgsl.Source{Text: several, Entry: "first"})
	x := make([]float32, 3)
	if err := k.Run(ctx, k.GridFor(3), nil, device.Out(x)); err != nil || !slices.Equal(x, []float32{4, 5, 6}) {
		t.Error(x, err)
	}
	k = textKernel(t, dev, wgsl.Source{Text: several, Entry: "second", Constants: map[string]float64{"n": 2}})
	y := make([]uint32, 2)
	z := []float32{0, 1, 2, 3, 4, 5, 6, 7}
	if err := k.Run(ctx, k.GridFor(2), [4]float32{}, device.Out(y), device.In(z)); err != nil || !slices.Equal(y, []uint32{3, 7}) {
		t.Error(y, err)
	}
	if _, err := dev.Kernel(ctx, wgsl.Source{Text: several, Entry: "second"}); err == nil || !strings.Contains(err.Error(), "n has no value") {
		t.Error(err)
	}
}

func textUniforms(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	k := textKernel(t, dev, wgsl.Source{Text: uniforms})
	x, y := make([]float32, 100), make([]float32, 100)
	for i := range x {
		x[i] = float32(i)
	}
	type view struct{ Scale, Shift float32 }
	p := struct {
		View view
		N    uint32
	}{view{3, 0.5}, 99}
	for range 2 { // recorded once, and again with other parameters
		p.View.Shift++
		clear(y)
		if err := k.Run(ctx, k.GridFor(len(x)), p, device.In(x), device.Out(y)); err != nil {
			t.Fatal(err)
		}
		for i := range y {
			if want := x[i]*3 + p.View.Shift; i < 99 && y[i] != want || i == 99 && y[i] != 0 {
				t.Fatalf("element %d is %g, not %g", i, y[i], want)
			}
		}
	}
	b := batch.New(dev)
	out := b.Launch(k, k.GridFor(len(x)), p, batch.In(b.Upload(x)), batch.Out(op.F32, len(x)))[0]
	if err := b.Execute(ctx); err != nil {
		t.Fatal(err)
	}
	if got, err := batch.Read[float32](ctx, b, out); err != nil || !slices.Equal(got, y) {
		t.Errorf("%v, not %v; %v", got, y, err)
	}
}

func textBatch(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	k := textKernel(t, dev, wgsl.Source{Text: saxpy})
	const n = 300
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i)
	}
	b := batch.New(dev)
	v := b.Upload(x)
	w := b.Scale(v, 0.5)
	p := saxpyParams{A: 2, N: n}
	for range 10 { // w = 2v + w
		w = b.Launch(k, k.GridFor(n), p, batch.In(v), batch.InOut(w))[0]
	}
	w = b.AddScalar(w, 1)
	if err := b.Execute(ctx, w); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[float32](ctx, b, w)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i] != 20.5*x[i]+1 {
			t.Fatalf("element %d is %g", i, got[i])
		}
	}
}

func textResident(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	k := textKernel(t, dev, wgsl.Source{Text: saxpy})
	x, err := device.Upload(ctx, dev, []float32{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	y, err := device.Upload(ctx, dev, []float32{10, 20, 30})
	if err != nil {
		t.Fatal(err)
	}
	defer y.Close()
	p := saxpyParams{A: 1, N: 3}
	for range 3 {
		if err := k.Run(ctx, kernel.Grid(1), p, device.Bind(x), device.Bind(y)); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]float32, 3)
	if err := device.Read(ctx, got, y); err != nil || !slices.Equal(got, []float32{13, 26, 39}) {
		t.Error(got, err)
	}
	if err := k.Run(ctx, kernel.Grid(1), p, device.Bind(y), device.Bind(y)); !errors.Is(err, device.ErrOverlap) {
		t.Error(err)
	}
}

func textStructures(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	// Structures that mix types, atomics, an array of fixed length, a structure
	// that ends with an array, vectors of three.
	k := textKernel(t, dev, wgsl.Source{Name: "kinds", Text: `
		struct Item { place: vec3f, kind: u32, score: i32, hits: atomic<u32>, }
		struct List { count: atomic<u32>, things: array<u32>, }
		@group(0) @binding(0) var<storage, read_write> items: array<Item>;
		@group(0) @binding(1) var<storage, read_write> list: List;
		@group(0) @binding(2) var<storage> table: array<vec3i, 2>;
		@compute @workgroup_size(4)
		fn kinds(@builtin(global_invocation_id) id: vec3u) {
			if id.x >= arrayLength(&items) { return; }
			let i = &items[id.x];
			(*i).place = (*i).place.zxy;
			(*i).score = table[(*i).kind].y;
			atomicAdd(&(*i).hits, 5u);
			if (*i).score > 0 {
				list.things[atomicAdd(&list.count, 1u)] = id.x;
			}
		}`})
	type item struct {
		Place [3]float32
		Kind  uint32
		Score int32
		Hits  uint32
		_     [2]uint32
	}
	items := make([]item, 6)
	for i := range items {
		items[i] = item{Place: [3]float32{1, 2, float32(i)}, Kind: uint32(i % 2), Score: 99, Hits: uint32(i)}
	}
	list := make([]uint32, 7)
	table := []int32{1, -7, 3, 0, 4, 8, 6, 0}
	if err := k.Run(ctx, k.GridFor(6), nil, device.InOutStructs(items), device.Out(list), device.In(table)); err != nil {
		t.Fatal(err)
	}
	for i, x := range items {
		if want := (item{Place: [3]float32{float32(i), 1, 2}, Kind: uint32(i % 2), Score: []int32{-7, 8}[i%2], Hits: uint32(i + 5)}); x != want {
			t.Errorf("item %d is %+v, want %+v", i, x, want)
		}
	}
	slices.Sort(list[1:4])
	if !slices.Equal(list, []uint32{3, 1, 3, 5, 0, 0, 0}) {
		t.Errorf("list %v", list)
	}

	textStructureUses(t, dev)

	type moved struct {
		Kind  uint32
		Place [3]float32
		Score int32
		Hits  uint32
		_     [2]uint32
	}
	type short struct {
		Place [3]float32
		Kind  uint32
		Score int32
		Hits  uint32
	}
	for _, c := range []struct {
		arg  device.Arg
		want string
		is   error
	}{
		{device.InOutStructs(make([]moved, 6)), "Place[0] is at offset 4 in Go, and at offset 0 in WGSL", device.ErrUnsupported},
		{device.InOutStructs(make([]short, 6)), "the struct has 24 bytes in Go, and 32 in WGSL", device.ErrUnsupported},
		{device.InOutStructs(make([]string, 6)), "string", device.ErrUnsupported},
		{device.InOutStructs(make([]item, 0)), "no elements", device.ErrShape},
		{device.InOut(make([]float32, 9)), "whole elements of 32 bytes", device.ErrShape},
		{device.InOut(make([]op.Float16, 16)), "elements of four bytes", device.ErrUnsupported},
	} {
		err := k.Run(ctx, kernel.Grid(1), nil, c.arg, device.Out(list), device.In(table))
		if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.InOut(make([]uint32, 16)), device.Out(list[:2]), device.In(table[:7])); !errors.Is(err, device.ErrShape) {
		t.Error(err)
	}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.InOut(make([]uint32, 16)), device.Out(list), device.In(table)); err != nil {
		t.Error(err)
	}
}

// textStructureUses passes structures that the kernel only reads, and others that it only writes.
func textStructureUses(t *testing.T, dev *device.Device) {
	k := textKernel(t, dev, wgsl.Source{Name: "halve", Text: `
		struct Item { place: vec3f, kind: u32, }
		struct Half { kind: u32, first: f32, }
		@group(0) @binding(0) var<storage> items: array<Item>;
		@group(0) @binding(1) var<storage, read_write> halves: array<Half>;
		@compute @workgroup_size(4)
		fn halve(@builtin(global_invocation_id) id: vec3u) {
			if id.x < arrayLength(&items) {
				halves[id.x] = Half(items[id.x].kind, items[id.x].place.x / 2);
			}
		}`})
	type item struct {
		Place [3]float32
		Kind  uint32
	}
	type half struct {
		Kind  uint32
		First float32
	}
	items, halves := make([]item, 5), make([]half, 5)
	for i := range items {
		items[i] = item{[3]float32{float32(i), 7, 8}, uint32(i * i)}
		halves[i] = half{99, 99}
	}
	before := slices.Clone(items)
	if err := k.Run(t.Context(), k.GridFor(5), nil, device.InStructs(items), device.OutStructs(halves)); err != nil {
		t.Fatal(err)
	}
	for i, h := range halves {
		if want := (half{uint32(i * i), float32(i) / 2}); h != want {
			t.Errorf("half %d is %+v, want %+v", i, h, want)
		}
	}
	if !slices.Equal(items, before) {
		t.Error("the kernel changed its input")
	}
	if err := k.Run(t.Context(), k.GridFor(5), nil, device.InStructs(items), device.InStructs(halves)); !errors.Is(err, device.ErrUnsupported) {
		t.Errorf("an input for a buffer that the kernel writes: %v", err)
	}
}

func textArguments(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	k := textKernel(t, dev, wgsl.Source{Text: saxpy})
	x, y := make([]float32, 4), make([]float32, 4)
	p := saxpyParams{N: 4}
	in, out, grid := device.In(x), device.InOut(y), kernel.Grid(1)
	for name, c := range map[string]struct {
		is   error
		grid kernel.Size
		p    any
		args []device.Arg
	}{
		"one array":      {device.ErrShape, grid, p, []device.Arg{in}},
		"read as out":    {device.ErrUnsupported, grid, p, []device.Arg{device.Out(x), out}},
		"written as in":  {device.ErrUnsupported, grid, p, []device.Arg{in, device.In(y)}},
		"other elements": {device.ErrUnsupported, grid, p, []device.Arg{device.In([]int32{1}), out}},
		"empty":          {device.ErrShape, grid, p, []device.Arg{device.In(x[:0]), out}},
		"the same":       {device.ErrOverlap, grid, p, []device.Arg{device.In(y), out}},
		"no parameters":  {kernel.ErrParams, grid, nil, []device.Arg{in, out}},
		"other ones":     {kernel.ErrParams, grid, struct{ A float64 }{}, []device.Arg{in, out}},
		"no grid":        {kernel.ErrGrid, kernel.Grid(0), p, []device.Arg{in, out}},
		"a folded grid":  {kernel.ErrGrid, kernel.GridOf(70000), p, []device.Arg{in, out}},
		"a zero Arg":     {device.ErrShape, grid, p, []device.Arg{{}, out}},
	} {
		if err := k.Run(ctx, c.grid, c.p, c.args...); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := k.Check(ctx, grid, p, in, out); !errors.Is(err, device.ErrUnsupported) {
		t.Error(err)
	}
}

func textMistakes(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	for name, c := range map[string]struct {
		text       string
		line       int
		want       string
		unlikeNaga bool
	}{
		"type":     {"@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(1)\nfn main() {\n  x[0] = 1u;\n}\n", 4, "", false},
		"name":     {"@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(1)\nfn main() {\n\tx[0] = y;\n}\n", 4, "y", false},
		"reserved": {"@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n@compute @workgroup_size(1)\nfn move() {\n\tx[0] = 1;\n}\n", 3, "move", true},
		"binding":  {"@group(0) @binding(0) var<storage, read_write> x: array<wat>;\n@compute @workgroup_size(1)\nfn main() { x[0] = 1; }\n", 1, "wat", false},
	} {
		_, err := dev.Kernel(ctx, wgsl.Source{Text: c.text, Name: "mine"})
		var m *wgsl.CompileError
		if !errors.As(err, &m) {
			if !c.unlikeNaga || err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if strings.Contains(dev.Info().Detail, "gogpu") && name != "binding" {
			continue // the error names the function at best
		}
		if m.Line != c.line || m.Column == 0 || !strings.Contains(err.Error(), fmt.Sprintf("mine:%d:%d: ", m.Line, m.Column)) ||
			!strings.Contains(err.Error(), "^") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: line %d, column %d\n%v", name, m.Line, m.Column, err)
		}
	}
	for name, c := range map[string]struct {
		text string
		is   error
	}{
		"writes nothing": {"@group(0) @binding(0) var<storage> x: array<f32>; @compute @workgroup_size(1) fn main() { _ = x[0]; }", device.ErrUnsupported},
		"lanes":          {"@group(0) @binding(0) var<storage, read_write> x: array<f32>; @compute @workgroup_size(65536) fn main() { x[0] = 1; }", device.ErrLimit},
		"memory": {"@group(0) @binding(0) var<storage, read_write> x: array<f32>; var<workgroup> w: array<f32, 1000000>;" +
			"@compute @workgroup_size(1) fn main() { x[0] = w[0]; }", device.ErrLimit},
	} {
		_, err := dev.Kernel(ctx, wgsl.Source{Text: c.text})
		if !errors.Is(err, device.ErrUnsupported) && !errors.Is(err, device.ErrLimit) || c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func textBounds(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	// rayo compiles a user's WGSL text as untrusted input. An access outside of a buffer must not change
	// memory. This test does not cover endless loops.
	k := textKernel(t, dev, wgsl.Source{Text: `
		@group(0) @binding(0) var<storage, read_write> x: array<u32>;
		@group(0) @binding(1) var<storage, read> i: array<u32>;
		@compute @workgroup_size(1) fn main() { x[i[0]] = 7u; x[0] = x[i[1]] & 1u; }`})
	for _, far := range []uint32{4, 100, 1 << 20, math.MaxUint32} {
		x := []uint32{1, 1, 1, 1}
		if err := k.Run(ctx, kernel.Grid(1), nil, device.InOut(x), device.In([]uint32{far, far})); err != nil {
			t.Fatal(err)
		}
	}
}

func textConcurrent(t *testing.T, dev *device.Device) {
	ctx := t.Context()
	var work sync.WaitGroup
	for g := range 8 {
		work.Add(1)
		go func() {
			defer work.Done()
			for i := range 20 {
				k, err := dev.Kernel(ctx, wgsl.Source{Text: saxpy})
				if err != nil {
					t.Error(err)
					return
				}
				x, y := []float32{1, 2}, []float32{float32(g), float32(i)}
				if err := k.Run(ctx, kernel.Grid(1), saxpyParams{A: 2, N: 2}, device.In(x), device.InOut(y)); err != nil {
					t.Error(err)
					return
				}
				if y[0] != float32(g)+2 || y[1] != float32(i)+4 {
					t.Errorf("%v", y)
				}
			}
		}()
	}
	work.Wait()
}

// TestTextsElsewhere checks that other devices return an error for WGSL texts.
func TestTextsElsewhere(t *testing.T) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	_, err = dev.Kernel(ctx, wgsl.Source{Text: saxpy})
	if !errors.Is(err, device.ErrUnsupported) || !strings.Contains(err.Error(), "WGSL, which only devices of kind webgpu run") {
		t.Error(err)
	}
	// A kernel in Go has no structures.
	k, err := dev.Kernel(ctx, kernel.New("one", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(1, 1, 1)
		kernel.Output[kernel.F32](b, "x").Set(kernel.U(0), kernel.F(1))
	}))
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Run(ctx, kernel.Grid(1), nil, device.OutStructs(make([]struct{ X float32 }, 1))); !errors.Is(err, device.ErrUnsupported) {
		t.Error(err)
	}
}

// FuzzTexts compiles random texts. No text may end the process.
func FuzzTexts(f *testing.F) {
	f.Add(saxpy)
	f.Add("@group(0) @binding(0) var<storage, read_write> x: array<vec4<f32>>; var<workgroup> w: array<u32, 64>;\n" +
		"@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { w[i] = i; workgroupBarrier(); x[i].x = f32(w[63u - i]); }")
	f.Add("struct S { a: f32, b: array<u32> }\n@group(0) @binding(0) var<storage, read_write> s: S;\n" +
		"fn f(n: u32) -> u32 { var m = n; loop { if m > 9u { break; } m += 1u; continuing { m *= 2u; } } return m; }\n" +
		"@compute @workgroup_size(1) fn main() { s.b[f(3u)] = u32(s.a); }")
	dev := webGPU(f, "lavapipe")(f)
	f.Cleanup(func() { dev.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		_, err := dev.Kernel(context.Background(), wgsl.Source{Text: text})
		if err != nil {
			_ = err.Error()
		}
		if errors.Is(err, device.ErrDeviceLost) {
			t.Fatal(err)
		}
	})
}
