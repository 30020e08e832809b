package optest

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestCompare compares correct results, and results with a mistake.
func TestCompare(t *testing.T) {
	const rows, cols = 5, 7
	x, gamma := op.NewArray(op.Shape{rows, cols}), op.NewArray(op.Shape{cols})
	for _, a := range []*op.Array{x, gamma} {
		for i := range a.Data {
			a.Data[i] = rand.NormFloat64()
		}
	}
	attrs := op.LayerNorm.Defaults()
	for _, typ := range []op.DType{op.F32, op.F16, op.BF16} {
		u := &Use{Op: op.LayerNorm, Attrs: &attrs, Types: []op.DType{typ, typ, op.InvalidType}, Values: []*op.Array{x, gamma, nil}}
		in := u.Memory()
		if in[2] != nil {
			t.Errorf("an absent operand has %d bytes", len(in[2]))
		}
		// What is right is computed from the memory, not from the values.
		var arrays []*op.Array
		for i, shape := range []op.Shape{x.Shape, gamma.Shape} {
			a, err := typ.Array(shape, in[i])
			if err != nil {
				t.Fatal(err)
			}
			arrays = append(arrays, a)
		}
		want, err := u.Op.Reference(&attrs, append(arrays, nil), u.Types)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range []struct {
			name string
			make func(out []byte, at int)
			says string // "" for no mistake
		}{
			{"none", func([]byte, int) {}, ""},
			{"a number", func(out []byte, at int) { typ.PutFloat64(out, at, typ.Float64(out, at)+0.25) }, "element"},
			{"NaN", func(out []byte, at int) { typ.PutFloat64(out, at, math.NaN()) }, "element"},
			{"unwritten", func(out []byte, at int) { n := at * typ.Size(); copy(out[n:n+typ.Size()], Poisoned(4)[4-typ.Size():]) }, "element"},
		} {
			out, at := Encode(want[0], typ), rand.IntN(rows*cols)
			m.make(out, at)
			err := u.Compare([]op.DType{typ}, [][]byte{out})
			if (err == nil) != (m.says == "") || err != nil && !strings.Contains(err.Error(), m.says) {
				t.Errorf("%v, a mistake in element %d, %s: %v", typ, at, m.name, err)
			}
			if err != nil && m.name == "unwritten" && typ == op.F32 && !strings.Contains(err.Error(), "not written") {
				t.Errorf("%v", err)
			}
		}
	}
}

func TestPoisoned(t *testing.T) {
	for _, n := range []int64{0, 1, 3, 4, 7, 64} {
		b := Poisoned(n)
		if int64(len(b)) != n {
			t.Errorf("%d bytes of %d", len(b), n)
		}
		for i := range int(n) / 4 {
			if !math.IsNaN(op.F32.Float64(b, i)) {
				t.Errorf("word %d of %d bytes is %x", i, n, b[4*i:4*i+4])
			}
		}
	}
}
