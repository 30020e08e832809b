package optest

import (
	"github.com/rayo-go/rayo/op"
)

// Heads returns the layout of an array of shape s = [b h t d] that is part of a packed array
// [b t all d]: the array has the heads first, first+1 and so on of the packed array. It also
// returns the number of elements of the packed array.
func Heads(s op.Shape, all, first int) (*op.Layout, int) {
	order, err := op.PermuteTo(0, 2, 1, 3)
	if err != nil {
		panic(err) // at most op.MaxRank axes
	}
	memory := op.Shape{s[0], s[2], all, s[3]}
	n, err := memory.Size()
	if err != nil {
		panic(err) // the shapes of trials are written in tests
	}
	part, taken := op.SliceTo(2, first, first+s[1], 1), op.Shape{s[0], s[2], s[1], s[3]}
	l, ok := op.Slice.Layout(&part, op.RowMajor(n), memory, taken, op.F32)
	if ok {
		l, ok = op.Permute.Layout(&order, l, taken, s, op.F32)
	}
	if !ok {
		panic("BUG: no layout of heads")
	}
	return &l, n
}

// Lay returns memory of n elements of type t in which elements lie as l says, and else
// there is [Poison].
func Lay(elements []byte, t op.DType, l *op.Layout, n int) []byte {
	size := t.Size()
	memory := Poisoned(int64(n * size))
	for i := range l.Size() {
		if at, is := l.At(i); is {
			copy(memory[at*size:][:size], elements[i*size:])
		}
	}
	return memory
}

// Taken returns the elements that lie in memory as l says.
func Taken(memory []byte, t op.DType, l *op.Layout) []byte {
	size := t.Size()
	elements := Poisoned(int64(l.Size() * size))
	for i := range l.Size() {
		if at, is := l.At(i); is {
			copy(elements[i*size:][:size], memory[at*size:])
		}
	}
	return elements
}
