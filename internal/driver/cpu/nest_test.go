package cpu

import (
	"math"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// nested has shapes of two operands that broadcast in short rows.
var nested = [][2]op.Shape{
	{{33, 1, 31, 1}, {30, 1, 29}}, {{5, 7, 11, 13, 17}, {7, 1, 13, 1}}, {{100, 1, 10}, {100, 1}}, {{51, 1, 3}, {301, 1}}, {{1000, 3, 33}, {1000, 1, 33}},
	{{37, 1, 97}, {251, 1}}, {{1, 51, 97}, {37, 1, 97}}, {{3000, 17}, {3000, 1}}, {{2, 3, 40}, {3, 1}}, {{7, 1, 5, 1, 12}, {6, 1, 4, 1}}, {{4, 5, 6, 3}, {5, 1, 1}},
}

// TestNest compares operations on operands that broadcast in short rows with an index loop, from any element to any other one.
func TestNest(t *testing.T) {
	r := testutil.Rand(t)
	d := open(t, 1)
	made := 0
	for _, s := range nested {
		for _, o := range []*op.Operation{op.Add, op.Sub, op.Mul, op.Div, op.Maximum} {
			for _, swapped := range []bool{false, true} {
				in := s
				if swapped {
					in[0], in[1] = in[1], in[0]
				}
				made += testNest(t, d, o, in, r.IntN, r.NormFloat64)
			}
		}
	}
	if made == 0 && newChain == nil {
		t.Error("no program was a nest")
	}
}

// testNest returns 1 if the program was a nest.
func testNest(t *testing.T, d *processor, o *op.Operation, in [2]op.Shape, intN func(int) int, random func() float64) int {
	t.Helper()
	s, err := op.Broadcast(in[0], in[1])
	if err != nil {
		t.Fatal(err)
	}
	n := size(s)
	f := &driver.Fused{Shape: s, Out: []int{2}, Body: []driver.Instr{{Op: o, Args: []int{0, 1}, Type: op.F32}}}
	var x [2][]float32
	var ls [2]op.Layout
	for i := range in {
		if ls[i], err = op.Over(in[i], s); err != nil {
			t.Fatal(err)
		}
		x[i] = make([]float32, size(in[i]))
		for k := range x[i] {
			x[i][k] = float32(random())
		}
		a := driver.Operand{Slot: i, Type: op.F32, N: len(x[i]), Broadcast: ls[i].BroadcastKind(len(x[i]))}
		if a.Broadcast == op.Strided {
			a.Layout = &ls[i]
		}
		f.In = append(f.In, a)
	}
	p, err := d.fuse(f, []driver.Operand{{Slot: 2, Type: op.F32, N: n}})
	if err != nil {
		t.Fatal(err)
	}
	lo := intN(n)
	hi := lo + 1 + intN(n-lo)
	const poison = 77
	dst := make([]float32, n)
	for i := range dst {
		dst[i] = poison
	}
	var l lane
	at := []place{{base: unsafe.Pointer(&x[0][0])}, {base: unsafe.Pointer(&x[1][0])}, {base: unsafe.Pointer(&dst[0])}}
	l.begin(p, at, min(hi-lo, callElements))
	l.run(at, lo, hi)
	for i, got := range dst {
		a, _ := ls[0].At(i)
		b, _ := ls[1].At(i)
		v, w := x[0][a], x[1][b]
		want := map[*op.Operation]float32{op.Add: v + w, op.Sub: v - w, op.Mul: v * w, op.Div: v / w, op.Maximum: max(v, w)}[o]
		if i < lo || i >= hi {
			want = poison
		}
		if math.Float32bits(got) != math.Float32bits(want) {
			t.Fatalf("%s of %v, elements %d to %d: element %d is %v, not %v", o.Name(), in, lo, hi, i, got, want)
		}
	}
	if p.nest != nil {
		return 1
	}
	return 0
}
