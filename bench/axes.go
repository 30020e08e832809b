package main

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// The groups axes and linalg have operations over arrays with several axes: broadcasts, operations along any axis, sorts,
// copies by index, products by einsum, and factorisations. Their cells have a name instead of a size.

// An operand is an input of an axisCase. Peers receive it with each request.
type operand struct {
	Shape op.Shape `json:"shape"`
	Type  string   `json:"type"`  // f32: values in [-4, 4); i32: all 32 bits; id: from 0 to Below-1, an int64 of peers
	Below int      `json:"below"` // the number of rows that ids select
	// Diagonal is added to the diagonals of square matrices, which are then far from singular. Symmetric adds the transpose first.
	Diagonal  float32 `json:"diagonal"`
	Symmetric bool    `json:"symmetric"`
}

// An axisCase is an operation over operands. The forms of the peers are expressions over x, y and z, with out, an array like the
// result.
type axisCase struct {
	name         string
	in           []operand
	record       func(b *batch.Batch, x []batch.Value) batch.Value
	numpy, torch []string
	unsigned     bool    // the signs of the result's elements depend on the algorithm
	exact        bool    // the elements are integers
	tolerance    float64 // relative to 1 + |element|; 1e-3 if 0
}

func (k *axisCase) forms(server string) []string {
	return map[string][]string{"numpy": k.numpy, "torch": k.torch}[server]
}

func f32s(shape ...int) operand { return operand{Shape: shape, Type: "f32"} }
func i32s(shape ...int) operand { return operand{Shape: shape, Type: "i32"} }

func ids(below int, shape ...int) operand { return operand{Shape: shape, Type: "id", Below: below} }

func (o operand) size() int {
	n := 1
	for _, d := range o.Shape {
		n *= d
	}
	return n
}

// hash returns element i of the input of a seed as an integer of 32 bits.
func hash(i, seed int) uint32 { return uint32((uint64(i) + uint64(seed)*1000003) * 2654435761) }

// floats returns the elements of an f32 operand.
func (o operand) floats(seed int) []float32 {
	x := alloc(o.size(), seed)
	if o.Diagonal == 0 {
		return x
	}
	n := o.Shape[len(o.Shape)-1]
	for m := 0; m < len(x); m += n * n {
		for i := range n {
			if o.Symmetric {
				for j := range i {
					a, b := m+i*n+j, m+j*n+i
					x[a] += x[b]
					x[b] = x[a]
				}
				x[m+i*n+i] += x[m+i*n+i]
			}
			x[m+i*n+i] += o.Diagonal
		}
	}
	return x
}

// upload adds the operand to a batch.
func (o operand) upload(b *batch.Batch, seed int) batch.Value {
	if o.Type == "f32" {
		return b.Upload(o.floats(seed), o.Shape...)
	}
	x := make([]int32, o.size())
	for i := range x {
		h := hash(i, seed)
		if x[i] = int32(h); o.Type == "id" {
			x[i] = int32(h % uint32(o.Below))
		}
	}
	return batch.Upload(b, x, o.Shape...)
}

var axisCases, linalgCases = makeAxisCases(), makeLinalgCases()

// axisCaseOf returns the case of a cell of the groups, or nil.
func axisCaseOf(c cell) *axisCase {
	for _, cases := range [][]axisCase{axisCases, linalgCases} {
		for i := range cases {
			if cases[i].name == c.Op {
				return &cases[i]
			}
		}
	}
	return nil
}

// axisCells returns the cells of cases.
func axisCells(cases []axisCase) (cs []cell) {
	for _, k := range cases {
		for _, t := range threadCounts {
			cs = append(cs, cell{Op: k.name, Threads: t})
		}
	}
	return cs
}

// prepareAxes records a case and compiles it.
func (r *rayo) prepareAxes(k *axisCase, threads int) (prepared, error) {
	dev, err := r.device(threads)
	if err != nil {
		return prepared{}, err
	}
	b := batch.New(dev)
	var in []batch.Value
	for i, o := range k.in {
		in = append(in, o.upload(b, i+1))
	}
	y := k.record(b, in)
	if b.Err() != nil {
		return prepared{}, b.Err()
	}
	n, err := y.Shape().Size()
	if err != nil {
		return prepared{}, err
	}
	check := get(b, y, n)
	plan, err := b.Compile(r.ctx, y) // without the indices of a sort
	if err != nil {
		return prepared{}, err
	}
	return choose([]form{{"plan.Run", func() error { return plan.Run(r.ctx) }}}, check)
}

// agree compares elements of the results of two systems. The references of other groups are in Go; results over many axes are
// compared with each other.
func (k *axisCase) agree(got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: the reply has %d elements to check, expected %d", k.name, len(got), len(want))
	}
	for i := range want {
		g, w := got[i], want[i]
		if k.unsigned {
			g, w = math.Abs(g), math.Abs(w)
		}
		tolerance := cmp.Or(k.tolerance, 1e-3) * (1 + math.Abs(w))
		if k.exact {
			tolerance = 0
		}
		if d := math.Abs(g - w); !(d <= tolerance) {
			return fmt.Errorf("%s: element %d is %g, another system has %g", k.name, i, got[i], want[i])
		}
	}
	return nil
}

// axesTable returns a table with a line for each case of a group.
func (r *results) axesTable(cases []axisCase) string {
	var b strings.Builder
	for _, k := range cases {
		for _, t := range threadCounts {
			c := cell{Op: k.name, Threads: t}
			rayo := r.of(c, "rayo")
			if rayo == nil {
				continue
			}
			if b.Len() == 0 {
				b.WriteString("| operation | threads | rayo | NumPy | ÷ rayo | q25 | PyTorch | ÷ rayo | q25 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n")
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", k.name, t, timeOf(rayo), r.beside(c, "numpy", "torch"))
		}
	}
	return b.String()
}
