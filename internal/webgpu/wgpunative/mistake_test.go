//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

// TestMistakes has texts with mistakes.
func TestMistakes(t *testing.T) {
	d := hosttest.Guarded(t, New, driver)
	readOnly := hosttest.InMain("a[0] = 1.0;")
	readOnly.Text = strings.Replace(readOnly.Text, "read_write", "read", 1)
	lacks := hosttest.InMain("a[0] = 1.0;")
	lacks.Bindings = nil
	swapped := hosttest.InMain("a[0] = 1.0;")
	swapped.Bindings = []webgpu.BindingKind{webgpu.ReadOnly}
	entry := hosttest.InMain("")
	entry.Entry = "other"
	for name, c := range map[string]struct {
		s            *webgpu.Shader
		line, column int
	}{
		"syntax":           {hosttest.InMain("a[0] = ;"), 3, 8},
		"name":             {hosttest.InMain("a[0] = b;"), 3, 8},
		"type":             {hosttest.InMain("a[0] = 1u;"), 3, 1},
		"read only":        {readOnly, 3, 1},
		"entry":            {entry, 0, 0},
		"layout lacks it":  {lacks, 0, 0},
		"other access":     {swapped, 0, 0},
		"workgroup size":   {hosttest.User("@compute @workgroup_size(4096) fn main() {}"), 0, 0},
		"workgroup size 0": {hosttest.User("@compute @workgroup_size(0) fn main() {}"), 0, 0},
		"empty":            {&webgpu.Shader{Label: "user", Entry: "main"}, 0, 0},
		"no entry":         {&webgpu.Shader{Label: "user", Text: "const a = 1;"}, 0, 0},
		"zero bytes":       {&webgpu.Shader{Label: "user", Text: "\x00\x00", Entry: "\x00"}, 0, 0},
		"not UTF-8":        {&webgpu.Shader{Label: "user", Text: "\xff\xfe\xfd", Entry: "main"}, 0, 0},
		"recursion":        {hosttest.User("fn f() { f(); } @compute @workgroup_size(1) fn main() { f(); }"), 0, 0},
	} {
		p, err := d.Compile(t.Context(), c.s)
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

// TestHostile has texts that are made to hurt.
func TestHostile(t *testing.T) {
	hosttest.Survive(t, hosttest.Guarded(t, New, driver), hosttest.Hostile(20_000))
}

// FuzzCompile has any text compiled: no text ends the process.
func FuzzCompile(f *testing.F) {
	f.Add(hosttest.InMain("a[0] = max(a[1], 0.0);").Text)
	f.Add(hosttest.Shader.Text)
	f.Add("@compute @workgroup_size(1) fn main() { var x = 1u << 31u; loop { x = x / 0u; if (x > 3u) { break; } } }")
	f.Add("enable f16; struct s { @align(16) a: f32, b: array<vec3<f16>, 3> } var<workgroup> w: atomic<u32>; @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { atomicAdd(&w, i); workgroupBarrier(); }")
	f.Add("override n: u32 = 3; @compute @workgroup_size(n) fn main() { switch (n) { case 1, 2: { } default: { } } }")
	d := hosttest.Guarded(f, New, driver)
	f.Fuzz(func(t *testing.T, text string) {
		for _, kinds := range [][]webgpu.BindingKind{nil, {webgpu.ReadOnly, webgpu.ReadWrite}} {
			p, err := d.Compile(context.Background(), &webgpu.Shader{Label: "fuzz", Text: text, Entry: "main", Bindings: kinds})
			p.Free()
			var e *webgpu.CompileError
			if err != nil && !errors.As(err, &e) && !errors.Is(err, webgpu.ErrLimit) {
				t.Errorf("%v", err)
			}
		}
	})
}
