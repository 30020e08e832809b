//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/wgsl"
)

// gogpuTarget is the target of untrusted texts.
var gogpuTarget = wgsl.Target{Consumer: wgsl.NagaGo, Limits: wgsl.Limits{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, WorkgroupBytes: 32 << 10, Bindings: 16, Grid: 65535}}

// originals are valid texts: kernels of the portable library and of the examples, and one with unusual
// constructs.
func originals(t *testing.T) []string {
	texts := map[string]bool{}
	for _, o := range op.Catalogue() {
		for _, in := range shapes {
			for _, s := range printed(o, in, "", &gogpuTarget) {
				texts[s.Text] = true
			}
		}
	}
	for _, name := range []string{"examples/wgsl_mandelbrot/mandelbrot.wgsl", "examples/wgsl_particles/particles.wgsl", "wgsl/testdata/unusual.wgsl"} {
		b, err := os.ReadFile("../../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		texts[string(b)] = true
	}
	list := slices.Sorted(maps.Keys(texts))
	for i := range list {
		if err := wgsl.Check(list[i]); err != nil {
			t.Errorf("%v\n%s", err, list[i])
		}
	}
	return list
}

// foreign are words that a mutation may insert.
var foreign = strings.Fields("a x i n 0 1 2u 3.5 -1 4294967295u f32 u32 i32 bool vec3u vec2<f32> array<u32,4> let const var fn struct alias return if else for loop break" +
	" continue switch while ( ) { } [ ] < > ; , : . = + - * / % & && | ^ ! ~ << >> @ @builtin(position) @compute ptr<function,f32> atomic<u32> private workgroup")

// mutate changes one to three words of a text.
func mutate(text string, r *rand.Rand) string {
	for range 1 + r.IntN(3) {
		list := lexemes(text)
		if len(list) < 2 {
			return text
		}
		l := list[r.IntN(len(list))]
		other := list[r.IntN(len(list))]
		end := l.at + len(l.text)
		switch r.IntN(8) {
		case 0: // delete
			text = text[:l.at] + text[end:]
		case 1: // duplicate
			text = text[:end] + " " + l.text + text[end:]
		case 2: // a word of the text in its place
			text = text[:l.at] + other.text + text[end:]
		case 3: // a foreign word in its place
			text = text[:l.at] + foreign[r.IntN(len(foreign))] + text[end:]
		case 4: // a foreign word before it
			text = text[:l.at] + foreign[r.IntN(len(foreign))] + " " + text[l.at:]
		case 5: // a typing mistake
			i := l.at + r.IntN(len(l.text))
			text = text[:i] + string("abcdefxyz_0123456789"[r.IntN(20)]) + text[i+1:]
		case 6: // swap two words
			if other.at < l.at {
				l, other = other, l
			}
			if other.at > l.at {
				text = text[:l.at] + other.text + text[l.at+len(l.text):other.at] + l.text + text[other.at+len(other.text):]
			}
		case 7: // a name called as another
			if l.word && other.word {
				text = strings.ReplaceAll(text, l.text, other.text)
			}
		}
	}
	return text
}

// TestMutations changes words of texts at random. The compilation of each text must end, and so must a
// run of each text that compiles. RAYO_SEED repeats a run.
func TestMutations(t *testing.T) {
	testutil.Vulkan(t, "lavapipe")
	n := 2000
	if testing.Short() {
		n = 400
	}
	seed := testutil.Seed(t)
	if _, child := testutil.Again(t, fmt.Sprint("RAYO_SEED=", seed)); !child {
		return
	}
	fmt.Fprintf(os.Stderr, "RAYO_SEED=%d\n", seed)
	d := hosttest.Guarded(t, New, "lavapipe")
	r := rand.New(rand.NewPCG(seed, 0))
	texts := originals(t)
	compiled := 0
	for i := range n {
		text := mutate(texts[r.IntN(len(texts))], r)
		fmt.Fprintf(os.Stderr, "mutation %d\n", i) // the last one is to blame
		err := runText(d, text)
		if err == nil {
			compiled++
		}
		var mistake *webgpu.CompileError
		var early *wgsl.CompileError
		if err != nil && !errors.As(err, &mistake) && !errors.As(err, &early) && !errors.Is(err, webgpu.ErrLimit) && !errors.Is(err, op.ErrUnsupported) && !errors.Is(err, webgpu.ErrInvalid) {
			t.Errorf("mutation %d: %v\n%s", i, err, text)
		}
	}
	t.Logf("%d of %d compile", compiled, n)
	if compiled < n/100 {
		t.Errorf("%d of %d compile: too few to tell anything", compiled, n)
	}
}

// runText compiles a text as a user's and runs it over a few workgroups.
func runText(d *webgpu.Device, text string) error {
	s, err := wgsl.Kernel(wgsl.Source{Text: text}.Kernel(), gogpuTarget)
	if err != nil {
		return err
	}
	shader := &webgpu.Shader{Label: "mutation", Text: s.Text, Entry: s.Entry, Lanes: s.Local, Shared: uint64(s.SharedBytes)}
	var ranges []webgpu.Range
	for _, a := range s.Bindings {
		shader.Bindings = append(shader.Bindings, map[wgsl.Access]webgpu.BindingKind{wgsl.Read: webgpu.ReadOnly, wgsl.ReadWrite: webgpu.ReadWrite}[a])
	}
	for range s.Blocks {
		shader.Bindings = append(shader.Bindings, webgpu.Block)
	}
	p, err := d.Compile(context.Background(), shader)
	if err != nil {
		return err
	}
	defer p.Free()
	for _, k := range shader.Bindings {
		usage := webgpu.Storage
		if k == webgpu.Block {
			usage = webgpu.Uniform
		}
		b, err := d.NewBuffer(64<<10, usage)
		if err != nil {
			return err
		}
		defer b.Free()
		ranges = append(ranges, webgpu.Range{Buffer: b, Bytes: 64 << 10})
	}
	g, err := d.Bind(p, ranges)
	if err != nil {
		return err
	}
	defer g.Free()
	return d.Run(context.Background(), &webgpu.Submission{Commands: []webgpu.Command{{Group: g, Grid: [3]uint32{2, 1, 1}}}})
}
