package hosttest

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// User returns a shader of a user, of one array that is written.
func User(body string) *webgpu.Shader {
	return &webgpu.Shader{Label: "user", Text: "@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n" + body, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadWrite}}
}

// InMain is a shader with these statements.
func InMain(body string) *webgpu.Shader {
	return User("@compute @workgroup_size(1) fn main() {\n" + body + "\n}\n")
}

// Hostile returns texts that are made to hurt, by name. What is repeated in them is
// repeated n times, or a part of n where each takes much.
func Hostile(n int) map[string]*webgpu.Shader {
	many := strings.Repeat
	return map[string]*webgpu.Shader{
		"parentheses":    InMain("a[0] = " + many("(", n) + "1.0" + many(")", n) + ";"),
		"open":           InMain("a[0] = " + many("(", n)),
		"minus":          InMain("a[0] = " + many("-", n) + "1.0;"),
		"minus apart":    InMain("a[0] = " + many("- ", n) + "a[1];"),
		"not":            InMain("if (" + many("!", n) + "true) {}"),
		"blocks":         InMain(many("{", n) + many("}", n)),
		"loops":          InMain(many("loop {", n) + many("}", n)),
		"ifs":            InMain(many("if (a[0] > 0.0) {", n) + many("}", n)),
		"else ifs":       InMain("if (a[0] > 0.0) {}" + many(" else if (a[0] > 0.0) {}", n)),
		"switches":       InMain(many("switch (1) { default: {", n) + many("}}", n)),
		"sum":            InMain("a[0] = a[1]" + many(" + a[1]", n) + ";"),
		"constant sum":   InMain("a[0] = 1.0" + many(" + 1.0", n) + ";"),
		"and":            InMain("if (a[0] > 0.0" + many(" && a[1] > 0.0", n) + ") {}"),
		"calls":          InMain("a[0] = " + many("abs(", n) + "a[1]" + many(")", n) + ";"),
		"indices":        InMain("a[0] = a[" + many("u32(a[", n) + "0" + many("])", n) + "];"),
		"types":          User("var<private> x: " + many("array<", n) + "f32" + many(", 2>", n) + "; @compute @workgroup_size(1) fn main() {}"),
		"pointers":       User("fn f(x: " + many("ptr<function, ", n) + "f32" + many(">", n) + ") {} @compute @workgroup_size(1) fn main() {}"),
		"templates":      User("var<private> x: " + many("vec2<", n) + "; @compute @workgroup_size(1) fn main() {}"),
		"comments":       User(many("/*", n) + many("*/", n) + "@compute @workgroup_size(1) fn main() {}"),
		"attributes":     User(many("@must_use ", n) + "fn f() -> f32 { return 1.0; } @compute @workgroup_size(1) fn main() {}"),
		"huge array":     User("var<private> x: array<f32, 2000000000>; @compute @workgroup_size(1) fn main() { x[0] = a[0]; a[0] = x[u32(a[1])]; }"),
		"long name":      User("var<private> " + many("x", 1<<20) + ": f32; @compute @workgroup_size(1) fn main() {}"),
		"chain of lets":  InMain("let x0 = a[0];" + chain(3000)),
		"constants":      InMain("const x0 = 1.0;" + constants(200) + "a[0] = x200;"),
		"structures":     User("struct S0 { x: f32, y: f32 }\n" + structures(200) + "@compute @workgroup_size(1) fn main() {}"),
		"chain of calls": User(functions(200) + "@compute @workgroup_size(1) fn main() { a[0] = g199(a[1]); }"),
		"const overflow": User("const x = 2147483647i + 1i; @compute @workgroup_size(1) fn main() {}"),
		"const division": User("const x = 1 / 0; @compute @workgroup_size(1) fn main() {}"),
		"shift":          InMain("a[0] = f32(1u << 32u);"),
		"complements":    InMain("a[0] = f32(" + many("~", n) + "1u);"),
		"address":        InMain("a[0] = " + many("*&", n) + "a[1];"),
		"array sizes":    InMain("var x: " + many("array<", n) + "u32" + many(",2>", n/2) + ";"),
		"minima":         InMain("a[0] = " + many("min(1.0,", n/2) + "1.0" + many(")", n/2) + ";"),
	}
}

// Survive has texts that are made to hurt: compiling them ends, and the device works.
func Survive(t *testing.T, d *webgpu.Device, texts map[string]*webgpu.Shader) {
	for name, s := range texts {
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
	if err := Relu(d, 1000); err != nil {
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

func constants(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "const x%d = x%d * x%d;\n", i+1, i, i)
	}
	return b.String()
}

func structures(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "struct S%d { x: S%d, y: S%d }\n", i+1, i, i)
	}
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
