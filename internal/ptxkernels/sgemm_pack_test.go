package ptxkernels

import (
	"encoding/binary"
	"testing"

	"github.com/rayo-go/rayo/internal/optest"
	"github.com/rayo-go/rayo/op"
)

func TestPack(t *testing.T) {
	for _, turn := range []bool{false, true} {
		for _, c := range [][3]int{{1, 1, 1}, {1, 64, 32}, {2, 65, 33}, {3, 7, 130}, {1, 200, 5}} {
			batch, rows, columns := c[0], c[1], c[2]
			a := normal(batch, rows, columns)
			outer, inner := rows, columns
			if turn {
				outer, inner = columns, rows
			}
			pitch := packedPitch(inner)
			out := optest.Poisoned(int64(4 * batch * outer * pitch))
			p := &Plan{Stages: []Stage{layOut(input(0), output(0), rows, columns, batch, turn)}}
			if err := (&rig{device: h200}).run(p, [][]byte{optest.Encode(a, op.F32)}, [][]byte{out}); err != nil {
				t.Errorf("%v turned %v: %v", c, turn, err)
				continue
			}
			for i, want := range encode32(a) {
				b, r, s := i/(rows*columns), i/columns%rows, i%columns
				if turn {
					r, s = s, r
				}
				if got := binary.NativeEndian.Uint32(out[4*((b*outer+r)*pitch+s):]); got != want {
					t.Fatalf("%v turned %v: element %d is %#x, not %#x", c, turn, i, got, want)
				}
			}
		}
	}
}

func encode32(a *op.Array) []uint32 {
	var y []uint32
	for b := optest.Encode(a, op.F32); len(b) > 0; b = b[4:] {
		y = append(y, binary.NativeEndian.Uint32(b))
	}
	return y
}
