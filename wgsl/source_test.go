package wgsl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// waves is a text with a variety of features: buffers out of order and in several groups,
// structures, nested comments, overrides, workgroup memory, and two entry points.
const waves = `/* waves /* on */ a string */
enable subgroups; // with sums
const LANES = 8u * (3 + 5);
override DAMPING: f32 = 0.5;
@id(7) override STEPS = 4u;
alias Row = array<vec4f, 2 << 1>;
struct Node { @size(16) place: vec3f, mass: f32, @align(16) flags: atomic<u32> }
struct Params { dt: f32, shape: vec2u, m: mat3x2f, rows: Row, _unused: u32, }
@group(2) @binding(9) var<storage> x : array<f32>;
@binding(3) @group(0) var<storage, read_write> nodes: array<Node>;
@group(1) @binding(0) var<uniform> params: Params;
@group(0) @binding(3) var<storage> other: array<i32>;
var<workgroup> tile: array<array<f32, 8>, LANES>;
var<workgroup> elsewhere: array<f32, 100>;
var<private> counter: i32 = 3;

fn weight(i: u32) -> f32 { return x[i] * DAMPING * params.rows[1].y + f32(counter); }

@compute @workgroup_size(LANES, STEPS >> 1)
fn step(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
	tile[lane % 64][0] = weight(id.x);
	workgroupBarrier();
	nodes[id.x].place.x += subgroupAdd(tile[lane % 64][0]) * params.dt;
}

@compute @workgroup_size(1) fn count() {
	atomicAdd(&nodes[0].flags, u32(other[0]) + u32(elsewhere[0]));
}
`

func TestInterface(t *testing.T) {
	i, err := Source{Text: waves, Entry: "step"}.Interface()
	if err != nil {
		t.Fatal(err)
	}
	if i.Local != [3]uint32{64, 2, 1} || i.SharedBytes != 64*8*4 || i.Needs != Subgroups {
		t.Errorf("local %v, %d bytes shared, needs %d", i.Local, i.SharedBytes, i.Needs)
	}
	if len(i.Buffers) != 2 || i.Buffers[0].Name != "nodes" || i.Buffers[0].Access != ReadWrite || i.Buffers[1].Name != "x" || i.Buffers[1].Access != Read {
		t.Fatalf("buffers %+v", i.Buffers)
	}
	if b := i.Buffers[1]; b.Group != 2 || b.Binding != 9 || b.Type.String() != "array<f32>" {
		t.Errorf("x is %+v", b)
	}
	node := i.Buffers[0].Type
	if node.Stride != 48 {
		t.Errorf("a node has %d bytes", node.Stride)
	}
	if i.Params == nil || i.Params.Type.Size != 128 {
		t.Fatalf("parameters %+v", i.Params)
	}
	var offsets []uint64
	for _, f := range i.Params.Type.Fields {
		offsets = append(offsets, f.Offset)
	}
	if fmt.Sprint(offsets) != "[0 8 16 48 112]" {
		t.Errorf("offsets %v", offsets)
	}
}

// TestTexts compiles texts with both compilers as they are printed.
func TestTexts(t *testing.T) {
	sources := map[string]Source{
		"waves":     {Text: waves, Entry: "step"},
		"constants": {Text: waves, Entry: "step", Constants: map[string]float64{"DAMPING": -0.25, "STEPS": 8}},
		"overrides": {Text: `
			override a: u32; override b = 2u; override c: f32 = f32(a) * 2; override d = true; override e = -3i; @id(3) override f: bool;
			@group(0) @binding(7) var<storage, read_write> x: array<u32, 16>;
			var<workgroup> w: array<f32, a * 2>;
			@compute @workgroup_size(a) fn main() { if d && f { x[0] = a + b; } w[0] = c + f32(e); }`,
			Constants: map[string]float64{"a": 16, "d": 0, "f": 1, "e": -7}},
		"enables": {Text: "enable\n  subgroups ,\n f16; enable f16, subgroups;\n" + `
			@group(0) @binding(0) var<storage, read_write> x: array<vec2<f16>>;
			@compute @workgroup_size(32) fn main(@builtin(subgroup_size) n: u32) { x[0] = subgroupAdd(x[1]) * f16(n); }`},
		"no enable": {Text: `@group(0) @binding(0) var<storage, read_write> x: f32;
			@compute @workgroup_size(32) fn main() { x = subgroupAdd(x); }`},
	}
	for _, c := range []Consumer{Naga, Tint} {
		t.Run(c.String(), func(t *testing.T) {
			texts := map[string]string{}
			for name, s := range sources {
				p, _, err := s.program()
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				sh, err := printProgram(p, Target{Consumer: c, Features: Half | Subgroups})
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if got, want := strings.Count(sh.Text, "\n"), strings.Count(s.Text, "\n"); got != want {
					t.Errorf("%s: %d lines became %d", name, want, got)
				}
				texts[name] = sh.Text
			}
			compileText(t, compiler(c), texts)
		})
	}
	p, _, err := sources["overrides"].program()
	if err != nil {
		t.Fatal(err)
	}
	if p.Local != [3]uint32{16, 1, 1} || p.Text.SharedBytes != 128 || p.Text.Layouts[0].Head != 64 || p.Text.Layouts[0].Stride != 0 {
		t.Errorf("%+v %+v", p, p.Text)
	}
}

// TestPrintText checks the description of a text for a host, and the errors for targets that lack a
// feature.
func TestPrintText(t *testing.T) {
	p, _, err := Source{Text: waves, Entry: "step"}.program()
	if err != nil {
		t.Fatal(err)
	}
	s, err := printProgram(p, Target{Features: Subgroups})
	if err != nil {
		t.Fatal(err)
	}
	if s.Entry != "step" || s.Params != 2 || s.ParamBytes != 128 || s.Local != [3]uint32{64, 2, 1} || s.SharedBytes != 2048 ||
		len(s.Bindings) != 2 || s.Bindings[0] != ReadWrite || s.Bindings[1] != Read {
		t.Errorf("%+v", s)
	}
	for name, target := range map[string]Target{
		"subgroups": {}, "lanes": {Features: Subgroups, Limits: Limits{Invocations: 127}},
		"memory": {Features: Subgroups, Limits: Limits{WorkgroupBytes: 2047}}, "buffers": {Features: Subgroups, Limits: Limits{Bindings: 1}},
	} {
		if _, err := printProgram(p, target); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSourceErrors checks the positions and messages of errors.
func TestSourceErrors(t *testing.T) {
	head := "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
	main := "@compute @workgroup_size(1) fn main() { x[0] = 1; }\n"
	for _, c := range []struct {
		text, want string
	}{
		{"", "the text has no @compute function"},
		{head + "fn main() {}", "the text has no @compute function"},
		{head + main + "@compute @workgroup_size(1) fn other() {}", "the text has several @compute functions, main, other: name the entry point"},
		{head + "@compute fn main() {}", "2:13: main has no @workgroup_size"},
		{head + "@compute @workgroup_size(0) fn main() {}", "2:26: the workgroup has no lanes"},
		{head + "@compute @workgroup_size(1, 2, 3, 4) fn main() {}", "2:35: @workgroup_size has more than three arguments"},
		{head + "@compute @workgroup_size(n) fn main() {}", "2:26: rayo cannot compute a size from n"},
		{head + "override n: u32;\n@compute @workgroup_size(n) fn main() {}", "2:10: n has no value: give it one in Source.Constants"},
		{head + "const n = n;\n@compute @workgroup_size(n) fn main() {}", "2:7: n is defined in terms of itself"},
		{head + "const n = 1 << 40;\n@compute @workgroup_size(n) fn main() {}", "2:13: 1 << 40 is undefined or too large"},
		{head + "fn f() { f(); }\n" + main[:39] + "f(); }", "2:10: f is defined in terms of itself"},
		{head + main[:39] + "x[0] = z; }", "2:47: no definition in scope for z"},
		{"/* no end", "1:1: the comment does not end"},
		{"fn main( {", "1:8: \"(\" is not closed"},
		{"fn main() {", "1:11: \"{\" is not closed"},
		{"struct S { a: f32 b: f32 }", "1:19: expected \",\" or \"}\", found \"b\""},
		{"wat", "1:1: expected a declaration, found \"wat\""},
		{"var<storage x: f32;", "1:4: \"<\" is not closed"},
		{"const a = 1;\nconst a = 2;", "2:7: a is declared twice"},
		{"struct S { s: S }\n@group(0) @binding(0) var<storage> x: S;\n" + main, "1:8: S contains itself"},
		{"@group(0) @binding(0) var<storage> x: array<wat>;\n" + main, "1:45: unknown type wat"},
		{"@group(0) @binding(0) var<storage> x: array<f32, 0>;\n" + main, "1:50: an array must have at least one element"},
		{"struct S { a: array<f32>, b: f32 }\n@group(0) @binding(0) var<storage> x: S;\n" + main, "1:8: S: a has no fixed size and is not the last member"},
		{"struct S { @align(6) a: f32 }\n@group(0) @binding(0) var<storage> x: S;\n" + main, "@align(6) of a must be a power of two"},
		{"struct S { @size(2) a: f32 }\n@group(0) @binding(0) var<storage> x: S;\n" + main, "@size(2) of a is too small: its type has 4 bytes"},
		{"@group(0) @binding(0) var<storage, write> x: array<f32>;\n" + main, "1:36: the access of a buffer must be read or read_write"},
		{"@group(0) var<storage> x: array<f32>;\n" + main, "1:24: x has no @binding"},
		{"@group(0) @binding(0) var x: texture_2d<f32>;\n" + main, "textures and samplers"},
		{"var<push_constant> x: f32;\n" + main, "address space push_constant"},
		{"@group(0) @binding(0) var<storage> x: array<f32>; @group(0) @binding(0) var<storage> y: array<f32>;" + main[:39] + "x[0] = y[0]; }",
			"x and y are both binding 0 of group 0"},
		{"@group(0) @binding(0) var<uniform> x: f32; @group(0) @binding(0) var<uniform> y: f32;" + main[:39] + "_ = x + y; }", "x and y are both binding 0 of group 0"},
		{"@group(0) @binding(0) var<uniform> x: array<vec4f, 4000>; @group(0) @binding(1) var<uniform> y: array<vec4f, 99>;" + main[:39] + "_ = x[0] + y[0]; }", "65584 bytes of parameters"},
		{head + uniforms(13) + main[:39] + "x[0] = " + "u0 + u1 + u2 + u3 + u4 + u5 + u6 + u7 + u8 + u9 + u10 + u11 + u12; }", "13 uniform variables; at most 12"},
	} {
		err := Source{Text: c.text}.Kernel().Err()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n\tgot  %v\n\twant %s", c.text, err, c.want)
		}
	}
	for _, c := range []struct {
		constants map[string]float64
		want      string
	}{
		{map[string]float64{"STEPS": 1.5}, "1.5 is not a valid value for override STEPS of type u32"},
		{map[string]float64{"DAMPING": math.NaN()}, "NaN is not a valid value for override DAMPING of type f32"},
		{map[string]float64{"LANES": 3}, "no override of that name"},
	} {
		err := Source{Text: waves, Entry: "step", Constants: c.constants}.Kernel().Err()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v", c.constants, err)
		}
	}
	err := Source{Text: waves, Entry: "count"}.Kernel().Err()
	if err == nil || !strings.Contains(err.Error(), "nodes and other are both binding 3 of group 0") {
		t.Error(err)
	}
	err = Source{Text: "\tconst a = 1;\n\tconst a = 2;", Name: "k"}.Kernel().Err()
	if want := "k:2:8: a is declared twice\n\t\tconst a = 2;\n\t\t      ^"; err == nil || err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	err = Source{Text: "const a = 1;\n/* größer */ const a = 2;", Name: "k"}.Kernel().Err()
	if want := "k:2:20: a is declared twice\n\t/* größer */ const a = 2;\n\t                   ^"; err == nil || err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// uniforms declares n uniform variables.
func uniforms(n int) (s string) {
	for i := range n {
		s += fmt.Sprintf("@group(1) @binding(%d) var<uniform> u%d: f32;\n", i, i)
	}
	return s
}

// TestUniforms encodes a struct of structs to several uniforms.
func TestUniforms(t *testing.T) {
	text := `
		struct View { scale: f32, shift: vec3f }
		@group(1) @binding(7) var<uniform> view: View;
		@group(0) @binding(3) var<uniform> count: u32;
		@group(1) @binding(1) var<uniform> _hidden: vec4f;
		@group(0) @binding(9) var<storage, read_write> y: array<f32>;
		@compute @workgroup_size(1) fn main() { y[0] = view.scale + view.shift.z + f32(count) + _hidden.x; }`
	p, l, err := Source{Text: text}.program()
	if err != nil {
		t.Fatal(err)
	}
	compileText(t, "naga", map[string]string{"uniforms": p.Text.Source})
	if want := "[{0 16} {256 16} {512 32}]"; fmt.Sprint(p.Text.Blocks) != want || p.Text.ParamBytes != 544 {
		t.Errorf("%v, %d bytes", p.Text.Blocks, p.Text.ParamBytes)
	}
	type view struct {
		Scale float32
		Shift [3]float32
	}
	b, err := l.Params(nil, struct {
		View  view
		Count uint32
	}{view{1.5, [3]float32{2, 3, 4}}, 77})
	if err != nil {
		t.Fatal(err)
	}
	float := func(at int) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b[at:])) }
	if len(b) != 544 || binary.NativeEndian.Uint32(b) != 77 || float(512) != 1.5 || float(528) != 2 || float(536) != 4 {
		t.Errorf("%d bytes: %v", len(b), b)
	}
	for _, wrong := range []any{nil, view{}, struct{ Count uint32 }{}, struct {
		View  view
		Count float32
	}{}} {
		if _, err := l.Params(nil, wrong); !errors.Is(err, kernel.ErrParams) {
			t.Errorf("%T: %v", wrong, err)
		}
	}
}

// TestBounds checks that texts that drivers would compile for minutes are rejected, and that texts
// just within the limits are accepted.
func TestBounds(t *testing.T) {
	head := "@group(0) @binding(0) var<storage, read_write> x: array<f32>;\n"
	main := func(body string) string { return "@compute @workgroup_size(1) fn main() { x[0] = 1; " + body + " }\n" }
	calls := func(n int) string {
		s := head + "fn g0() -> f32 { return x[0]; }\n"
		for i := range n {
			s += fmt.Sprintf("fn g%d() -> f32 { return g%d() + g%d(); }\n", i+1, i, i)
		}
		return s + main(fmt.Sprintf("x[1] = g%d();", n))
	}
	for _, c := range []struct {
		text, want string // want is "" for a text that is accepted
	}{
		{head + main("var a: array<f32, 16384>; x[1] = a[2];"), ""},
		{head + main("var a: array<f32, 16385>; x[1] = a[2];"), "2:58: main has 65540 bytes of variables for each lane; at most 65536 are allowed"},
		{head + main("var a: array<f32, 8192>; var b: array<f32, 8192>;"), ""},
		{head + main("var a: array<f32, 8192>; var b = array<f32, 8193>();"), "2:84: main has 65540 bytes"},
		{head + main("let a = array<vec4f, 5000>();"), "main has 80000 bytes"},
		{head + main("x[1] = array<vec4f, 4000>()[3].x + array<vec4f, 4000>()[4].x;"), ""},
		{head + "alias A = array<f32, 4>; struct S { a: array<A, 9999> }\nfn f() -> f32 { var s: S; return s.a[1][2]; }\n" + main("x[1] = f();"), "3:24: f has 159984 bytes"},
		{head + "struct S { a: array<f32, 99999> }\nfn unused() -> f32 { var s: S; return s.a[1]; }\n" + main(""), ""},
		{head + "const N = 20000;\nvar<private> p: array<f32, N>;\n" + main("p[1] = 2;"), "3:17: p has 80000 bytes"},
		{head + "var<private> p: array<f32, 9999>; var<private> q: array<f32, 9999>;\n" + main("p[1] = q[2];"), "2:51: q has 79992 bytes"},
		{head + "var<private> p: array<f32, 20000>;\n" + main(""), ""},
		{head + "@group(0) @binding(1) var<storage> big: array<f32, 99999>;\nfn f(p: ptr<storage, array<f32, 99999>>) -> f32 { return p[1]; }\n" + main("let p = &big; x[1] = p[2];"), ""},
		{calls(13), ""},
		{calls(15), "main is too long"},
		{calls(100), "main is too long"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("let p = y[1]; x[1] = p.a[3];"), "4:59: the value has 4000000 bytes, and a lane has room for at most 65536"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("y[0] = y[1];"), "the value has 4000000 bytes"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("x[0] = (y[1]).a[2];"), ""},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("let p = &y[1]; let q = &(*p).a; x[0] = (*q)[2] + q[1] + p.a[4];"), ""},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("let p = &y[1]; let q = p; let v = *q; x[0] = v.a[1];"), "4:85: the value has 4000000 bytes"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\nfn f(p: ptr<storage, array<f32, 1000000>, read_write>) -> f32 { let all = *p; return all[1]; }\n" + main("x[0] = f(&y[1].a);"), "4:75: the value has 4000000 bytes"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("{ let y = 1; _ = y; } var p = y[1].a; x[0] = p[2];"), "the value has 4000000 bytes"},
		{head + "struct Big { a: array<f32, 1000000> }\n@group(0) @binding(1) var<storage, read_write> y: array<Big>;\n" + main("let n = arrayLength(&y); { let y = x[n]; x[0] = y; }"), ""},
		{head + "@group(0) @binding(1) var<storage, read_write> y: array<array<f32, 16385>>;\n" + main("for (var i = 0; i < 3; i++) { _ = y[i]; }"), "the value has 65540 bytes"},
		{head + "@group(0) @binding(1) var<storage, read_write> y: array<array<f32, 16384>>;\n" + main("let p = y[2]; x[0] = p[3];"), ""},
	} {
		err := Source{Text: c.text}.Kernel().Err()
		var mistake *CompileError
		switch {
		case c.want == "":
			if err != nil {
				t.Errorf("%.300s\n\t%v", c.text, err)
			}
		case err == nil || !strings.Contains(err.Error(), c.want):
			t.Errorf("%.300s\n\tgot  %v\n\twant %s", c.text, err, c.want)
		case !errors.As(err, &mistake) || !errors.Is(err, kernel.ErrLimit):
			t.Errorf("%.300s\n\t%T", c.text, err)
		}
	}
}

// TestParams encodes a struct in the layout of WGSL.
func TestParams(t *testing.T) {
	_, l, err := Source{Text: waves, Entry: "step"}.program()
	if err != nil {
		t.Fatal(err)
	}
	type params struct {
		Rows [4][4]float32
		DT   float32
		_    uint64
		Wide [2]uint32 `wgsl:"shape"`
		M    [3][2]float32
	}
	p := params{DT: 2, Wide: [2]uint32{3, 4}}
	next := float32(10)
	for i := range p.M {
		for j := range p.M[i] {
			p.M[i][j] = next
			next++
		}
	}
	for i := range p.Rows {
		for j := range p.Rows[i] {
			p.Rows[i][j] = next
			next++
		}
	}
	for _, v := range []any{p, &p} {
		b, err := l.Params([]byte{99}, v)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) != 129 || b[0] != 99 {
			t.Fatalf("%d bytes", len(b))
		}
		b = b[1:]
		want := make([]byte, 128)
		put := func(at int, v uint32) { binary.LittleEndian.PutUint32(want[at:], v) }
		put(0, math.Float32bits(2))
		put(8, 3)
		put(12, 4)
		for i := range 6 {
			put(16+4*i, math.Float32bits(float32(10+i)))
		}
		for i := range 16 {
			put(48+4*i, math.Float32bits(float32(16+i)))
		}
		if string(b) != string(want) {
			t.Errorf("got  %v\nwant %v", b, want)
		}
	}
	type small struct{ DT float32 }
	type other struct {
		Rows  [4][4]float32
		DT    int32
		Shape [2]uint32
		M     [3][2]float32
	}
	type more struct {
		Rows  [4][4]float32
		DT    float32
		Shape [2]uint32
		M     [3][2]float32
		Extra int
	}
	type flat struct {
		Rows  [16]float32
		DT    float32
		Shape [2]uint32
		M     [3][2]float32
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "the kernel expects parameters for Params, but got <nil>"},
		{(*params)(nil), "the kernel expects parameters for Params"},
		{3, "the struct of parameters is int at offset 0 in Go, and Params at offset 0 in WGSL"},
		{small{}, "has no field for member shape of Params: its fields are DT"},
		{other{}, "DT is int32 at offset 64 in Go, and f32 at offset 0 in WGSL"},
		{more{}, "has a field Extra, for which Params has no member"},
		{flat{}, "Rows is [16]float32 at offset 0 in Go, and array<vec4<f32>, 4> at offset 48 in WGSL"},
	} {
		if _, err := l.Params(nil, c.v); !errors.Is(err, kernel.ErrParams) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: %v, want %s", c.v, err, c.want)
		}
	}
	_, l, err = Source{Text: `@group(0) @binding(0) var<storage, read_write> x: f32; @compute @workgroup_size(1) fn main() { x = 1; }`}.program()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{nil, struct{}{}} {
		if b, err := l.Params(nil, v); err != nil || len(b) != 0 {
			t.Errorf("%T: %v %v", v, b, err)
		}
	}
	if _, err := l.Params(nil, p); !errors.Is(err, kernel.ErrParams) {
		t.Error(err)
	}
}

// FuzzSource parses arbitrary texts. Nothing may panic, and accepted texts must have valid sizes.
func FuzzSource(f *testing.F) {
	f.Add(waves, "step")
	f.Add("struct S { @align(16) @size(32) a: vec3<f32>, b: array<mat4x4f, (1 << 3) + 0x1u> }\n@group(0) @binding(0) var<uniform> s: S;"+
		"@compute @workgroup_size(4, 2u) fn main() { _ = s.a; }", "")
	f.Add("const a = -(-1) * max(3, 4) % 3;\noverride b: bool;\nalias x = array<array<u32, a>, a>;\nvar<workgroup> w: x;\n"+
		"@compute @workgroup_size(a) fn m() { w[0][0] = 1; }", "m")
	f.Fuzz(func(t *testing.T, text, entry string) {
		s := Source{Text: text, Entry: entry, Constants: map[string]float64{}}
		p, l, err := s.program()
		if err != nil {
			_ = err.Error()
			return
		}
		if p.Text == nil || len(p.Bindings) != len(p.Text.Layouts) || p.Local[0] == 0 || p.Local[1] == 0 || p.Local[2] == 0 || p.Text.ParamBytes%16 != 0 ||
			p.Text.ParamBytes > maxParamBytes {
			t.Fatalf("%+v", p)
		}
		for _, c := range []Consumer{Naga, Tint} {
			if sh, err := printProgram(p, Target{Consumer: c, Features: Half | Subgroups}); err == nil && strings.Count(sh.Text, "\n") != strings.Count(text, "\n") {
				t.Fatalf("the lines of %q became %q", text, sh.Text)
			}
		}
		_, _ = l.Params(nil, nil)
		_, _ = l.Params(nil, struct{ A float32 }{})
		// The renumbered text must parse to the same program again.
		again, _, err := Source{Text: p.Text.Source, Entry: p.Text.Entry}.program()
		if err != nil {
			t.Fatalf("%q became %q: %v", text, p.Text.Source, err)
		}
		if again.Local != p.Local || len(again.Bindings) != len(p.Bindings) || again.Text.SharedBytes != p.Text.SharedBytes {
			t.Fatalf("%q became %q", text, p.Text.Source)
		}
	})
}
