package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// TestIntegerCodes compares the kernels in integerCodes with the evaluator of codes, bit for bit.
func TestIntegerCodes(t *testing.T) {
	const n = 1000
	special := []uint32{0, 1, 2, 31, 32, 1<<31 - 1, 1 << 31, 1<<31 + 1, 1<<32 - 1}
	tried := 0
	for code, o := range integerCodes {
		for _, typ := range []ir.Type{ir.I32, ir.U32} {
			fn := kernelNamed(ofIR(typ).String() + "." + o.Name())
			if fn == nil {
				continue
			}
			var in [3][n]float32
			var of [3]*ir.Node
			for j := range code.Arity() {
				of[j] = ir.NewArg(j, typ)
				if code == ir.Select && j == 0 {
					of[j] = ir.NewArg(j, ir.Bool)
				}
				for i, w := range words(&in[j][0], n) {
					if w = special[rand.IntN(len(special))]; rand.IntN(2) == 0 {
						w = rand.Uint32()
					}
					if of[j].Type == ir.Bool {
						w &= 1
					}
					words(&in[j][0], n)[i] = w
				}
			}
			result := typ
			if o == op.Equal || o == op.NotEqual || o == op.Less || o == op.LessEqual {
				result = ir.Bool
			}
			node := &ir.Node{Code: code, Type: result, Args: of}
			var got, want [n]float32
			fn(&got[0], &in[0][0], &in[1][0], &in[2][0], n, nil)
			evaluated(node)(&want[0], &in[0][0], &in[1][0], &in[2][0], n, nil)
			for i := range n {
				if g, w := words(&got[0], n)[i], words(&want[0], n)[i]; g != w {
					t.Errorf("%v of %v, %x %x %x: %x, want %x", code, typ, words(&in[0][0], n)[i], words(&in[1][0], n)[i], words(&in[2][0], n)[i], g, w)
					break
				}
			}
			tried++
		}
	}
	if tried < 28 {
		t.Errorf("only %d codes have kernels of operations", tried)
	}
}
