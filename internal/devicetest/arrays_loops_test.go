package devicetest

import (
	"math"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// nd is an array of float64: the operands and results of plain loops.
type nd struct {
	s    op.Shape
	data []float64
}

// at returns the element at a place.
func (x nd) at(p ...int) float64 {
	i := 0
	for k, v := range p {
		i = i*x.s[k] + v
	}
	return x.data[i]
}

// made returns an array with the element f(place) at each place.
func made(s op.Shape, f func(p []int) float64) nd {
	n, _ := s.Size()
	y, p := nd{s, make([]float64, n)}, make([]int, len(s))
	for i := range y.data {
		rest := i
		for k := len(s) - 1; k >= 0; k-- {
			p[k] = rest % s[k]
			rest /= s[k]
		}
		y.data[i] = f(p)
	}
	return y
}

// summed returns the sum of f(i) for i below n.
func summed(n int, f func(i int) float64) (s float64) {
	for i := range n {
		s += f(i)
	}
	return s
}

// truth returns 1 or 0.
func truth(c bool) float64 {
	if c {
		return 1
	}
	return 0
}

// composition is a method of a batch that is composed of other operations, and its
// reference: plain loops over operands of f32.
type composition struct {
	name   string
	shapes []op.Shape
	record func(b *batch.Batch, x []batch.Value) batch.Value
	want   func(x []nd) nd
	loose  float64                    // the error per term of sums, relative to their magnitude; 0 means exact
	draw   func(g *generator) float64 // an element of an operand; from a normal distribution if nil
}

// arrays compares the compositions with plain loops. On slow devices it compares a sample.
func arrays(t *testing.T, open Open) {
	dev := start(t, open)
	g := newGenerator(testutil.Seed(t))
	cases := slices.Concat(creations, arrangements, products, searches, rowOptions)
	for _, i := range g.Perm(len(cases))[:len(cases)/sparing()] {
		c := &cases[i]
		t.Run(c.name, func(t *testing.T) { c.run(t, dev, g) })
	}
	for range 60 / sparing() {
		randomEinsum(t, dev, g)
	}
}

// someOf returns all cases. In short runs it returns a random sample of at least one case.
func someOf[T any](g *generator, cases []T, of int) []T {
	if !short() {
		return cases
	}
	cases = slices.Clone(cases)
	g.Shuffle(len(cases), func(i, k int) { cases[i], cases[k] = cases[k], cases[i] })
	return cases[:(len(cases)+of-1)/of]
}

// sparing returns n: tests run one of n cases.
func sparing() int {
	if short() {
		return 3
	}
	return 1
}

func (c *composition) run(t *testing.T, dev *device.Device, g *generator) {
	b := batch.New(dev)
	var in []batch.Value
	var x []nd
	draw := c.draw
	if draw == nil {
		draw = func(g *generator) float64 { return float64(float32(g.NormFloat64())) }
	}
	for _, s := range c.shapes {
		y := made(s, func([]int) float64 { return draw(g) })
		x = append(x, y)
		data := make([]float32, len(y.data))
		for i, v := range y.data {
			data[i] = float32(v)
		}
		in = append(in, b.Reshape(b.Upload(data), s...))
	}
	y := c.record(b, in)
	want := c.want(x)
	compare(t, b, y, want, func(int) float64 { return c.loose })
}

// compare runs the batch and compares y with want. The error of element i must be at most
// slack(i), relative to the element's magnitude if that is above 1.
func compare(t *testing.T, b *batch.Batch, y batch.Value, want nd, slack func(i int) float64) {
	t.Helper()
	if b.Err() == nil && !y.Shape().Equal(want.s) {
		t.Fatalf("shape %v, want %v", y.Shape(), want.s)
	}
	got := make([]float32, len(want.data))
	batch.ReadInto(b, y, got)
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, w := range want.data {
		if d := math.Abs(float64(got[i]) - w); float64(got[i]) != w && !(got[i] != got[i] && w != w) && !(d <= slack(i)*max(1, math.Abs(w))) {
			t.Fatalf("element %d of %v is %v, want %v", i, want.s, got[i], w)
		}
	}
}
