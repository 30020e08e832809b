package op

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"
)

func TestBroadcast(t *testing.T) {
	for _, c := range []struct {
		in   []Shape
		want Shape // nil: refused
	}{
		{[]Shape{}, Shape{}},
		{[]Shape{{}}, Shape{}},
		{[]Shape{{}, {}}, Shape{}},
		{[]Shape{{}, {3}}, Shape{3}},
		{[]Shape{{1}, {}}, Shape{1}},
		{[]Shape{{1}, {0}}, Shape{0}},
		{[]Shape{{0}, {1}}, Shape{0}},
		{[]Shape{{3}, {0}}, nil},
		{[]Shape{{0}, {3}}, nil},
		{[]Shape{{2}, {1, 1}}, Shape{1, 2}},
		{[]Shape{{2, 3}, {3}}, Shape{2, 3}},
		{[]Shape{{3}, {2, 3}}, Shape{2, 3}},
		{[]Shape{{2, 3}, {2, 1}}, Shape{2, 3}},
		{[]Shape{{2, 3}, {2}}, nil},
		{[]Shape{{2, 3}, {3, 2}}, nil},
		{[]Shape{{5, 0}, {1, 0}}, Shape{5, 0}},
		{[]Shape{{1, 0}, {5, 1}}, Shape{5, 0}},
		{[]Shape{{0, 5}, {5}}, Shape{0, 5}},
		{[]Shape{{0, 5}, {0, 1}}, Shape{0, 5}},
		{[]Shape{{2, 1}, {1, 3}}, Shape{2, 3}},
		{[]Shape{{2, 1}, {1, 3}, {2, 3}}, Shape{2, 3}},
		{[]Shape{{4, 5, 6}, {4, 1, 6}}, Shape{4, 5, 6}},
		{[]Shape{{4, 5, 6}, {5, 1}}, Shape{4, 5, 6}},
		{[]Shape{{4, 5, 6}, {4, 5, 1}}, Shape{4, 5, 6}},
		{[]Shape{{4, 5, 6}, {4, 1, 1}}, Shape{4, 5, 6}},
		{[]Shape{{4, 5, 6}, {1, 5, 6}}, Shape{4, 5, 6}},
		{[]Shape{{1, 5, 6}, {5, 1}}, Shape{1, 5, 6}},
		{[]Shape{{4, 1, 6}, {6}}, Shape{4, 1, 6}},
		{[]Shape{{4, 1, 6}, {4, 1}}, Shape{4, 4, 6}},
		{[]Shape{{4, 1, 6}, {4, 1, 1}}, Shape{4, 1, 6}},
		{[]Shape{{3, 1}, {1}, {3, 1}}, Shape{3, 1}},
	} {
		got, err := Broadcast(c.in...)
		switch {
		case c.want == nil:
			if !errors.Is(err, ErrShape) {
				t.Errorf("Broadcast(%v) = %v, %v, want ErrShape", c.in, got, err)
			}
		case err != nil || got == nil || !got.Equal(c.want):
			t.Errorf("Broadcast(%v) = %v, %v, want %v", c.in, got, err, c.want)
		}
	}
}

// TestIndexIsNumPys compares Index with broadcasting by coordinates, which is NumPy's rule.
func TestIndexIsNumPys(t *testing.T) {
	tested := map[BroadcastKind]int{}
	extents := []int{0, 1, 2, 3}
	for code := range 4 * 4 * 4 * 8 {
		out := Shape{extents[code%4], extents[code/4%4], extents[code/16%4]}
		s := slices.Clone(out)
		for i := range s {
			if code>>(6+i)&1 == 1 {
				s[i] = 1
			}
		}
		for cut := 0; cut <= 3 && (cut == 0 || s[cut-1] == 1); cut++ {
			s := s[cut:]
			spread, err := BroadcastOf(s, out)
			if err != nil {
				continue
			}
			at, err := Index(s, out)
			if err != nil {
				t.Fatal(err)
			}
			tested[spread]++
			n, _ := out.Size()
			for i := range n {
				want, stride, rest := 0, 1, i
				for axis := 2; axis >= 0; axis-- {
					if d := s.at(axis, 3); d != 1 {
						want += rest % out[axis] * stride
						stride *= d
					}
					rest /= out[axis]
				}
				if got := at(i); got != want {
					t.Fatalf("element %d of %v takes %d of %v, want %d", i, out, got, s, want)
				}
			}
		}
	}
	for s := Full; s <= Strided; s++ {
		if tested[s] < 10 {
			t.Errorf("%d cases of %v", tested[s], s)
		}
	}
}

func TestSize(t *testing.T) {
	for _, c := range []struct {
		s    Shape
		want int
	}{
		{Shape{}, 1}, {Shape{0}, 0}, {Shape{2, 3, 4}, 24}, {Shape{5, 0, 7}, 0},
		{Shape{-1}, -1}, {Shape{0, -1}, -1}, {Shape{math.MaxInt}, -1}, {Shape{math.MaxInt, 0}, -1},
		{Shape{0, math.MaxInt / 2, 3}, -1}, {Shape{1 << 15, 1 << 15, 1 << 15, 1 << 15, 1 << 15}, -1},
	} {
		n, err := c.s.Size()
		if c.want < 0 && !errors.Is(err, ErrShape) || c.want >= 0 && (err != nil || n != c.want) {
			t.Errorf("%v: %d, %v, want %d", c.s, n, err, c.want)
		}
	}
}

// TestShapeRulesRefuse gives every rule shapes that it must reject.
func TestShapeRulesRefuse(t *testing.T) {
	reshape := func(s ...int) Attrs {
		a, err := ReshapeTo(s...)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	big := math.MaxInt / 64
	for _, c := range []struct {
		o  *Operation
		a  Attrs
		in []Shape
	}{
		{Add, Attrs{}, []Shape{{2}}},
		{Add, Attrs{}, []Shape{{2}, {2}, {2}}},
		{Add, Attrs{}, []Shape{{2}, nil}},
		{Binary("user's", func(x, y Expr) Expr { return x.Add(y) }), Attrs{}, []Shape{nil, {2}}},
		{Relu, Attrs{}, []Shape{{1, 1, 1, 1, 1, 1, 1, 1, 1}}},
		{Relu, Attrs{}, []Shape{{-2}}},
		{Sum, Attrs{I: [8]int{2}}, []Shape{{2}}},
		{Dot, Attrs{}, []Shape{{2}, {3}}},
		{Dot, Attrs{}, []Shape{{2, 3}, {6}}},
		{Max, Attrs{}, []Shape{{0}}},
		{Max, Attrs{}.Rows(), []Shape{{2, 0}}},
		{ArgMin, Attrs{}, []Shape{{3, 0}}},
		{Var, VarOpts{DDOF: -1}.Attrs(), []Shape{{3}}},
		{Softmax, Attrs{}, []Shape{{}}},
		{LayerNorm, Attrs{}, []Shape{{2, 3}, {2}}},
		{LayerNorm, Attrs{}, []Shape{{2, 3}, {3}, {1}}},
		{MatMul, Attrs{}, []Shape{{2}, {2, 3}}},
		{MatMul, Attrs{}, []Shape{{2, 3}, {4, 5}}},
		{MatMul, MatMulOpts{TransA: true}.Attrs(), []Shape{{2, 3}, {3, 5}}},
		{MatMul, MatMulOpts{TransB: true}.Attrs(), []Shape{{2, 3}, {3, 5}}},
		{MatMul, Attrs{}, []Shape{{4, 2, 3}, {5, 3, 2}}},
		{MatMul, Attrs{}, []Shape{{2, 3}, {1, 3, 2}}},
		{MatMul, Attrs{}, []Shape{{2, 3}, {3, 2}, {3}}},
		{MatMul, Attrs{}, []Shape{{big, 0}, {0, big}}}, // the result overflows
		{MatVec, Attrs{}, []Shape{{2, 3}, {2}}},
		{MatVec, Attrs{}, []Shape{{2, 3}, {3, 1}}},
		{Transpose, Attrs{}, []Shape{{3}}},
		{Conv2D, Attrs{}, []Shape{{1, 1, 3, 3}, {1, 1, 4, 1}}},
		{Conv2D, Attrs{}, []Shape{{1, 1, 3, 3}, {1, 2, 1, 1}}},
		{Conv2D, Attrs{}, []Shape{{1, 1, 3, 3}, {1, 1, 0, 1}}},
		{Conv2D, Attrs{}, []Shape{{1, 1, 3}, {1, 1, 1, 1}}},
		{Conv2D, Attrs{}, []Shape{{1, 1, 3, 3}, {2, 1, 1, 1}, {1}}},
		{Conv2D, Conv2DOpts{Groups: 2}.Attrs(), []Shape{{1, 3, 3, 3}, {2, 1, 1, 1}}},
		{Conv2D, Conv2DOpts{Groups: -1}.Attrs(), []Shape{{1, 3, 3, 3}, {2, 3, 1, 1}}},
		{Conv2D, Conv2DOpts{Stride: [2]int{-1, 1}}.Attrs(), []Shape{{1, 1, 3, 3}, {1, 1, 1, 1}}},
		{Conv2D, Conv2DOpts{Pad: [2]int{math.MaxInt, 0}}.Attrs(), []Shape{{1, 1, 3, 3}, {1, 1, 1, 1}}},
		{Conv2D, Conv2DOpts{Dilation: [2]int{math.MaxInt, 1}}.Attrs(), []Shape{{1, 1, 3, 3}, {1, 1, 2, 1}}},
		{Gather, Attrs{}, []Shape{{}, {2}}},
		{Gather, GatherOf(2), []Shape{{3, 2}, {2}}},
		{Gather, GatherOf(-3), []Shape{{3, 2}, {2}}},
		{Scatter, ScatterOf(1, ScatterAdd), []Shape{{3, 2}, {4}, {4, 2}}},
		{Scatter, ScatterOf(2, ScatterAdd), []Shape{{3, 2}, {4}, {4, 2}}},
		{Scatter, ScatterOf(0, ScatterSet), []Shape{{}, {4}, {4}}},
		{Gather, Attrs{}, []Shape{{3, 2}, {1, 1, 1, 1, 1, 1, 1, 1}}}, // nine extents
		{TopK, TopKOpts{K: 4}.Attrs(), []Shape{{3}}},
		{TopK, TopKOpts{K: -1}.Attrs(), []Shape{{3}}},
		{TopK, TopKOpts{}.Attrs(), []Shape{{}}},
		{Sort, Attrs{}, []Shape{{}}},
		{Attention, Attrs{}, []Shape{{4, 3, 2}, {3, 3, 2}, {3, 3, 2}}},
		{Attention, Attrs{}, []Shape{{4, 3, 2}, {0, 3, 2}, {0, 3, 2}}},
		{Attention, Attrs{}, []Shape{{4, 3, 2}, {4, 3, 3}, {4, 3, 3}}},
		{Attention, Attrs{}, []Shape{{4, 3, 2}, {4, 3, 2}, {4, 5, 2}}},
		{Attention, Attrs{}, []Shape{{2, 4, 3, 2}, {1, 4, 3, 2}, {1, 4, 3, 2}}},
		{Rope, Attrs{}, []Shape{{2, 2, 3}}},
		{Rope, Attrs{}, []Shape{{2, 2, 4}, {3}}},
		{Rope, RopeOpts{Start: math.MaxInt}.Attrs(), []Shape{{2, 2, 4}}},
		{Reshape, reshape(4), []Shape{{3}}},
		{Reshape, reshape(-1, 2), []Shape{{3}}},
		{Reshape, reshape(-1, 0), []Shape{{0}}},
		{Reshape, reshape(-1, -1), []Shape{{4}}},
		{Reshape, reshape(big, big), []Shape{{4}}},
		{Reshape, Attrs{I: [8]int{0, 2}}, []Shape{{1}}},
	} {
		if out, err := c.o.Shapes(&c.a, c.in); !errors.Is(err, ErrShape) {
			t.Errorf("%s of %v with %v: %v, %v, want ErrShape", c.o, c.in, c.a.I, out, err)
		}
	}
	if _, err := ReshapeTo(make([]int, 9)...); !errors.Is(err, ErrShape) {
		t.Errorf("nine extents: %v", err)
	}
	if _, err := ReshapeTo(-2); !errors.Is(err, ErrShape) {
		t.Errorf("extent -2: %v", err)
	}
}

func TestEmptyExtents(t *testing.T) {
	for _, c := range []struct {
		o    *Operation
		a    Attrs
		in   []Shape
		want Shape
	}{
		{Sum, Attrs{}.Rows(), []Shape{{0, 3}}, Shape{0}},
		{Max, Attrs{}.Rows(), []Shape{{0, 0}}, Shape{0}},
		{Softmax, Attrs{}, []Shape{{2, 0}}, Shape{2, 0}},
		{LayerNorm, Attrs{}, []Shape{{0, 3}, {3}, {3}}, Shape{0, 3}},
		{MatMul, Attrs{}, []Shape{{2, 0}, {0, 3}}, Shape{2, 3}},
		{MatMul, Attrs{}, []Shape{{0, 2, 3}, {3, 4}}, Shape{0, 2, 4}},
		{Conv2D, Attrs{}, []Shape{{0, 1, 3, 3}, {2, 1, 2, 2}}, Shape{0, 2, 2, 2}},
		{Conv2D, Attrs{}, []Shape{{1, 0, 3, 3}, {2, 0, 2, 2}}, Shape{1, 2, 2, 2}},
		{Gather, Attrs{}, []Shape{{0, 3}, {2}}, Shape{2, 3}},
		{TopK, Attrs{}, []Shape{{2, 3}}, Shape{2, 0}},
		{TopK, Attrs{}, []Shape{{2, 0}}, Shape{2, 0}},
		{Sort, Attrs{}, []Shape{{2, 3}}, Shape{2, 3}},
		{Attention, Attrs{}, []Shape{{2, 3, 4}, {1, 0, 4}, {1, 0, 4}}, Shape{2, 3, 4}},
		{Attention, Attrs{}, []Shape{{0, 3, 4}, {0, 1, 4}, {0, 1, 4}}, Shape{0, 3, 4}},
		{Attention, Attrs{}, []Shape{{2, 3, 0}, {2, 3, 0}, {2, 3, 0}}, Shape{2, 3, 0}},
		{Rope, Attrs{}, []Shape{{0, 2, 4}}, Shape{0, 2, 4}},
		{Rope, Attrs{}, []Shape{{2, 2, 0}}, Shape{2, 2, 0}},
	} {
		in := make([]*Array, len(c.in))
		types := make([]DType, len(c.in))
		for i, s := range c.in {
			in[i], types[i] = NewArray(s), F32
			if c.o.Inputs()[i] == "ids" {
				types[i] = I32
			}
		}
		out, err := c.o.Reference(&c.a, in, types)
		if err != nil || !out[0].Shape.Equal(c.want) {
			t.Errorf("%s of %v: %v, %v, want shape %v", c.o, c.in, out, err, c.want)
		}
	}
}

// FuzzShapes checks that no operands and parameters make a rule panic, and that a device
// can hold the resulting shapes.
func FuzzShapes(f *testing.F) {
	f.Add([]byte{0})
	f.Add([]byte("conv2d wants some bytes to be taken as extents and as parameters of every kind"))
	f.Fuzz(func(t *testing.T, data []byte) {
		next := func() int {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			switch {
			case b < 200:
				return int(b%12) - 1
			case b < 220:
				return []int{math.MaxInt, math.MinInt, math.MaxInt / 2, math.MaxInt / 16, math.MaxInt32, 1 << 24, -1 << 24}[b%7]
			case len(data) >= 8:
				v := int(binary.LittleEndian.Uint64(data))
				data = data[8:]
				return v
			}
			return int(b)
		}
		list := Catalogue()
		o := list[0]
		if len(data) > 0 {
			o = list[int(data[0])%len(list)]
			data = data[1:]
		}
		var a Attrs
		for i := range a.I {
			a.I[i] = next()
		}
		for i := range a.F {
			a.F[i] = uint32(next())
		}
		if act := next(); act > 5 {
			a.Act = list[uint(act)%uint(len(list))]
		}
		in := make([]Shape, uint(next())%8)
		types := make([]DType, len(in))
		for i := range in {
			types[i] = DType(next())
			if rank := next(); rank >= 0 {
				in[i] = make(Shape, min(rank, 12))
				for j := range in[i] {
					in[i][j] = next()
				}
			}
		}
		if got, err := o.Types(&a, types); err == nil && len(got) != o.Results() {
			t.Fatalf("%s of %v: types %v", o, types, got)
		} else if err != nil && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrShape) {
			t.Fatalf("%s of %v: %v", o, types, err)
		}
		out, err := o.Shapes(&a, in)
		if err != nil {
			if !errors.Is(err, ErrShape) {
				t.Fatalf("%s of %v: %v", o, in, err)
			}
			return
		}
		if len(out) != o.Results() {
			t.Fatalf("%s of %v: %d results", o, in, len(out))
		}
		work := 1.0
		for _, s := range out {
			n, err := s.Size()
			if s == nil || err != nil || len(s) > MaxRank {
				t.Fatalf("%s of %v: result %v, %v", o, in, s, err)
			}
			work += float64(n)
		}
		if f := o.Flops(&a, in, out); f != f || f < 0 {
			t.Fatalf("%s of %v: %v operations", o, in, f)
		}
		for _, s := range in {
			n, _ := s.Size()
			work += float64(n)
		}
		if work*max(1, o.Flops(&a, in, out)) > 1e6 {
			return
		}
		arrays := make([]*Array, len(in))
		for i, s := range in {
			if s != nil {
				arrays[i] = NewArray(s)
			}
		}
		if _, err := o.Reference(&a, arrays, types); err != nil && !errors.Is(err, ErrUnsupported) && !errors.Is(err, ErrShape) {
			t.Fatalf("%s of %v: %v", o, in, err)
		}
	})
}
