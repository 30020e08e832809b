package simd

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// golden is op/testdata/elementwise.json: see gen_golden.py beside it.
type golden struct {
	Inputs []number    `json:"inputs"`
	Pairs  [][2]number `json:"pairs"`
	Unary  []struct {
		Op     string             `json:"op"`
		Params map[string]float32 `json:"params"`
		Y      []number           `json:"y"`
		Limit  []int              `json:"limit"`
	} `json:"unary"`
	Binary []struct {
		Op string   `json:"op"`
		Y  []number `json:"y"`
	} `json:"binary"`
}

// number is a JSON number, "NaN", "Inf", "-Inf" or "-0".
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

// TestMapGolden compares the kernels with values that were not made from this
// project's formulas, special values above all.
func TestMapGolden(t *testing.T) {
	raw, err := os.ReadFile("../op/testdata/elementwise.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	x := make([]float32, len(g.Inputs))
	for i, v := range g.Inputs {
		x[i] = float32(v)
	}
	check := func(level Level, name string, got float32, want number, args ...float32) {
		t.Helper()
		o := op.Lookup(name)
		if o.Tolerance().Mag != 0 {
			return // the bound needs a magnitude, which the file does not contain
		}
		if err := o.Check(float64(got), float64(want), 0, op.F32); err != nil {
			t.Errorf("%v %s%v: %v", level, name, args, err)
		}
	}
	asked := 0
	for _, level := range Supported() {
		for _, u := range g.Unary {
			o := op.Lookup(u.Op)
			if o == nil || o.Class() != op.Elementwise {
				continue
			}
			var ps []float32
			for _, p := range o.Params() {
				v, ok := u.Params[p.Name]
				if !ok {
					v = p.Default
				}
				ps = append(ps, v)
			}
			limit := map[int]bool{}
			for _, i := range u.Limit {
				limit[i] = true
			}
			out := make([]float32, len(x))
			MapAt(level, o.Name())(&out[0], &x[0], nil, nil, len(x), pointer(ps))
			for i, v := range out {
				if !o.Plain() { // a truth value
					v = float32(math.Float32bits(v))
				}
				if !limit[i] {
					check(level, o.Name(), v, u.Y[i], x[i])
					asked++
				}
			}
		}
		for _, u := range g.Binary {
			o := op.Lookup(u.Op)
			if o == nil || !o.Plain() || o.Class() != op.Elementwise {
				continue
			}
			a, b, out := make([]float32, len(g.Pairs)), make([]float32, len(g.Pairs)), make([]float32, len(g.Pairs))
			for i, p := range g.Pairs {
				a[i], b[i] = float32(p[0]), float32(p[1])
			}
			MapAt(level, o.Name())(&out[0], &a[0], &b[0], nil, len(a), nil)
			for i, v := range out {
				if o == op.Pow && math.IsInf(float64(a[i]), -1) && b[i] == 0.5 {
					continue // NumPy takes the square root; C99's pow is +Inf
				}
				check(level, o.Name(), v, u.Y[i], a[i], b[i])
				asked++
			}
		}
	}
	if asked < 1000 {
		t.Errorf("only %d values were asked for", asked)
	}
}
