package wgsl

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// TestCarry checks chains of Max and Min: a single test at the end of a chain finds a NaN among the
// operands that may be NaN.
func TestCarry(t *testing.T) {
	of := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	k := func(v float64) *ir.Node { return ir.NewConst(v, ir.F32) }
	x, y := ir.NewArg(0, ir.F32), ir.NewArg(1, ir.F32)
	sum := of(ir.Add, x, y)
	both := of(ir.Max, of(ir.Sub, of(ir.Min, x, y), y), of(ir.Neg, x))
	for _, v := range []struct {
		name        string
		root        *ir.Node
		kept, sizes int      // expected calls of keep_nan at the ends of chains, and the operands that these calls check
		strict      []string // functions that handle NaN themselves
	}{
		{"one", of(ir.Max, x, y), 0, 0, []string{"max_nan"}},
		{"clip", of(ir.Min, of(ir.Max, x, k(-1)), k(1)), 0, 0, []string{"clip"}},
		{"two", both, 1, 3, nil},
		{"sound", of(ir.Max, of(ir.Mul, of(ir.Exp, of(ir.Min, sum, k(1))), k(0.5)), k(0.25)), 0, 0, []string{"min_with", "max_with"}},
		{"sound and not", of(ir.Max, of(ir.Mul, of(ir.Min, sum, k(1)), k(0.5)), y), 1, 2, nil},
		{"no number times 0", of(ir.Max, of(ir.Mul, of(ir.Min, sum, k(1)), k(0)), y), 1, 3, nil},
		{"chosen", of(ir.Select, of(ir.Lt, x, y), both, x), 1, 3, nil},
		{"two ends", of(ir.Select, of(ir.Lt, x, y), both, of(ir.Max, of(ir.Mul, of(ir.Min, sum, y), y), x)), 2, 7, nil},
		{"seen within", of(ir.Select, of(ir.Lt, of(ir.Min, x, y), y), of(ir.Max, of(ir.Min, x, y), k(1)), x), 0, 0, []string{"min_nan", "max_with"}},
		{"lost in a power", of(ir.Max, of(ir.Pow, of(ir.Max, sum, y), x), k(1)), 0, 0, []string{"max_nan", "max_with"}},
	} {
		for _, width := range []uint8{1, 4} {
			list, _ := ir.Flatten(v.root)
			p, _ := listing(list, width)
			p.Bindings = []ir.Binding{{Name: "out", Type: ir.F32, Width: width, Access: ir.WriteOnly}}
			last := ir.Value(len(p.Code) - 1)
			p.Code = append(p.Code, ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}, ir.Instr{Code: ir.Store, Args: [3]ir.Value{last + 1, last}})
			s, err := printProgram(p, Target{Limits: large})
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(s.Text, "@compute")
			suffix := widthSuffix[widthIndex(width)] + "("
			if n := strings.Count(body, "keep_nan"+suffix); n != v.kept {
				t.Errorf("%s, width %d: %d ends of chains, not %d:\n%s", v.name, width, n, v.kept, body)
			}
			if n := strings.Count(body, "= abs("); n != v.sizes {
				t.Errorf("%s, width %d: %d sizes, not %d:\n%s", v.name, width, n, v.sizes, body)
			}
			for _, f := range []string{"min_nan", "max_nan", "min_with", "max_with", "clip"} {
				want := false
				for _, g := range v.strict {
					want = want || f == g
				}
				if strings.Contains(body, f+suffix) != want {
					t.Errorf("%s, width %d: %s is there: %v\n%s", v.name, width, f, !want, body)
				}
			}
		}
	}
}
