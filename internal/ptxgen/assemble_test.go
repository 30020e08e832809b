package ptxgen

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// module lowers programs to one module, in the order of their names. It returns the text of the
// module and, for each kernel, the name of its program.
func module(t testing.TB, target ptx.Target, programs map[string]*ir.Program, o Options) (text []byte, names []string) {
	t.Helper()
	m := ptx.NewModule(target)
	names = slices.Sorted(maps.Keys(programs))
	for i, name := range names {
		if _, err := Lower(m, fmt.Sprint("k", i), programs[name], o); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Fatal(err)
	}
	return text, names
}

// stacked is the number of bytes that kernels of an operation may spill to the stack. ptxas spills
// a register or two in the kernels with the longest expressions.
var stacked = map[string]int{"pow": 8, "floor_divide": 8}

// assemble requires that ptxas accepts the text. If names are given, it also requires that no
// kernel spills registers.
func assemble(t *testing.T, target ptx.Target, text []byte, names []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "module.ptx")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-v", "-arch="+target.String(), "-o", os.DevNull, file).CombinedOutput()
	if err != nil {
		lines := bytes.Split(text, []byte("\n"))
		for _, m := range regexp.MustCompile(`line (\d+); (.*)`).FindAllSubmatch(out, 10) {
			n := 0
			fmt.Sscan(string(m[1]), &n)
			t.Errorf("%s\n%s", m[0], lines[n-1])
		}
		t.Fatalf("ptxas: %v", err)
	}
	for _, m := range regexp.MustCompile(`Function properties for k(\d+)\n.*? (\d+) bytes stack frame, (\d+) bytes spill`).FindAllSubmatch(out, -1) {
		if names == nil {
			continue
		}
		n, stack := 0, 0
		fmt.Sscan(string(m[1]), &n)
		fmt.Sscan(string(m[2]), &stack)
		name, _, _ := strings.Cut(names[n], " ")
		if stack > stacked[name] {
			t.Errorf("%s: %d bytes on the stack, %s spilled", names[n], stack, m[3])
		}
	}
}

var targets = []ptx.Target{ptx.SM70, ptx.SM75, ptx.SM80, ptx.SM90a}

func TestAssembleCodes(t *testing.T) {
	testutil.Need(t, "ptxas")
	programs := everyCode()
	maps.Copy(programs, built(t))
	t.Logf("%d programs", len(programs))
	for _, target := range targets {
		if testing.Short() && target != ptx.SM90a {
			continue
		}
		for _, o := range []Options{{}, {Checked: true, Scalar: true}} {
			t.Run(fmt.Sprintf("%v/%+v", target, o), func(t *testing.T) {
				text, _ := module(t, target, programs, o)
				assemble(t, target, text, nil)
			})
		}
	}
}

// TestAssembleSmallElements assembles programs whose arrays of words have elements of one or two bytes in memory.
func TestAssembleSmallElements(t *testing.T) {
	testutil.Need(t, "ptxas")
	for size := 1; size <= 2; size++ {
		text, _ := module(t, ptx.SM80, everyCode(), Options{ElementBytes: size})
		for _, access := range []string{"ld", "st"} {
			if want := fmt.Sprintf(`\b%s\.global[.a-z]*\.u%d `, access, 8*size); !regexp.MustCompile(want).Match(text) {
				t.Errorf("no program has the instruction %s", want)
			}
		}
		assemble(t, ptx.SM80, text, nil)
	}
}

// library returns the kernels of the portable library for some shapes, in each variant.
func library(t testing.TB) map[string]*ir.Program {
	t.Helper()
	shapes := [][]op.Shape{
		{{5, 33}}, {{5, 64}}, {{3, 5000}}, {{70000}}, {{1}}, {{2, 3, 4, 8}},
		{{5, 33}, {5, 33}}, {{5, 33}, {33}}, {{5, 64}, {64}}, {{5, 33}, {33}, {33}},
		{{17, 19}, {19, 23}}, {{64, 128}, {128, 192}}, {{1, 128}, {128, 64}}, {{3, 17, 19}, {3, 19, 23}}, {{17, 19}, {19, 23}, {23}},
		{{64, 128}, {128, 192}, {192}}, {{19, 23}, {23}}, {{128, 64}, {64}}, {{10, 8}, {5}},
		{{1, 3, 9, 9}, {4, 3, 3, 3}}, {{1, 3, 9, 9}, {4, 3, 3, 3}, {4}}, {{6, 2, 8}}, {{2, 6, 8}, {2, 6, 8}, {2, 6, 8}},
		{{1, 2, 6, 8}, {1, 2, 6, 8}, {1, 2, 6, 8}}, {{6, 2, 8}, {6, 2, 8}, {6, 2, 8}}, {{33}, {33}, {33}}, {{33}, {33}},
		{{4, 256}, {512, 256}}, {{1, 256}, {512, 256}}, {{512, 256}, {7}},
		{{3, 5003}, {5003}, {5003}}, {{3, 40003}, {40003}, {40003}},
		{{5, 33}, {1}}, {{5, 64}, {1}}, {{5, 33}, {1}, {2, 33}}, {{5, 64}, {1}, {2, 64}},
		{{1, 2, 6, 8}, {1, 2, 6, 8}, {1, 2, 6, 8}, {1}}, {{6, 2, 8}, {6, 2, 8}, {6, 2, 8}, {1}},
		{{3, 16, 16}}, {{70, 70}}, {{3, 16, 16}, {3, 16, 4}}, {{70, 70}, {70, 5}},
	}
	types := []op.DType{op.F32, op.F16, op.I32, op.U32, op.Bool}
	for d := op.DType(0); d < 64; d++ {
		if d.Quantized() {
			types = append(types, d)
		}
	}
	programs, seen, asked := make(map[string]*ir.Program), make(map[string]bool), make(map[string]bool)
	for _, o := range op.Catalogue() {
		for _, in := range shapes {
			for _, d := range types {
				for role := range 4 {
					request(asked, o, in, d, role, func(name string, p *ir.Program) {
						if text := p.Listing(); !seen[text] {
							seen[text] = true
							programs[name] = p
						}
					})
				}
			}
		}
	}
	return programs
}

// request calls each for the programs that compute o on operands of type d. role selects operands
// of another type: the last operands are indices, the first or the second has quantised blocks, or
// the first has conditions. It skips types for which it has been called before.
func request(asked map[string]bool, o *op.Operation, in []op.Shape, d op.DType, role int, each func(name string, p *ir.Program)) {
	attrs := o.Defaults()
	switch o {
	case op.TopK:
		attrs = op.TopKOpts{K: 3}.Attrs()
	case op.SliceAt:
		attrs = op.SliceAtOf(0, 2)
	case op.Iota:
		attrs = op.IotaOf(70000)
	}
	least, most := o.Arity()
	if len(in) < least || len(in) > most {
		return
	}
	types := make([]op.DType, len(in))
	for i := range types {
		types[i] = d
		if d.Quantized() {
			types[i] = op.F32
		}
	}
	switch {
	case role == 1:
		types[len(types)-1] = op.I32
	case role == 2:
		types[0] = d
		if len(types) > 1 && d.Quantized() {
			types[0], types[1] = op.F32, d
		}
	}
	if role == 1 && o == op.Update {
		types[1], types[len(types)-1] = op.I32, d
	}
	if role == 3 {
		types[0] = op.Bool
	}
	if role == 1 && d.Quantized() {
		types[0] = d
	}
	outTypes, err := o.Types(&attrs, types)
	if err != nil {
		return
	}
	key := fmt.Sprint(o, in, types)
	if asked[key] {
		return
	}
	asked[key] = true
	outShapes, err := o.Shapes(&attrs, in)
	if err != nil || len(outShapes) > len(outTypes) {
		return
	}
	for _, variant := range append([]string{""}, portable.Variants(o)...) {
		for _, subgroups := range []bool{false, true} {
			r := &portable.Request{Op: o, Attrs: attrs, Variant: variant, Target: portable.Target{Lanes: 1024, Shared: 48 << 10, Buffers: 64, Subgroups: subgroups, F16: true, MapLanes: 256, MapBranches: true}}
			for i := range in {
				r.In = append(r.In, portable.Array{Type: types[i], Shape: in[i]})
			}
			for i := range outShapes {
				r.Out = append(r.Out, portable.Array{Type: outTypes[i], Shape: outShapes[i]})
			}
			p, err := portable.For(r)
			if err != nil {
				continue
			}
			for i := range p.Stages {
				if prog, err := p.Stages[i].Kernel.Program(); err == nil {
					each(fmt.Sprintf("%v %v %v %s %v stage %d", o, in, types, p.Variant, subgroups, i), prog)
				}
			}
		}
	}
}

// update makes TestAssembleLibrary rewrite the file with the accepted kernels.
var update = flag.Bool("update", false, "write testdata/assembled.txt anew")

// assembled is the file with the kernels that ptxas has accepted without spilled registers. Its
// first line is the version of ptxas, and each other line the target and the hash of the text of a
// kernel. The same version accepts the same text again.
const assembled = "testdata/assembled.txt"

const assembledHeader = "# Kernels that ptxas takes, with no registers in memory, by target and hash of their text.\n" +
	"# Made by go test ./internal/ptxgen -run AssembleLibrary -update\n"

// taken reads the file. The result is empty if the file is from another version of ptxas.
func taken(t testing.TB, assembler string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(assembled)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	kernels := make(map[string]bool)
	if body, ok := strings.CutPrefix(string(text), assembledHeader+assembler+"\n"); ok {
		for line := range strings.Lines(body) {
			kernels[strings.TrimSuffix(line, "\n")] = true
		}
	}
	return kernels
}

// TestAssembleLibrary assembles kernels of the portable library, in all variants, and requires that
// ptxas spills no registers. It assembles all kernels with new texts, and a random sample of the
// accepted ones.
func TestAssembleLibrary(t *testing.T) {
	testutil.Need(t, "ptxas") // check this first, because it takes long to generate the texts
	version, err := exec.Command("ptxas", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(version)), "\n")
	assembler := lines[len(lines)-1]
	programs := library(t)
	ops := make(map[string]bool)
	for name := range programs {
		ops[strings.Fields(name)[0]] = true
	}
	t.Logf("%d programs of %d operations", len(programs), len(ops))
	for _, o := range op.Catalogue() {
		if portable.Has(o) && !ops[o.Name()] && o != op.Cast && o != op.Concat { // Cast is only fused; Concat uses the kernels of update
			t.Errorf("no program of %v: add a shape", o)
		}
	}
	before := taken(t, assembler)
	sample := 16 // one in sample accepted kernels is assembled again
	if testing.Short() {
		sample = 64
	}
	var now []string
	for _, target := range []ptx.Target{ptx.SM70, ptx.SM90a} {
		t.Run(target.String(), func(t *testing.T) {
			chosen, anew := make(map[string]*ir.Program), 0
			for name, p := range programs {
				text, _ := module(t, target, map[string]*ir.Program{"": p}, Options{})
				hash := sha256.Sum256(text)
				line := fmt.Sprintf("%v %x", target, hash[:6])
				now = append(now, line)
				if !before[line] {
					anew++
				} else if rand.IntN(sample) > 0 {
					continue
				}
				chosen[name] = p
			}
			t.Logf("%d programs, of which %d are not in %s", len(chosen), anew, assembled)
			text, names := module(t, target, chosen, Options{})
			assemble(t, target, text, names)
		})
	}
	if *update && !t.Failed() {
		slices.Sort(now)
		if err := os.WriteFile(assembled, []byte(assembledHeader+assembler+"\n"+strings.Join(slices.Compact(now), "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSameText requires that the same programs give the same text.
func TestSameText(t *testing.T) {
	programs := everyCode()
	first, _ := module(t, ptx.SM80, programs, Options{Checked: true})
	second, _ := module(t, ptx.SM80, programs, Options{Checked: true})
	if !bytes.Equal(first, second) {
		t.Error("two texts of the same programs differ")
	}
}

func TestErrors(t *testing.T) {
	good := func() *source {
		s := newSource("p")
		s.keep(s.op(ir.Add, ir.U32, 1, s.lane, s.u32(3)))
		return s
	}
	for name, c := range map[string]struct {
		edit func(s *source)
		want error
	}{
		"not well formed": {func(s *source) { s.Code[2].Code = 255 }, ir.ErrProgram},
		"lanes":           {func(s *source) { s.Local = [3]uint32{2048, 1, 1} }, op.ErrUnsupported},
		"lanes along z":   {func(s *source) { s.Local = [3]uint32{1, 1, 65} }, op.ErrUnsupported},
		"shared memory":   {func(s *source) { s.Shared = []ir.Array{{Name: "t", Type: ir.F32, Width: 4, Len: 1 << 16}} }, op.ErrUnsupported},
		"buffers": {func(s *source) {
			for i := range 300 {
				s.buffer(fmt.Sprint("b", i), ir.F32, ir.ReadOnly)
			}
		}, op.ErrUnsupported},
		"nesting": {func(s *source) {
			c := s.op(ir.Lt, ir.Bool, 1, s.lane, s.u32(1))
			var at []ir.Value
			for range 300 {
				at = append(at, s.push(ir.Instr{Code: ir.If, Args: [3]ir.Value{c}}))
			}
			for i := len(at) - 1; i >= 0; i-- {
				s.Code[at[i]].Imm = uint32(s.push(ir.Instr{Code: ir.End, Imm: uint32(at[i])}))
			}
		}, op.ErrUnsupported},
	} {
		s := good()
		c.edit(s)
		if _, err := Lower(ptx.NewModule(ptx.SM80), "k", &s.Program, Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Lower(ptx.NewModule(ptx.SM80), "k", &good().Program, Options{}); err != nil {
		t.Error(err)
	}
	if _, err := Lower(ptx.NewModule(ptx.SM80), "not a name", &good().Program, Options{}); err == nil {
		t.Error("Lower accepts a name that is invalid in PTX")
	}
	if _, err := Lower(ptx.NewModule(ptx.SM80), "k", nil, Options{}); !errors.Is(err, ir.ErrProgram) {
		t.Error(err)
	}
}
