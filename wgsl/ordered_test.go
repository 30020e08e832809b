package wgsl

import (
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// TestOrderedTexts compares minima and maxima for software with those for other devices.
func TestOrderedTexts(t *testing.T) {
	all := routines(t, fnIsNaN, fnMinWith, fnMaxWith, fnClip, fnMinOrdered, fnMaxOrdered, fnClipOrdered)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	numbers := []float32{-inf, -2, -1, 0, 1e-40, 1, 2, inf, nan}
	var d device
	check := func(f, ordered fn, args ...any) {
		want, got := d.call(all, functions[f].name, args...).(float32), d.call(all, functions[ordered].name, args...).(float32)
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Errorf("%s%v = %v, want %v", functions[ordered].name, args, got, want)
		}
	}
	for _, x := range numbers {
		for i, c := range numbers[:len(numbers)-1] {
			check(fnMinWith, fnMinOrdered, x, c)
			check(fnMaxWith, fnMaxOrdered, x, c)
			for _, upper := range numbers[i : len(numbers)-1] {
				check(fnClip, fnClipOrdered, x, c, upper)
			}
		}
	}
}

// TestOrdered requires these functions in the texts for software, and in no others.
func TestOrdered(t *testing.T) {
	k := func(v float64) *ir.Node { return ir.NewConst(v, ir.F32) }
	of := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	x := ir.NewArg(0, ir.F32)
	for want, root := range map[string]*ir.Node{
		"max_ordered(": of(ir.Max, x, k(0)), "min_ordered(": of(ir.Min, x, k(1)), "clip_ordered(": of(ir.Min, of(ir.Max, x, k(-1)), k(1)),
	} {
		for _, unfused := range []bool{false, true} {
			list, _ := ir.Flatten(root)
			p, _ := listing(list, 1)
			p.Bindings = []ir.Binding{{Name: "out", Type: ir.F32, Width: 1, Access: ir.WriteOnly}}
			last := ir.Value(len(p.Code) - 1)
			p.Code = append(p.Code, ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}, ir.Instr{Code: ir.Store, Args: [3]ir.Value{last + 1, last}})
			s, err := printProgram(p, Target{Limits: large, Unfused: unfused})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(s.Text, want) != unfused {
				t.Errorf("unfused %v: %s is in the text: %v", unfused, want, !unfused)
			}
		}
	}
}
