//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// steps writes a chain of n steps. $1 stands for the number of a step, and $0 for the number of the
// step before it.
func steps(n int, step string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.NewReplacer("$0", fmt.Sprint(i), "$1", fmt.Sprint(i+1)).Replace(step) + "\n")
	}
	return b.String()
}

// TestChains compiles chains in which each name uses the previous name twice. Chains that cannot be
// rewritten must compile if they are short, and be refused if they are long.
func TestChains(t *testing.T) {
	for _, c := range []struct {
		module, first, step, last string
		endless                   bool // beyond some steps
	}{
		{"", "let a0 = a[0];", "let a$1 = a$0 * a$0;", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1: f32 = a$0 * a$0;", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let/**/a$1=a$0+a$0//;\n;", "a[0] = a$1;", false},
		{"", "let a0 = 1.5;", "let a$1 = a$0 - a$0;", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1 = (a$0 * 0.5 + a$0) / a$0;", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1 = -a$0 + abs(a$0);", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1 = select(a$0 + a$0, a$0 * a$0, a$0 > a$0);", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1 = pow(a$0 * a$0, a$0);", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let a$1 = sin(a$0 + a$0) * cos(a$0);", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let b$0 = a$0; let a$1 = b$0 * (b$0);", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "let q$1 = a[u32(a$0 + a$0)]; let a$1 = q$1 * a$0;", "a[0] = a$1;", false},
		{"", "let a0 = a[0];", "var v$1 = a$0 * a$0; let p$1 = &v$1; let a$1 = *p$1 * *p$1 + a$0;", "a[0] = a$1;", false},
		{"", "var v = array<f32, 4>(); let a0 = &v[0];", "let a$1 = &v[u32(*a$0 + *a$0)];", "a[0] = *a$1;", false},
		{"", "let a0 = u32(a[0]);", "let a$1 = (a$0 << (a$0 & a$0)) ^ a$0;", "a[0] = f32(a$1);", false},
		{"", "let a0 = bitcast<u32>(a[0]);", "let a$1 = bitcast<u32>(bitcast<f32>(a$0) + bitcast<f32>(a$0));", "a[0] = f32(a$1);", false},
		{"", "let a0 = a[0] > 0.0;", "let a$1 = a$0 && (a$0 & a$0);", "a[0] = f32(a$1);", false},
		{"", "let a0 = vec3f(a[0]);", "let a$1 = a$0.xyz * a$0.zyx;", "a[0] = a$1.x;", false},
		{"", "let a0 = vec3f(a[0]);", "let a$1 = a$0 * dot(a$0, a$0) + cross(a$0, a$0);", "a[0] = a$1.x;", false},
		{"", "let a0 = mat2x2f(a[0], a[1], a[2], a[3]);", "let a$1 = a$0 * a$0;", "a[0] = a$1[1][0];", false},
		{"", "let a0 = array<f32, 2>(a[0], a[1]);", "let a$1 = array<f32, 2>(a$0[0] + a$0[1], a$0[0]);", "a[0] = a$1[1];", false},
		{"struct Pair { x: f32, y: f32 }", "let a0 = Pair(a[0], a[1]);", "let a$1 = Pair(a$0.x + a$0.y, a$0.x);", "a[0] = a$1.x;", false},
		{"fn f(x: f32, y: f32) -> f32 { return x + y; }", "let a0 = a[0];", "let a$1 = f(a$0, a$0);", "a[0] = a$1;", false},
		{"", "var a0 = a[0];", "var a$1 = a$0 * a$0;", "a[0] = a$1;", false},
		{"const a0 = 1.0;\n" + steps(200, "const a$1 = a$0 * a$0;"), "", "let b$1 = a$1 * a$1;", "a[0] = b$1;", false},
		{"const a0: f32 = 1.0;\n" + steps(200, "const a$1: f32 = a$0 * a$0;"), "", "let b$1 = a$1 * a$1;", "a[0] = b$1;", false},
		{"fn f0(x: f32) -> f32 { return x; }\n" + steps(10, "fn f$1(x: f32) -> f32 { return f$0(x) * f$0(x); }"), "let a0 = a[0];", "let a$1 = f10(a$0) + a$0;", "a[0] = a$1;", false},

		{"", "const a0 = 1.0;", "const a$1 = a$0 * a$0;", "a[0] = a$1;", true},
		{"", "const a0 = 1;", "const a$1 = a$0 + a$0 - a$0;", "a[0] = f32(a$1);", true},
		{"", "const a0 = true;", "const a$1 = a$0 && a$0;", "a[0] = f32(a$1);", true},
		{"", "const a0 = vec2(1.0, 2.0);", "const a$1 = a$0 * a$0;", "a[0] = a$1.x;", true},
		{"", "const a0 = 1.0;", "const a$1 = a$0 * a$0; let b$1 = a$1 * a$1;", "a[0] = b$1;", true},
		{"", "let v = vec3f(a[0]); a[0] = v", ".xyz", ".x;", true},
		{"$vectors", "", "", "a[0] = a$1.x;", true},
		{"$structures", "", "", "var x: S$1; a[0] = 1.0;", true},
		{"$structures", "", "", "let x = S$1(); a[0] = 1.0;", true},
		{"$backwards", "", "", "var x: S0; a[0] = 1.0;", true},
	} {
		for _, n := range []int{1, 6, 10, 22, 40, 80, 200} {
			module := strings.NewReplacer(
				"$vectors", "const a0 = vec2(1.0, 2.0);\n"+steps(n, "const a$1 = vec2(a$0.x, a$0.y);"),
				"$structures", "struct S0 { x: vec2f, y: f32 }\n"+steps(n, "struct S$1 { x: S$0, y: S$0 }"),
				"$backwards", steps(n, "struct S$0 { x: S$1, y: S$1 }")+fmt.Sprintf("struct S%d { x: vec2f, y: f32 }\n", n)).Replace(c.module)
			if strings.HasPrefix(c.module, "$") && n < 3 {
				continue
			}
			body := c.first + "\n" + steps(n, c.step) + strings.NewReplacer("$1", fmt.Sprint(n)).Replace(c.last)
			s := hosttest.User(module + "\n@compute @workgroup_size(1) fn main() {\n" + body + "\n}\n")
			for _, s.Trusted = range []bool{false, true} {
				_, err := compile(s)
				name := fmt.Sprintf("%d times %q after %q", n, c.step, c.module)
				if !c.endless || n <= 6 {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				if err == nil && n <= 10 {
					continue
				}
				var mistake *webgpu.CompileError
				if !errors.Is(err, webgpu.ErrLimit) || !errors.As(err, &mistake) || mistake.Label != "user" || mistake.Line == 0 || mistake.Column == 0 {
					t.Errorf("%s: %v", name, err)
				} else if lines := strings.Split(s.Text, "\n"); mistake.Text != lines[mistake.Line-1] {
					t.Errorf("%s: line %d is not %q", name, mistake.Line, mistake.Text)
				}
			}
		}
	}
}

// TestVariables checks that only the necessary lets become variables, and no let that may be a pointer
// or that is assigned to.
func TestVariables(t *testing.T) {
	// Of these h3, h7 and h11 are over 64 steps.
	chain := "let h0 = a[0];\n" + steps(11, "let h$1 = h$0 * h$0;")
	for name, c := range map[string]struct {
		text string
		vars int
	}{
		"few":              {"let x = a[0] * a[1]; let y = x * x; a[0] = y * y;", 0},
		"chain":            {chain, 3},
		"names in others":  {chain + "let outlet = 1.0; let let_ = 2.0;", 3},
		"comments":         {chain + "/* let x = h11 * h11; /* */ let x */ // let y = h11 * h11;\n", 3},
		"address":          {chain + "let p = &a[u32(h11 * h11 * h11)]; a[0] = *p;", 3},
		"address in ()":    {chain + "let p = ((&a[u32(h11 * h11 * h11)])); a[0] = *p;", 3},
		"pointer":          {chain + "let p = &a[0]; let q = p; let r = (q); a[0] = *r;", 3},
		"assigned":         {chain + "h11 = 1.0;", 2},
		"assigned in ()":   {chain + "(h11) = 1.0;", 2},
		"an index":         {chain + "a[u32(h11)] = 1.0; a[u32(h7)] += 1.0;", 3},
		"a component":      {chain + "h11.x += 1.0;", 2},
		"shifted":          {chain + "h11 >>= 1u;", 2},
		"counted":          {chain + "h11++;", 2},
		"its address":      {chain + "let p = &h11;", 2},
		"compared":         {chain + "if h11 == 1.0 || h11 >= 1.0 || h11 <= 1.0 || h11 != 1.0 { a[0] = 1.0; }", 3},
		"and":              {chain + "let q = (h11 > 1.0) & (h11 < 1.0) && h11 > 1.0; a[0] = f32(q);", 3},
		"an array":         {"let x = array<f32, 40>(" + strings.Repeat("1.5, ", 39) + "2.0); a[0] = x[u32(a[1])];", 0},
		"in a header":      {chain + "for (let i = h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11 * h11; a[0] < i;) { a[0] = i; }", 4},
		"another function": {chain + "}\nfn other() { let h11 = 1.0; let x = h11 * h11;", 3},
	} {
		s := hosttest.InMain(c.text)
		got, err := tame(s)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n := differences(t, s.Text, got); n != c.vars {
			t.Errorf("%s: %d variables, not %d:\n%s", name, n, c.vars, got)
		}
	}
}

// differences returns how many lets of one text are vars in the other. It fails if anything else
// differs.
func differences(t *testing.T, before, after string) int {
	if len(before) != len(after) {
		t.Fatalf("%d bytes became %d", len(before), len(after))
	}
	n := 0
	for i := 0; i < len(before); i++ {
		if before[i] == after[i] {
			continue
		}
		if i+3 > len(before) || before[i:i+3] != "let" || after[i:i+3] != "var" {
			t.Fatalf("byte %d of %q became %q", i, before, after)
		}
		n++
		i += 2
	}
	return n
}

// TestStaysWrong checks that an assignment to a let of a chain is still reported, at its place.
func TestStaysWrong(t *testing.T) {
	for _, wrong := range []string{"h30 = 1.0;", "h30 += 1.0;", "a[0] = missing;"} {
		s := hosttest.InMain("let h0 = a[0];\n" + steps(30, "let h$1 = h$0 * h$0;") + wrong)
		short := hosttest.InMain("let h30 = a[0] * a[0];\n" + wrong)
		_, err := compile(s)
		_, want := compile(short)
		var e, w *webgpu.CompileError
		if !errors.As(err, &e) || !errors.As(want, &w) {
			t.Errorf("%s: %v, in a short text %v", wrong, err, want)
		} else if e.Message != w.Message || e.Column != w.Column {
			t.Errorf("%s: column %d, %s; in a short text column %d, %s", wrong, e.Column, e.Message, w.Column, w.Message)
		}
	}
}

// noise returns a typical user's text, and the same function in Go: octaves of noise, written out, with
// hundreds of lets that are used at least twice. The function is continuous. If the position of an
// octave moves, the position of the next octave moves by at most 0.85 times as much.
func noise(octaves int) (text string, value func(x float64) float64) {
	var b strings.Builder
	b.WriteString(`const lattice = vec3(1.0, 57.0, 113.0);
fn hash(n: f32) -> f32 { return fract(n * 0.3183099 + 0.1); }
fn fade(t: f32) -> f32 {
	let t2 = t * t;
	let t3 = t2 * t;
	let t4 = t2 * t2;
	let t5 = t4 * t;
	return t5 * 6.0 - t4 * 15.0 + t3 * 10.0;
}
@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3u) {
	let i = id.x;
	let p0 = a[i];
	let sum0 = 0.0;
`)
	b.WriteString(steps(octaves, `	let cell$0 = floor(p$0);
	let part$0 = p$0 - cell$0;
	let curve$0 = fade(part$0);
	let low$0 = hash(cell$0 * lattice.x + lattice.y);
	let high$0 = hash((cell$0 + 1.0) * lattice.x + lattice.y);
	let both$0 = low$0 * (1.0 - curve$0) + high$0 * curve$0;
	let bent$0 = both$0 * both$0 * (3.0 - 2.0 * both$0);
	let sum$1 = sum$0 * 0.5 + bent$0 * 0.5 + (sum$0 - sum$0 * bent$0) * 0.25;
	let p$1 = cell$0 * 0.5 + part$0 * 0.5 + (bent$0 + 16.8) * 0.125;`))
	fmt.Fprintf(&b, "\ta[i] = sum%d;\n}\n", octaves)
	hash := func(n float64) float64 { _, f := math.Modf(n*0.3183099 + 0.1); return f }
	return b.String(), func(p float64) float64 {
		sum := 0.0
		for range octaves {
			cell := math.Floor(p)
			f := p - cell
			u := f*f*f*f*f*6 - f*f*f*f*15 + f*f*f*10
			both := hash(cell+57)*(1-u) + hash(cell+1+57)*u
			bent := both * both * (3 - 2*both)
			sum, p = sum*0.5+bent*0.5+(sum-sum*bent)*0.25, p*0.5+(bent+16.8)*0.125
		}
		return sum
	}
}

// TestNoise checks the results of such a text. Positions up to 20 have rounding errors of 2e-6. The
// errors decrease from octave to octave, so their sum is less than 10 times the first error.
func TestNoise(t *testing.T) {
	text, want := noise(60)
	s := hosttest.User(text)
	if changed, err := tame(s); err != nil {
		t.Fatal(err)
	} else if n := differences(t, s.Text, changed); n < 100 {
		t.Fatalf("%d variables: this text tests nothing", n)
	}
	drivers(t, func(t *testing.T, d webgpu.HostDevice) {
		const n = 64
		p := hosttest.Must(d.NewPipeline(s))(t)
		up := hosttest.Must(d.NewBuffer(4*n, webgpu.Upload))(t)
		a := hosttest.Must(d.NewBuffer(4*n, webgpu.Storage))(t)
		down := hosttest.Must(d.NewBuffer(4*n, webgpu.Readback))(t)
		in := make([]float32, n)
		for i := range in {
			in[i] = rand.Float32() * 20
			binary.LittleEndian.PutUint32(up.Mapped()[4*i:], math.Float32bits(in[i]))
		}
		g := hosttest.Must(d.NewGroup(p, []webgpu.HostRange{{Buffer: a, Bytes: 4 * n}}))(t)
		ticket := hosttest.Must(d.Submit([]webgpu.HostCommand{
			{Do: webgpu.Copy, Src: up, Dst: a, Bytes: 4 * n},
			{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{n, 1, 1}},
			{Do: webgpu.Copy, Src: a, Dst: down, Bytes: 4 * n},
		}, nil))(t)
		if err := hosttest.Wait(d, ticket); err != nil {
			t.Fatal(err)
		}
		for i, x := range in {
			got := float64(math.Float32frombits(binary.LittleEndian.Uint32(down.Mapped()[4*i:])))
			if w := want(float64(x)); !(math.Abs(got-w) <= 5e-5) {
				t.Errorf("noise(%v) is %v, not %v", x, got, w)
			}
		}
	})
}

// FuzzCompile compiles any text: the compiler must neither panic nor hang.
func FuzzCompile(f *testing.F) {
	for _, s := range hosttest.Hostile(100) {
		f.Add(s.Text)
	}
	text, _ := noise(3)
	f.Add(text)
	f.Add(hosttest.InMain("let h0 = a[0];\n" + steps(30, "let h$1 = h$0 * h$0;")).Text)
	f.Add(hosttest.InMain("const h0 = 1;\n" + steps(30, "const h$1 = h$0 * h$0;")).Text)
	f.Add("struct S0 { x: S1, y: S1 } struct S1 { x: S0, y: S0 } const c = c; let let = let; fn {{ let x = (; } } const")
	f.Fuzz(func(t *testing.T, text string) {
		s := hosttest.User(text)
		if changed, err := tame(s); err == nil {
			differences(t, s.Text, changed)
		}
		var mistake *webgpu.CompileError
		if _, err := compile(s); err != nil && !errors.As(err, &mistake) {
			t.Errorf("%v", err)
		}
	})
}

// TestPrintedChain compiles kernels in Go whose values double in this way. They are printed with the
// same lets.
func TestPrintedChain(t *testing.T) {
	k := kernel.New("chain", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		x := kernel.InOut[kernel.F32](b, "x")
		i := b.Index()
		v := x.At(i)
		for range 200 {
			v = v.Mul(v).Add(v)
		}
		x.Set(i, v)
	})
	s := hosttest.Must(wgsl.Kernel(k, wgsl.Target{Consumer: wgsl.NagaGo}))(t)
	shader := &webgpu.Shader{Label: "chain", Text: s.Text, Entry: s.Entry, Bindings: []webgpu.BindingKind{webgpu.ReadWrite}, Trusted: true}
	if text, err := tame(shader); err != nil || differences(t, s.Text, text) < 10 {
		t.Errorf("this text tests nothing: %v\n%s", err, s.Text)
	}
	if _, err := compile(shader); err != nil {
		t.Error(err)
	}
}
