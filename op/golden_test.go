package op

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// number is a float64 in JSON, where NaN, infinities and -0 are strings.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"NaN"`:
		*n = number(math.NaN())
	case `"Inf"`:
		*n = number(math.Inf(1))
	case `"-Inf"`:
		*n = number(math.Inf(-1))
	case `"-0"`:
		*n = number(math.Copysign(0, -1))
	default:
		return json.Unmarshal(b, (*float64)(n))
	}
	return nil
}

func readGolden(t *testing.T, name string, v any) {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(err)
	}
}

// close64 reports whether two float64 computations of one value agree.
func close64(got, want, scale float64) bool {
	return got == want || got != got && want != want ||
		math.Abs(got-want) <= 1e-13*(math.Abs(want)+scale)
}

// goldenNames maps names in elementwise.json to the names of this package where they differ.
var goldenNames = map[string]string{
	"hardswish": "hard_swish", "min": "minimum", "max": "maximum", "eq": "equal", "ne": "not_equal",
	"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal",
}

func goldenOperation(t *testing.T, name string) *Operation {
	t.Helper()
	if n, ok := goldenNames[name]; ok {
		name = n
	}
	o := Lookup(name)
	if o == nil {
		t.Fatalf("no operation %s", name)
	}
	return o
}

// TestElementwiseReferencesAreTheFunctions compares the expressions, computed in float64, with
// values of other implementations. The bound is a few float32 units, because constants in expressions
// are float32 and functions may cancel near their zeros. Each operation's own tolerance is wider.
func TestElementwiseReferencesAreTheFunctions(t *testing.T) {
	var g struct {
		Inputs []number
		Pairs  [][2]number
		Unary  []struct {
			Op     string
			Params map[string]number
			Y      []number
			Limit  []int
		}
		Binary []struct {
			Op string
			Y  []number
		}
		Others []struct {
			Op       string
			From, To string
			Types    []string
			Params   []number
			In       [][]number
			Y        []number
		}
	}
	readGolden(t, "elementwise.json", &g)
	values := map[*Operation]int{}
	ask := func(o *Operation, a Attrs, types []DType, in []float64, want float64, limit bool) {
		t.Helper()
		operands := make([]*Array, len(in))
		for i, v := range in {
			operands[i] = &Array{Shape: Shape{1}, Data: []float64{v}}
		}
		values[o]++
		y, err := o.Reference(&a, operands, types)
		if err != nil {
			t.Fatalf("%s: %v", o, err)
		}
		got := y[0].Data[0]
		if limit && got != got {
			return // the special values of the operation state this NaN
		}
		tol, mag := o.Tolerance(), 0.0
		if y[0].Mag != nil {
			mag = y[0].Mag[0] / epsilon // a term of a sum has a rounding error in float64 too
		}
		if err := (Tolerance{ULP: max(tol.ULP, 1), Abs: tol.Abs, Mag: 1e-15}).Check(got, want, mag, F32); err != nil && !(math.IsInf(want, 0) && math.Abs(got) >= overflow) {
			t.Errorf("%s(%v): %v", o, in, err)
		}
	}
	check := func(o *Operation, in []float64, want float64, limit bool) {
		t.Helper()
		ask(o, o.Defaults(), []DType{F32, F32}[:len(in)], in, want, limit)
	}
	for _, c := range g.Unary {
		o := goldenOperation(t, c.Op)
		limit := map[int]bool{}
		for _, i := range c.Limit {
			limit[i] = true
		}
		for i, x := range g.Inputs {
			check(o, []float64{float64(x)}, float64(c.Y[i]), limit[i])
		}
	}
	for _, c := range g.Binary {
		o := goldenOperation(t, c.Op)
		for i, p := range g.Pairs {
			if c.Op == "pow" && math.IsInf(float64(p[0]), -1) && p[1] == 0.5 {
				continue // C99 defines +Inf; NumPy computes the square root
			}
			check(o, []float64{float64(p[0]), float64(p[1])}, float64(c.Y[i]), false)
		}
	}
	types := map[string]DType{}
	for _, d := range DTypes() {
		types[d.String()] = d
	}
	for _, c := range g.Others {
		o := goldenOperation(t, c.Op)
		var a Attrs
		for i, v := range c.Params {
			a.F[i] = math.Float32bits(float32(v))
		}
		operands := []DType{F32, F32, F32}[:len(o.Inputs())]
		for i, n := range c.Types {
			operands[i] = types[n]
		}
		switch o {
		case Cast:
			operands, a = []DType{types[c.From]}, CastTo(types[c.To])
		case Where:
			operands[0] = Bool
		}
		for i, row := range c.In {
			in := make([]float64, len(row))
			for j, v := range row {
				in[j] = float64(v)
			}
			ask(o, a, operands, in, float64(c.Y[i]), false)
		}
	}
	for _, o := range Catalogue() {
		if o.Class() == Elementwise && values[o] < 20 {
			t.Errorf("%d golden values of %s: see testdata/gen_golden.py", values[o], o)
		}
	}
}

type goldenArray struct {
	Shape Shape
	Data  []number
}

func (g *goldenArray) array() *Array {
	if g == nil {
		return nil
	}
	a := &Array{Shape: g.Shape, Data: make([]float64, len(g.Data))}
	for i, v := range g.Data {
		a.Data[i] = float64(v)
	}
	return a
}

func TestReferencesAgreeWithOthers(t *testing.T) {
	var g struct {
		Cases []struct {
			Op      string
			F       []float32
			I       []int
			In, Out []*goldenArray
		}
	}
	readGolden(t, "shaped.json", &g)
	seen := map[string]bool{}
	for n, c := range g.Cases {
		o := Lookup(c.Op)
		if o == nil {
			t.Fatalf("no operation %s", c.Op)
		}
		seen[c.Op] = true
		a := Floats(c.F...)
		copy(a.I[:], c.I)
		name := fmt.Sprintf("case %d, %s f=%v i=%v", n, c.Op, c.F, c.I)
		in := make([]*Array, len(c.In))
		types := make([]DType, len(c.In))
		for i, x := range c.In {
			if in[i] = x.array(); in[i] != nil {
				types[i] = F32
				switch {
				case o.Inputs()[i] == "ids" || o.Inputs()[i] == "at" || o.Inputs()[i] == "lengths" || o.Inputs()[i] == "positions":
					types[i] = I32
				case o == Iota:
					types[i] = U32
				case o == MatMulQ && i == 1:
					types[i] = Q8_0
				}
			}
		}
		out, err := o.Reference(&a, in, types)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(out) != len(c.Out) {
			t.Errorf("%s: %d results, want %d", name, len(out), len(c.Out))
			continue
		}
		for r, want := range c.Out {
			if !out[r].Shape.Equal(want.Shape) {
				t.Errorf("%s: shape %v, want %v", name, out[r].Shape, want.Shape)
				continue
			}
			for i, w := range want.Data {
				scale := 0.0
				if out[r].Mag != nil && out[r].Mag[i] < math.Inf(1) {
					scale = out[r].Mag[i]
				}
				if !close64(out[r].Data[i], float64(w), scale) {
					t.Errorf("%s: result %d[%d] = %v, want %v", name, r, i, out[r].Data[i], w)
				}
			}
		}
	}
	for _, o := range Catalogue() {
		if o.Class() != Elementwise && !o.CheckedAsWhole() && !seen[o.Name()] {
			t.Errorf("no golden values of %s", o)
		}
	}
}

// TestCatalogueIsComplete checks that every entry has the texts that docs/OPS.md prints.
func TestCatalogueIsComplete(t *testing.T) {
	names := map[string]*Operation{}
	ids := map[int]*Operation{}
	class := Elementwise
	for _, o := range Catalogue() {
		if other := ids[o.ID()]; other != nil || o.ID() < 0 || o.ID() >= MaxID {
			t.Errorf("%s has the number %d, which must be its own and below %d; %v has it too", o, o.ID(), MaxID, other)
		}
		ids[o.ID()] = o
		if o.Class() < class {
			t.Errorf("%s, of class %v, is listed after operations of class %v", o, o.Class(), class)
		}
		class = o.Class()
		for _, n := range append([]string{o.Name()}, o.Aliases()...) {
			if names[n] != nil {
				t.Errorf("%s and %s are both called %s", o, names[n], n)
			}
			names[n] = o
			if Lookup(n) != o {
				t.Errorf("Lookup(%q) = %v", n, Lookup(n))
			}
		}
		fewest, most := o.Arity()
		if most != len(o.Inputs()) || fewest > most || fewest < 1 || most > MaxInputs {
			t.Errorf("%s takes %d to %d operands called %v", o, fewest, most, o.Inputs())
		}
		for what, text := range map[string]string{"doc": o.Doc(), "formula": o.Formula(), "special values": o.Special(), "shapes": o.ShapeDoc()} {
			if text == "" || strings.Contains(text, "…") {
				t.Errorf("%s: %s: %q", o, what, text)
			}
		}
		if o.Class() != Elementwise && o.def().ref == nil && !o.View() {
			t.Errorf("%s has no reference", o)
		}
		if tol := o.Tolerance(); tol.ULP < 0 || tol.Mag < 0 || tol.Abs < 0 || tol.Abs > 1e-30 {
			t.Errorf("%s: tolerance %+v", o, tol)
		}
	}
	for _, n := range []string{"relu", "where", "softmax", "attention", "rope", "topk", "select", "swish"} {
		if names[n] == nil {
			t.Errorf("there is no %s", n)
		}
	}
}

// TestCatalogueListsAllDefinitions compares the catalogue with the variables of the package that define
// operations.
func TestCatalogueListsAllDefinitions(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	defined := 0
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		defined += len(regexp.MustCompile(`(?m)^(var|\t) ?def\w+ += Operation\{define: `).FindAll(text, -1))
	}
	if n := len(Catalogue()); n != defined || n == 0 {
		t.Errorf("the catalogue lists %d operations of %d that are defined", n, defined)
	}
}
