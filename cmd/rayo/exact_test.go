package main

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/op"
)

// TestBoundsHold computes the pipeline in float32, one operation after the
// other, as a device might, and with an error in one place.
func TestBoundsHold(t *testing.T) {
	p := picture{9, 11, make([]float32, 3*9*11)}
	for i := range p.rgb {
		p.rgb[i] = rand.Float32()
	}
	var e exact
	want := neon[value](&e, p, p.extend(margin))
	if e.err != nil {
		t.Fatal(e.err)
	}
	got := make([]float32, len(want.Data))
	for i, v := range want.Data {
		got[i] = float32(v + want.bound[i]*0.9*(2*rand.Float64()-1))
	}
	if v := compare(got, want); !v.ok() || v.share < 0.1 {
		t.Errorf("%+v for errors inside their bounds", v)
	}
	i := rand.IntN(len(got))
	got[i] = float32(want.Data[i] + 3*want.bound[i] + 1e-5)
	if v := compare(got, want); v.ok() {
		t.Errorf("%+v for an error outside its bound", v)
	}
	got[i] = float32(math.NaN())
	if v := compare(got, want); v.ok() {
		t.Errorf("%+v for NaN", v)
	}
	if v := compare(got[1:], want); v.ok() {
		t.Errorf("%+v for too few elements", v)
	}
}

func TestBoundsPassThroughProducts(t *testing.T) {
	var e exact
	x := e.Scale(e.Upload([]float32{1, -1}, 1, 2), 3) // the error is up to 1.5 units in the last place
	w := e.Upload([]float32{100, -10, 1, 1000}, 2, 2)
	y := e.MatMul(x, w, value{})
	for j, sum := range []float64{101, 1010} {
		if from := x.bound[0] * sum; y.bound[j] < from || y.bound[j] > 40*from {
			t.Errorf("bound %g of column %d, with %g from the operand", y.bound[j], j, from)
		}
	}
	if e.flops != 2+8 {
		t.Errorf("%g operations, want 10", e.flops)
	}
	if e.MatMul(y, y, value{}); e.err == nil {
		t.Error("no mistake for two operands of unsure values")
	}
}

func TestFirstMistakeOfTheReferenceSticks(t *testing.T) {
	var e exact
	e.Add(e.Upload([]float32{1, 2}), e.Upload([]float32{1, 2, 3}))
	first := e.err
	e.Reshape(e.Upload([]float32{1}), -5)
	if first == nil || e.err != first {
		t.Errorf("got %v, then %v", first, e.err)
	}
}

func TestExtendRepeatsTheBorder(t *testing.T) {
	p := picture{2, 2, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}
	e := p.extend(1)
	want := []float32{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}
	for i, w := range want {
		if e.rgb[i] != w {
			t.Fatalf("got %v, want %v", e.rgb[:16], want)
		}
	}
	if op.Shape([]int{3, e.h, e.w}).String() != "[3 4 4]" || e.rgb[47] != 12 {
		t.Errorf("%d by %d, the last %v", e.h, e.w, e.rgb[47])
	}
}
