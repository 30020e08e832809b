// Package optest has the code that tests of kernels share: operands and results in memory,
// and comparisons of results with the references and tolerances of package op.
package optest

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// Poison is what fills results and temporaries before kernels run: a NaN that no
// kernel makes.
const Poison = 0xffc0dead

// Poisoned returns n bytes of memory, aligned to words of 32 bits and full of
// [Poison]; nil for none.
func Poisoned(n int64) []byte {
	if n == 0 {
		return nil
	}
	w := make([]uint32, (n+3)/4)
	for i := range w {
		w[i] = Poison
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), n)
}

// Encode returns an array in memory, as elements of type t.
func Encode(x *op.Array, t op.DType) []byte {
	m := Poisoned(int64(len(x.Data) * t.Size()))
	for i, v := range x.Data {
		t.PutFloat64(m, i, v)
	}
	return m
}

// Use is one use of an operation with its operands.
type Use struct {
	Op     *op.Operation
	Attrs  *op.Attrs
	Types  []op.DType  // of the operands
	Values []*op.Array // nil for an absent operand
}

// Memory returns the operands in memory; nil for an absent one.
func (u *Use) Memory() [][]byte {
	var in [][]byte
	for i, x := range u.Values {
		var m []byte
		if x != nil {
			m = Encode(x, u.Types[i])
		}
		in = append(in, m)
	}
	return in
}

// Compare compares results in memory, of these types, with the reference, which is
// computed from what the operands are in memory.
func (u *Use) Compare(types []op.DType, out [][]byte) error {
	rounded := make([]*op.Array, len(u.Values))
	for i, x := range u.Values {
		if x != nil {
			rounded[i] = &op.Array{Shape: x.Shape, Data: make([]float64, len(x.Data))}
			for j, v := range x.Data {
				rounded[i].Data[j] = u.Types[i].Round(v)
			}
		}
	}
	want, err := u.Op.Reference(u.Attrs, rounded, u.Types)
	if err != nil {
		return err
	}
	if err := Judge(u.Op, want, types, out); err != nil || !u.Op.CheckedAsWhole() {
		return err
	}
	results := make([]*op.Array, len(want))
	for i, w := range want {
		results[i] = op.NewArray(w.Shape)
		for j := range results[i].Data {
			results[i].Data[j] = types[i].Float64(out[i], j)
		}
	}
	return u.Op.CheckResults(u.Attrs, rounded, results)
}

// Judge compares results in memory, of these types, with those of the reference of
// an operation, within its tolerance.
func Judge(o *op.Operation, want []*op.Array, types []op.DType, out [][]byte) error {
	for i, t := range types {
		for j, w := range want[i].Data {
			mag := 0.0
			if want[i].Mag != nil {
				mag = want[i].Mag[j]
			}
			if t.Size() == 4 && binary.NativeEndian.Uint32(out[i][4*j:]) == Poison {
				return fmt.Errorf("element %d of result %d was not written", j, i)
			}
			if err := o.Check(t.Float64(out[i], j), w, mag, t); err != nil {
				return fmt.Errorf("element %d of result %d: %w", j, i, err)
			}
		}
	}
	return nil
}
