package wgsl

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// large are the limits of a large adapter, because the corpus has large arrays.
var large = Limits{Invocations: 1024, Size: [3]uint32{1024, 1024, 64}, WorkgroupBytes: 1 << 20, Bindings: 30}

// targets are the targets for which the tests print the corpus.
var targets = map[string]Target{
	"naga":           {Consumer: Naga, Limits: large},
	"naga_all":       {Consumer: Naga, Limits: large, Features: Half | Subgroups | Dot4},
	"naga_unfused":   {Consumer: Naga, Limits: large, Unfused: true},
	"naga_near":      {Consumer: Naga, Limits: large, Features: Half | Subgroups | Dot4, Approximate: true, Narrows: true},
	"naga_go":        {Consumer: NagaGo, Limits: large, Features: Dot4},
	"tint":           {Consumer: Tint, Limits: large},
	"tint_near":      {Consumer: Tint, Limits: large, Approximate: true},
	"tint_all":       {Consumer: Tint, Limits: large, Features: Half | Subgroups | Dot4},
	"tint_subgroups": {Consumer: Tint, Limits: large, Features: Subgroups, SubgroupSize: [2]uint32{32, 32}},
}

// chosen returns the names of the targets; in short runs, a quarter of them.
func chosen(t *testing.T) []string {
	names := slices.Sorted(maps.Keys(targets))
	if testing.Short() {
		rng := testutil.Rand(t)
		rng.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		names = names[:(len(names)+3)/4]
	}
	return names
}

// compiler returns the name of the compiler that checks texts for a consumer. Naga also checks the
// texts for its translation to Go.
func compiler(c Consumer) string {
	if c == NagaGo {
		return "naga"
	}
	return c.String()
}

// TestCorpus prints every program of the corpus for every target, and compiles the text
// with the target's compiler.
func TestCorpus(t *testing.T) {
	programs := corpus(t)
	seen := make(map[ir.Code]bool)
	for _, p := range programs {
		for _, in := range p.Code {
			seen[in.Code] = true
		}
	}
	for c := ir.Add; c != 0; c++ {
		if !strings.HasPrefix(c.String(), "Code(") && !(c >= ir.Exp2Approx && c <= ir.SqrtInRange) && !seen[c] {
			t.Errorf("no program has %v", c)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		target := targets[name]
		t.Run(name, func(t *testing.T) {
			texts := make(map[string]string)
			for name, p := range programs {
				s, err := printProgram(p, target)
				if half := usesHalf(p) != ""; half && !target.has(Half) {
					if !errors.Is(err, op.ErrUnsupported) {
						t.Errorf("%s: half floats without the feature: %v", name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				texts[name] = s.Text
				if again, _ := printProgram(p, target); again.Text != s.Text {
					t.Errorf("%s is printed in two ways", name)
				}
			}
			if len(texts) < len(programs)/2 {
				t.Fatalf("%d of %d programs were printed", len(texts), len(programs))
			}
			compileText(t, compiler(target.Consumer), texts)
		})
	}
}

var update = flag.Bool("update", false, "write the golden files")

// TestGolden compares texts with files, which people can read.
func TestGolden(t *testing.T) {
	// These programs do not come from package kernel, because changes of that package would change
	// the texts.
	programs := map[string]*ir.Program{"bias_gelu_scale": biasGeluScale(t), "row_sums": rowSums(t)}
	for name, p := range programs {
		for _, target := range []string{"naga", "tint_all"} {
			s, err := printProgram(p, targets[target])
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+"."+target+".wgsl")
			if *update {
				if err := os.WriteFile(file, []byte(s.Text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if s.Text != string(want) {
				t.Errorf("%s has changed (go test ./wgsl -run Golden -update):\n%s", file, s.Text)
			}
		}
	}
}

// TestText checks strings that a text must or must not contain.
func TestText(t *testing.T) {
	text := func(p *ir.Program, target string) string {
		s, err := printProgram(p, targets[target])
		if err != nil {
			t.Fatal(err)
		}
		return s.Text
	}
	programs := corpus(t)
	for _, c := range []struct {
		program, target string
		has, hasNot     []string
	}{
		{"maximum", "naga_all", []string{"subgroupMax(", "@builtin(subgroup_size)"}, []string{"enable"}},
		{"maximum", "tint_all", []string{"enable subgroups;\n", "subgroupMax("}, nil},
		{"maximum", "tint", []string{"128u"}, []string{"ubgroup"}},
		{"maximum", "tint_subgroups", []string{"lane / 32u", "128u / 32u"}, []string{"subgroup_size"}},
		{"half_memory", "naga_all", []string{"enable f16;\n", "1.5h"}, nil},
		{"matmul", "tint_all", nil, []string{"enable", "let v0", "array<f32, 16>"}},
		{"dot4_i8_u32", "naga", []string{"dot4_i8("}, []string{"dot4I8Packed"}},
		{"dot4_i8_u32", "naga_all", []string{"dot4I8Packed("}, []string{"dot4_i8("}},
		{"leading_zeros_u32", "naga", []string{"countLeadingZeros("}, nil},
		{"leading_zeros_u32", "naga_go", []string{"leading_zeros("}, []string{"countLeadingZeros"}},
		{"pack_half_f32", "tint", []string{"pack2x16float("}, []string{"pack_half("}},
		{"pack_half_f32", "naga", []string{"pack_half("}, nil},
		{"min_f32", "naga", []string{"min_nan(", "min_nan_4("}, nil},
		{"min_i32", "naga", []string{"min("}, []string{"min_nan("}},
		{"convert_f32", "naga", []string{"to_i32(", "to_u32("}, nil},
		{"constants", "tint", []string{"from_bits(0x7fc00000u)", "from_bits(0x80000000u)", "i32(-2147483648)", "0.1f", "-1.0f", "from_bits(0x7f7fffffu)"}, nil},
		{"fma_f32", "naga_unfused", []string{"fma_split(", "fma_split_4("}, []string{"fma("}},
		{"fma_f32", "naga", []string{"fma("}, []string{"fma_split"}},
		{"matmul", "naga_unfused", []string{"fma("}, []string{"fma_split"}}, // which is loose
		{"nesting", "naga", []string{"is_nan("}, nil},
		{"loops", "naga", []string{
			"for (var i = 0u; i < 10u; i++) {",
			"for (var i = 0u; i < 10u; i += 3u) {",
			"for (var i = 0u; i < 4294967295u; i += min(3u, 4294967295u - i)) {",
			"for (var i = 1u; i < params.n; i += min(64u, params.n - i)) {",
			"i += i32(min(u32(7i), u32(params.m - i))))",
			"i = select(params.m, i + -1i, (i + -1i < i) == (-1i < 0i)))",
			"== 1000u { break; }"}, nil},
	} {
		p := programs[c.program]
		if p == nil {
			t.Errorf("no program %s", c.program)
			continue
		}
		s := text(p, c.target)
		for _, want := range c.has {
			if !strings.Contains(s, want) {
				t.Errorf("%s for %s lacks %q:\n%s", c.program, c.target, want, s)
			}
		}
		for _, not := range c.hasNot {
			if strings.Contains(s, not) {
				t.Errorf("%s for %s has %q:\n%s", c.program, c.target, not, s)
			}
		}
	}
}

// TestOrder checks that loads and stores of the same memory keep their order.
func TestOrder(t *testing.T) {
	a := assemble("order")
	x := a.buffer("x", ir.U32, 1, ir.ReadWrite)
	tile := a.array("tile", ir.U32, 1, 64, false)
	v := a.variable("sum", ir.U32, 1)
	i := a.builtIn(ir.BuiltInLane)
	a.set(v, a.u32(7))
	old, loaded := a.get(v), a.load(x, i)
	a.set(v, loaded)            // the load is printed here, the variable before
	a.storeShared(tile, i, old) //
	shared := a.loadShared(tile, i)
	a.barrier() // and this before the barrier
	a.store(x, i, shared)
	again := a.load(x, i)
	a.store(x, a.u32(0), again) // an operand of the store itself
	if err := ir.Verify(&a.Program); err != nil {
		t.Fatal(err)
	}
	s, err := printProgram(&a.Program, Target{})
	if err != nil {
		t.Fatal(err)
	}
	body := s.Text[strings.Index(s.Text, ") {\n")+4:]
	want := fmt.Sprintf(`  var sum = 7u;
  let v%d = sum;
  sum = x[lane];
  tile[lane] = v%d;
  let v%d = tile[lane];
  storageBarrier();
  workgroupBarrier();
  x[lane] = v%d;
  x[0u] = x[lane];
}
`, old, old, shared, shared)
	if body != want {
		t.Errorf("got\n%swant\n%s", body, want)
	}
}

// TestInstruction checks that each line belongs to the instruction that it prints.
func TestInstruction(t *testing.T) {
	p, err := histogram.Program()
	if err != nil {
		t.Fatal(err)
	}
	s, err := Kernel(histogram, Target{})
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]ir.Code{"atomicStore(": ir.AtomicOpShared, "workgroupBarrier(": ir.Barrier, "if ": ir.If, "atomicAdd(&bins": ir.AtomicOp}
	found := 0
	for i, l := range strings.Split(s.Text, "\n") {
		for prefix, c := range codes {
			if !strings.HasPrefix(strings.TrimSpace(l), prefix) {
				continue
			}
			found++
			v := s.instruction(i + 1)
			if p.Code[v].Code != c {
				t.Errorf("line %d, %s, belongs to %v", i+1, l, p.Code[v].Code)
			}
			if file, line := s.Position(i + 1); filepath.Base(file) != "corpus_test.go" || line == 0 {
				t.Errorf("line %d comes from %s:%d", i+1, file, line)
			}
		}
	}
	if found != 5 {
		t.Errorf("%d lines found", found)
	}
	for _, n := range []int{-1, 0, 1, 1 << 20} {
		if v := s.instruction(n); v != 0 {
			t.Errorf("line %d belongs to %d", n, v)
		}
		if file, _ := s.Position(n); file != "" {
			t.Errorf("line %d comes from %s", n, file)
		}
	}
}

// TestErrors checks that programs that no device can run are rejected.
func TestErrors(t *testing.T) {
	good := func() *assembler {
		a := assemble("p")
		x := a.buffer("x", ir.F32, 1, ir.ReadWrite)
		i := a.builtIn(ir.BuiltInLane)
		a.store(x, i, a.add(a.load(x, i), a.f32(1)))
		return a
	}
	if _, err := printProgram(&good().Program, Target{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		edit   func(a *assembler)
		target Target
		want   error
	}{
		"operand after use":  {func(a *assembler) { a.Code[4].Args[0] = 9 }, Target{}, ir.ErrProgram},
		"unknown code":       {func(a *assembler) { a.Code[3].Code = 255 }, Target{}, ir.ErrProgram},
		"wrong type":         {func(a *assembler) { a.Code[4].Type = ir.I32 }, Target{}, ir.ErrProgram},
		"no such buffer":     {func(a *assembler) { a.Code[2].Imm = 3 }, Target{}, ir.ErrProgram},
		"open block":         {func(a *assembler) { a.do(ir.Loop, 1000) }, Target{}, ir.ErrProgram},
		"no lanes":           {func(a *assembler) { a.Local[1] = 0 }, Target{}, ir.ErrProgram},
		"shared index":       {func(a *assembler) { a.loadShared(a.array("t", ir.F32, 1, 4, false), a.u32(4)) }, Target{}, ir.ErrProgram},
		"endless":            {func(a *assembler) { a.loop(ir.Bounded); a.end() }, Target{}, ir.ErrProgram},
		"lanes":              {func(a *assembler) { a.Local = [3]uint32{32, 32, 1} }, Target{}, op.ErrUnsupported},
		"lanes along z":      {func(a *assembler) { a.Local = [3]uint32{1, 1, 65} }, Target{}, op.ErrUnsupported},
		"workgroup memory":   {func(a *assembler) { a.array("t", ir.F32, 4, 1025, false) }, Target{}, op.ErrUnsupported},
		"half floats":        {func(a *assembler) { a.variable("h", ir.F16, 1) }, Target{}, op.ErrUnsupported},
		"half floats for go": {func(a *assembler) {}, Target{Consumer: NagaGo, Features: Half}, op.ErrUnsupported},
		"consumer":           {func(a *assembler) {}, Target{Consumer: 9}, op.ErrUnsupported},
		"buffers": {func(a *assembler) {
			for i := range 8 {
				a.buffer(fmt.Sprint("b", i), ir.F32, 1, ir.ReadOnly)
			}
		}, Target{}, op.ErrUnsupported},
		"nesting": {func(a *assembler) {
			for range 70 {
				a.iff(a.lt(a.f32(1), a.f32(2)))
			}
			for range 70 {
				a.end()
			}
		}, Target{}, op.ErrUnsupported},
	} {
		a := good()
		c.edit(a)
		if s, err := printProgram(&a.Program, c.target); !errors.Is(err, c.want) || s.Text != "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := printProgram(nil, Target{}); !errors.Is(err, ir.ErrProgram) {
		t.Errorf("nil: %v", err)
	}
}

// TestShader checks the description of a shader for a host.
func TestShader(t *testing.T) {
	s, err := Kernel(matmul, Target{})
	if err != nil {
		t.Fatal(err)
	}
	if s.Entry != "matmul" || !slices.Equal(s.Bindings, []Access{Read, Read, ReadWrite}) || s.Params != 3 || s.ParamBytes != 16 ||
		s.Local != [3]uint32{16, 16, 1} || s.SharedBytes != 2*64*16*4 || s.Needs != 0 {
		t.Errorf("%+v", s)
	}
	s, err = Kernel(maximum, targets["tint_all"])
	if err != nil {
		t.Fatal(err)
	}
	if s.Needs != Subgroups {
		t.Errorf("needs %b", s.Needs)
	}
	a := assemble("aligned")
	a.array("a", ir.F32, 1, 1, false)
	a.array("b", ir.F32, 4, 2, false)
	a.array("c", ir.F16, 1, 3, false)
	a.array("d", ir.U32, 2, 1, false)
	if n := sharedBytes(&a.Program); n != 16+32+8+8 {
		t.Errorf("%d bytes of workgroup memory", n)
	}
}

// TestLiterals parses printed literals.
func TestLiterals(t *testing.T) {
	w := &printer{}
	for _, v := range []float32{1, -1, 0.1, 1.0 / 3, 1e10, 1 << 24, 1<<24 - 1, 0x1.fffffcp127, 0x1p-126, 123456.789, -0x1p-100} {
		w.text.reset()
		w.literal(&ir.Instr{Code: ir.Const, Type: ir.F32, Width: 1, Imm: math.Float32bits(v)})
		text, isFloat := strings.CutSuffix(string(w.buf[:w.n]), "f")
		var got float32
		if n, err := fmt.Sscan(text, &got); n != 1 || err != nil || got != v || !isFloat {
			t.Errorf("%v is written %s", v, w.buf[:w.n])
		}
	}
}

func BenchmarkPrint(b *testing.B) {
	for name, p := range built(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.ReportMetric(float64(len(p.Code)), "instructions")
			for range b.N {
				if _, err := printProgram(p, Target{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkKernel prints without the checks that programs of package kernel do not need.
func BenchmarkKernel(b *testing.B) {
	for range b.N {
		if _, err := Kernel(matmul, Target{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkBuildAndPrint measures the time of a kernel that is not cached.
func BenchmarkBuildAndPrint(b *testing.B) {
	b.ReportAllocs()
	for range b.N {
		if _, err := Kernel(kernel.New("matmul", buildMatmul), Target{}); err != nil {
			b.Fatal(err)
		}
	}
}
