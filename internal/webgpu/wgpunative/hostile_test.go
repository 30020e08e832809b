package wgpunative

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// user returns a shader of a user, of one array that is written.
func user(body string) *webgpu.Shader {
	return &webgpu.Shader{Label: "user", Text: "@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n" + body, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadWrite}}
}

// inMain is a shader with these statements.
func inMain(body string) *webgpu.Shader {
	return user("@compute @workgroup_size(1) fn main() {\n" + body + "\n}\n")
}

// TestMistakes has texts with mistakes.
func TestMistakes(t *testing.T) {
	d := guarded(t)
	readOnly := inMain("a[0] = 1.0;")
	readOnly.Text = strings.Replace(readOnly.Text, "read_write", "read", 1)
	lacks := inMain("a[0] = 1.0;")
	lacks.Bindings = nil
	swapped := inMain("a[0] = 1.0;")
	swapped.Bindings = []webgpu.BindingKind{webgpu.ReadOnly}
	entry := inMain("")
	entry.Entry = "other"
	for name, c := range map[string]struct {
		s            *webgpu.Shader
		line, column int
	}{
		"syntax":           {inMain("a[0] = ;"), 3, 8},
		"name":             {inMain("a[0] = b;"), 3, 8},
		"type":             {inMain("a[0] = 1u;"), 3, 1},
		"read only":        {readOnly, 3, 1},
		"entry":            {entry, 0, 0},
		"layout lacks it":  {lacks, 0, 0},
		"other access":     {swapped, 0, 0},
		"workgroup size":   {user("@compute @workgroup_size(4096) fn main() {}"), 0, 0},
		"workgroup size 0": {user("@compute @workgroup_size(0) fn main() {}"), 0, 0},
		"empty":            {&webgpu.Shader{Label: "user", Entry: "main"}, 0, 0},
		"no entry":         {&webgpu.Shader{Label: "user", Text: "const a = 1;"}, 0, 0},
		"zero bytes":       {&webgpu.Shader{Label: "user", Text: "\x00\x00", Entry: "\x00"}, 0, 0},
		"not UTF-8":        {&webgpu.Shader{Label: "user", Text: "\xff\xfe\xfd", Entry: "main"}, 0, 0},
		"recursion":        {user("fn f() { f(); } @compute @workgroup_size(1) fn main() { f(); }"), 0, 0},
	} {
		p, err := d.Compile(ctx, c.s)
		p.Free()
		var e *webgpu.CompileError
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.line > 0 && (e.Line != c.line || e.Column != c.column || e.Text == "") {
			t.Errorf("%s: line %d, column %d, %q, not %d:%d:\n%v", name, e.Line, e.Column, e.Text, c.line, c.column, err)
		}
	}
}

// TestHostile has texts that are made to hurt: compiling them ends, and the process
// lives.
func TestHostile(t *testing.T) {
	d := guarded(t)
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	const n = 20_000
	for name, s := range map[string]*webgpu.Shader{
		"parentheses":    inMain("a[0] = " + many("(", n) + "1.0" + many(")", n) + ";"),
		"open":           inMain("a[0] = " + many("(", n)),
		"minus":          inMain("a[0] = " + many("-", n) + "1.0;"),
		"minus apart":    inMain("a[0] = " + many("- ", n) + "a[1];"),
		"not":            inMain("if (" + many("!", n) + "true) {}"),
		"blocks":         inMain(many("{", n) + many("}", n)),
		"loops":          inMain(many("loop {", n) + many("}", n)),
		"ifs":            inMain(many("if (a[0] > 0.0) {", n) + many("}", n)),
		"else ifs":       inMain("if (a[0] > 0.0) {}" + many(" else if (a[0] > 0.0) {}", n)),
		"switches":       inMain(many("switch (1) { default: {", n) + many("}}", n)),
		"sum":            inMain("a[0] = a[1]" + many(" + a[1]", n) + ";"),
		"constant sum":   inMain("a[0] = 1.0" + many(" + 1.0", n) + ";"),
		"and":            inMain("if (a[0] > 0.0" + many(" && a[1] > 0.0", n) + ") {}"),
		"calls":          inMain("a[0] = " + many("abs(", n) + "a[1]" + many(")", n) + ";"),
		"indices":        inMain("a[0] = a[" + many("u32(a[", n) + "0" + many("])", n) + "];"),
		"types":          user("var<private> x: " + many("array<", n) + "f32" + many(", 2>", n) + "; @compute @workgroup_size(1) fn main() {}"),
		"pointers":       user("fn f(x: " + many("ptr<function, ", n) + "f32" + many(">", n) + ") {} @compute @workgroup_size(1) fn main() {}"),
		"templates":      user("var<private> x: " + many("vec2<", n) + "; @compute @workgroup_size(1) fn main() {}"),
		"comments":       user(many("/*", n) + many("*/", n) + "@compute @workgroup_size(1) fn main() {}"),
		"attributes":     user(many("@must_use ", n) + "fn f() -> f32 { return 1.0; } @compute @workgroup_size(1) fn main() {}"),
		"huge array":     user("var<private> x: array<f32, 2000000000>; @compute @workgroup_size(1) fn main() { x[0] = a[0]; a[0] = x[u32(a[1])]; }"),
		"long name":      user("var<private> " + many("x", 1<<20) + ": f32; @compute @workgroup_size(1) fn main() {}"),
		"chain of lets":  inMain("let x0 = a[0];" + chain(3000)),
		"chain of calls": user(functions(200) + "@compute @workgroup_size(1) fn main() { a[0] = g199(a[1]); }"),
		"const overflow": user("const x = 2147483647i + 1i; @compute @workgroup_size(1) fn main() {}"),
		"const division": user("const x = 1 / 0; @compute @workgroup_size(1) fn main() {}"),
		"shift":          inMain("a[0] = f32(1u << 32u);"),
	} {
		p, err := d.Compile(ctx, s)
		p.Free()
		text := "compiles"
		if err != nil {
			text, _, _ = strings.Cut(err.Error(), "\n")
		}
		t.Logf("%s: %.200s", name, text)
		if errors.Is(err, webgpu.ErrDeviceLost) {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if err := relus(d, 1000); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "let x%d = x%d * x%d;\n", i+1, i, i)
	}
	fmt.Fprintf(&b, "a[0] = x%d;", n)
	return b.String()
}

func functions(n int) string {
	var b strings.Builder
	b.WriteString("fn g0(x: f32) -> f32 { return x; }\n")
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, "fn g%d(x: f32) -> f32 { return g%d(x) + 1.0; }\n", i, i-1)
	}
	return b.String()
}

// FuzzCompile has any text compiled: no text ends the process.
func FuzzCompile(f *testing.F) {
	f.Add(relu)
	f.Add(reluShader.Text)
	f.Add("@compute @workgroup_size(1) fn main() { var x = 1u << 31u; loop { x = x / 0u; if (x > 3u) { break; } } }")
	f.Add("enable f16; struct s { @align(16) a: f32, b: array<vec3<f16>, 3> } var<workgroup> w: atomic<u32>; @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { atomicAdd(&w, i); workgroupBarrier(); }")
	f.Add("override n: u32 = 3; @compute @workgroup_size(n) fn main() { switch (n) { case 1, 2: { } default: { } } }")
	d := guarded(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, kinds := range [][]webgpu.BindingKind{nil, {webgpu.ReadOnly, webgpu.ReadWrite}} {
			p, err := d.Compile(ctx, &webgpu.Shader{Label: "fuzz", Text: text, Entry: "main", Bindings: kinds})
			p.Free()
			var e *webgpu.CompileError
			if err != nil && !errors.As(err, &e) && !errors.Is(err, webgpu.ErrLimit) {
				t.Errorf("%v", err)
			}
		}
	})
}
