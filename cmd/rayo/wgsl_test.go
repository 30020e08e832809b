package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

func TestWGSLListsWhatItShows(t *testing.T) {
	code, out, errs := rayo(t, "wgsl", "list")
	if code != 0 || errs != "" {
		t.Fatalf("code %d, %s", code, errs)
	}
	names := []string{"mul+add+gelu", "matmul+relu", "less+where"}
	for _, o := range op.Catalogue() {
		if o != op.Cast && (!o.View() || o == op.Transpose) && (o.Class() == op.Elementwise || portable.Has(o)) { // views move nothing alone
			names = append(names, o.Name())
		}
	}
	for i, n := range names {
		if !strings.Contains(n, "+") && !regexp.MustCompile(`(?m)^ .*\b`+n+`\b`).MatchString(out) {
			t.Errorf("%s is not listed", n)
		}
		if testing.Short() && i%3 != 0 {
			continue
		}
		if code, text, errs := rayo(t, "wgsl", "show", n); code != 0 || !strings.Contains(text, "@compute @workgroup_size(") {
			t.Errorf("show %s: code %d, %s", n, code, errs)
		}
	}
}

func TestWGSLCommandLines(t *testing.T) {
	t.Setenv("PATH", "") // no compilers
	write := func(name, text string) string {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	head := "struct P { n: u32, s: vec3f }\n@group(0) @binding(4) var<storage, read_write> x: array<vec2f>;\n@group(1) @binding(0) var<uniform> p: P;\n"
	body := "(@builtin(global_invocation_id) id: vec3u) { x[id.x] = p.s.xy; }\n"
	one := write("one.wgsl", head+"@compute @workgroup_size(64) fn main"+body)
	two := write("two.wgsl", head+"@compute @workgroup_size(64) fn a"+body+"@compute @workgroup_size(8, 8) fn b"+body)
	broken := write("broken.wgsl", head+"@compute @workgroup_size(0) fn main"+body)
	binary := write("binary.wgsl", "\x00\x01")
	for _, c := range []struct {
		name        string
		args        []string
		code        int
		out, errors string
	}{
		{"show rows", []string{"show", "softmax", "--rows=1000"}, 0, `^// softmax of f32\[1000 4096\] for naga, variant \S+: \d+ x 1 x 1 workgroups of `, `^$`},
		{"show columns", []string{"show", "rms_norm", "--rows=10", "--cols=100"}, 0, `^// rms_norm of f32\[10 100\] f32\[100\] for `, `^$`},
		{"show stages", []string{"show", "sum", "--sizes=10000000"}, 0, `(?s)^// sum_1 of .*\n\n// sum_2 of `, `^$`},
		{"show a variant", []string{"show", "softmax", "--variant=loop", "--features=none"}, 0, `variant loop: `, `^$`},
		{"show halves", []string{"show", "matmul", "--type=f16", "--features=f16"}, 0, `\nenable f16;\n`, `^$`},
		{"show for tint", []string{"show", "sum", "--consumer=tint", "--sizes=100000"}, 0, `enable subgroups;`, `^$`},
		{"show for naga", []string{"show", "sum", "--sizes=100000"}, 0, `subgroupAdd\(`, `^$`},
		{"show without subgroups", []string{"show", "sum", "--features=none", "--sizes=100"}, 0, `^// sum of`, `^$`},
		{"show with lines", []string{"show", "relu", "--lines"}, 0, ` // map\.go:\d+\n`, `^$`},
		{"show with more memory", []string{"show", "matmul", "--lanes=1024", "--shared=49152"}, 0, `@compute`, `^$`},
		{"no halves", []string{"show", "relu", "--type=f16", "--consumer=naga-go", "--sizes=3"}, 1, `^$`, `f16|half`},
		{"no such adapter", []string{"show", "relu", "--device=4711"}, 1, `^$`, `no device`},
		{"no such feature", []string{"show", "relu", "--features=f64"}, 1, `^$`, `unknown feature "f64"`},
		{"no such operation", []string{"show", "relu+conv"}, 1, `^$`, `unknown operation "conv" \(is it conv2d\?\); rayo wgsl list`},
		{"no such variant", []string{"show", "softmax", "--variant=x"}, 1, `^$`, `variants: `},
		{"fewer rows than none", []string{"show", "softmax", "--rows=-3"}, 1, `^$`, `--rows and --cols must be positive`},
		{"rows of an elementwise operation", []string{"show", "relu", "--rows=3"}, 1, `^$`, `--rows and --cols need one operation on rows`},
		{"wrong sizes", []string{"show", "matmul", "--sizes=3x4,5x6"}, 1, `^$`, `shape mismatch`},
		{"no such consumer", []string{"show", "relu", "--consumer=glsl"}, 2, `^$`, `naga`},
		{"check a kernel", []string{"check", "softmax"}, 0, `^naga    is not installed\ntint    is not installed\n$`, `^$`},
		{"check a file", []string{"check", one}, 0, `(?s)main: workgroups of 64 x 1 x 1 lanes.*buffer 0: @group\(0\) @binding\(4\) x: array<vec2<f32>>, read_write.*P, 32 bytes\n.*s: vec3<f32> at 16\n`, `^$`},
		{"check one of two", []string{"check", two, "--entry=b"}, 0, `b: workgroups of 8 x 8 x 1 lanes`, `^$`},
		{"check which of two", []string{"check", two}, 1, `two\.wgsl: the text has several @compute functions, a, b: name the entry point`, `there are mistakes`},
		{"check a broken file", []string{"check", broken}, 1, `broken\.wgsl:4:26: the workgroup has no lanes: @workgroup_size must not be 0\n`, `there are mistakes`},
		{"check no file", []string{"check", "nowhere.wgsl"}, 1, `^$`, `nowhere\.wgsl`},
		{"check what is not text", []string{"check", binary}, 1, `^$`, `is not text`},
	} {
		t.Run(c.name, func(t *testing.T) {
			code, out, errs := rayo(t, append([]string{"wgsl"}, c.args...)...)
			if code != c.code || !regexp.MustCompile(c.out).MatchString(out) || !regexp.MustCompile(c.errors).MatchString(errs) {
				t.Errorf("code %d, want %d\noutput %.2000q\nerrors %q", code, c.code, out, errs)
			}
		})
	}
}

// TestWGSLOfDevice prints a text for an adapter.
func TestWGSLOfDevice(t *testing.T) {
	testutil.Vulkan(t, "lavapipe")
	code, out, errs := rayo(t, "wgsl", "show", "matmul", "--device=software")
	if code != 0 || !strings.Contains(out, "@compute") {
		t.Errorf("code %d, %s\n%s", code, errs, out)
	}
}

// TestWGSLCompilers checks a text by the installed compilers.
func TestWGSLCompilers(t *testing.T) {
	testutil.Need(t, "naga")
	testutil.Need(t, "tint")
	text := "enable subgroups;\n@group(3) @binding(1) var<storage, read_write> x: array<f32>;\n" +
		"@compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) { x[id.x] = subgroupAdd(%); }\n"
	for what, c := range map[string]struct {
		code int
		out  string
	}{
		"x[id.x]": {0, `(?s)naga    accepted\ntint    accepted\n$`},
		"y":       {1, `(?s)rayo    .*x\.wgsl:3:\d+: no definition in scope for y`},
		"id":      {1, `(?s)naga    .*kernel\.wgsl:3:\d+.*tint    kernel\.wgsl:3:\d+ error`},
	} {
		file := filepath.Join(t.TempDir(), "x.wgsl")
		if err := os.WriteFile(file, []byte(strings.Replace(text, "%", what, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, out, errs := rayo(t, "wgsl", "check", file); code != c.code || !regexp.MustCompile(c.out).MatchString(out) {
			t.Errorf("%s: code %d\n%s%s", what, code, out, errs)
		}
	}
	if code, out, errs := rayo(t, "wgsl", "check", "sum", "--type=f16"); code != 0 || strings.Count(out, "accepted") != 2 {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}
