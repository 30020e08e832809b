package op

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// indices lists what a layout describes: the place in memory of each element, or -1 if the element is
// fill.
type indices struct {
	shape Shape
	at    []int
}

// reshaped returns a new value of a shape. f maps the place of an element of the result to the place of
// an element of the old value.
func (x indices) made(s Shape, f func(place []int) int) indices {
	n, _ := s.Size()
	y := indices{s, make([]int, n)}
	place := make([]int, len(s))
	for i := range y.at {
		rest := i
		for k := len(s) - 1; k >= 0; k-- {
			place[k] = rest % s[k]
			rest /= s[k]
		}
		y.at[i] = f(place)
	}
	return y
}

// element returns the element at an index.
func (x indices) element(place []int) int {
	i := 0
	for k, p := range place {
		i = i*x.shape[k] + p
	}
	return x.at[i]
}

// A chain applies the same random changes to a layout and to indices.
type chain struct {
	r *rand.Rand
	l Layout
	x indices
}

const chainFill = 7

func (c *chain) permute() bool {
	order := c.r.Perm(len(c.x.shape))
	s := make(Shape, len(order))
	for i, k := range order {
		s[i] = c.x.shape[k]
	}
	l, ok := c.l.permute(c.x.shape, order)
	from := make([]int, len(order))
	c.x = c.x.made(s, func(p []int) int {
		for i, k := range order {
			from[k] = p[i]
		}
		return c.x.element(from)
	})
	c.l = l
	return ok
}

func (c *chain) slice() bool {
	axis := c.r.IntN(len(c.x.shape))
	d := c.x.shape[axis]
	step := []int{1, 1, 1, 2, 3, -1, -2, -3}[c.r.IntN(8)]
	start, count := 0, 0
	if d > 0 {
		start = c.r.IntN(d)
		most := (d-1-start)/max(step, 1) + 1
		if step < 0 {
			most = start/-step + 1
		}
		count = c.r.IntN(most + 1)
		if c.r.IntN(10) > 0 {
			count = max(count, 1)
		}
	}
	s := slices.Clone(c.x.shape)
	s[axis] = count
	l, ok := c.l.slice(c.x.shape, axis, start, count, step)
	c.x = c.x.made(s, func(p []int) int {
		q := slices.Clone(p)
		q[axis] = start + step*p[axis]
		return c.x.element(q)
	})
	c.l = l
	return ok
}

func (c *chain) diagonal() bool {
	s := c.x.shape
	if len(s) < 2 {
		return true
	}
	i, j := c.r.IntN(len(s)), c.r.IntN(len(s)-1)
	if j >= i {
		j++
	}
	a := DiagonalOf(c.r.IntN(7)-3, i, j)
	d, _ := diagonalOf(&a, s)
	out, _ := diagonalShape(&a, []Shape{s})
	l, ok := c.l.diagonal(s, out[0], d)
	from := make([]int, len(s))
	c.x = c.x.made(out[0], func(p []int) int {
		k := 0
		for axis := range from {
			if axis != i && axis != j {
				from[axis] = p[k]
				k++
			}
		}
		from[i], from[j] = d.start[0]+p[k], d.start[1]+p[k]
		return c.x.element(from)
	})
	c.l = l
	return ok
}

func (c *chain) windows() bool {
	s := c.x.shape
	axis := c.r.IntN(len(s))
	a := SlidingWindowOf(axis, 1+c.r.IntN(3), 1+c.r.IntN(2), 1+c.r.IntN(2))
	w, err := windowOf(&a, s)
	if err != nil || len(s) > 4 {
		return true
	}
	out, _ := windowShape(&a, []Shape{s})
	l, ok := c.l.windows(s, out[0], w)
	from := make([]int, len(s))
	c.x = c.x.made(out[0], func(p []int) int {
		copy(from, p)
		from[axis] = p[axis]*w.step + p[len(s)]*w.dilation
		return c.x.element(from)
	})
	c.l = l
	return ok
}

func (c *chain) expand() bool {
	s := slices.Clone(c.x.shape)
	for i, d := range s {
		if d == 1 && c.r.IntN(2) == 0 {
			s[i] = 1 + c.r.IntN(3)
		}
	}
	lead := 0
	if len(s) < 5 && c.r.IntN(3) == 0 {
		s, lead = append(Shape{2}, s...), 1
	}
	l, ok := c.l.expand(c.x.shape, s)
	was := c.x
	c.x = was.made(s, func(p []int) int {
		q := slices.Clone(p[lead:])
		for i, d := range was.shape {
			if d == 1 {
				q[i] = 0
			}
		}
		return was.element(q)
	})
	c.l = l
	return ok
}

func (c *chain) pad() bool {
	axis, before, after := c.r.IntN(len(c.x.shape)), c.r.IntN(3), c.r.IntN(3)
	s := slices.Clone(c.x.shape)
	d := s[axis]
	s[axis] += before + after
	l, ok := c.l.pad(c.x.shape, axis, before, after, chainFill)
	c.x = c.x.made(s, func(p []int) int {
		if p[axis] < before || p[axis] >= before+d {
			return -1
		}
		q := slices.Clone(p)
		q[axis] -= before
		return c.x.element(q)
	})
	c.l = l
	return ok
}

// reshape merges neighbouring axes and splits others.
func (c *chain) reshape() bool {
	s := slices.Clone(c.x.shape)
	if k := c.r.IntN(len(s)); k > 0 && c.r.IntN(2) == 0 {
		s = append(append(s[:k-1:k-1], s[k-1]*s[k]), s[k+1:]...)
	}
	for i, d := range s {
		for _, f := range []int{2, 3} {
			if d > f && d%f == 0 && len(s) < 5 && c.r.IntN(2) == 0 {
				s = slices.Concat(s[:i:i], Shape{d / f, f}, s[i+1:])
				c.x.shape = s
				return true
			}
		}
	}
	c.x.shape = s
	return true
}

// TestLayout applies random chains of views. Where a layout can represent the result, it
// must agree with indices that are computed one by one.
func TestLayout(t *testing.T) {
	r := testutil.Rand(t)
	chains := 100_000
	if testing.Short() {
		chains = 5_000
	}
	said, all := 0, 0
	for range chains {
		s := make(Shape, 1+r.IntN(4))
		for i := range s {
			s[i] = 1 + r.IntN(6)
		}
		n, _ := s.Size()
		c := &chain{r: r, l: RowMajor(n), x: indices{shape: s}}
		for i := range n {
			c.x.at = append(c.x.at, i)
		}
		var done []string
		ok := true
		for range 1 + r.IntN(5) {
			k := r.IntN(8)
			done = append(done, []string{"permute", "slice", "expand", "pad", "reshape", "slice", "diagonal", "windows"}[k])
			if ok = []func() bool{c.permute, c.slice, c.expand, c.pad, c.reshape, c.slice, c.diagonal, c.windows}[k](); !ok {
				break
			}
			if len(c.x.at) > 20_000 {
				break
			}
		}
		if all++; !ok {
			continue
		}
		said++
		check(t, s, done, c)
		if t.Failed() {
			return
		}
	}
	if share := float64(said) / float64(all); share < 0.93 {
		t.Errorf("only %.1f%% of the chains have a layout", 100*share)
	}
}

func check(t *testing.T, s Shape, done []string, c *chain) {
	t.Helper()
	if got := c.l.Size(); got != len(c.x.at) {
		t.Errorf("%v of %v: %v has %d elements, want %d", done, s, &c.l, got, len(c.x.at))
		return
	}
	n, _ := s.Size()
	first, end := c.l.Bounds()
	if first < 0 || end > n {
		t.Errorf("%v of %v: %v reads %d to %d", done, s, &c.l, first, end)
	}
	filled := false
	for i, want := range c.x.at {
		got, in := c.l.At(i)
		if !in {
			got, filled = -1, true
		}
		if got != want {
			t.Errorf("%v of %v: %v has element %d at %d, want %d", done, s, &c.l, i, got, want)
			return
		}
		if in && (got < first || got >= end) {
			t.Errorf("%v of %v: %v has %d outside of its bounds %d to %d", done, s, &c.l, got, first, end)
			return
		}
	}
	if filled && c.l.Fill != chainFill || !filled && len(c.x.at) > 0 && c.l.Fill != 0 {
		t.Errorf("%v of %v: fill %d", done, s, c.l.Fill)
	}
	if inverse, ok := c.l.Inverse(n); ok {
		for i, at := range c.x.at {
			if back, _ := inverse.At(at); back != i {
				t.Errorf("%v of %v: the inverse of %v has %d at %d, want %d", done, s, &c.l, at, back, i)
				return
			}
		}
	} else if !slices.ContainsFunc(done, func(d string) bool { return d != "permute" && d != "reshape" }) {
		t.Errorf("%v of %v: %v has no inverse", done, s, &c.l)
	}
	// A canonical layout does not change when its factors are made canonical again.
	if again, ok := canonical(c.l.Off, c.l.Fill, c.l.Factors()); !ok || again != c.l {
		t.Errorf("%v of %v: %v is not canonical: %v", done, s, &c.l, &again)
	}
}

// TestLayoutsOfTransformers checks layouts that transformers need.
func TestLayoutsOfTransformers(t *testing.T) {
	qkv := RowMajor(5 * 3 * 8 * 64) // [tokens, q k v, heads, width]
	q, ok := qkv.slice(Shape{5, 3, 8, 64}, 1, 1, 1, 1)
	if !ok {
		t.Fatal("no slice")
	}
	heads, ok := q.permute(Shape{5, 8, 64}, []int{1, 0, 2})
	if !ok || heads.Rank != 3 || heads.Off != 512 || heads.F[0] != (Factor{8, 0, 8, 64}) || heads.F[1] != (Factor{5, 0, 5, 1536}) || heads.F[2] != (Factor{64, 0, 64, 1}) {
		t.Errorf("heads %v", &heads)
	}
	back, ok := heads.permute(Shape{8, 5, 64}, []int{1, 0, 2})
	if !ok || back != q {
		t.Errorf("back %v, want %v", &back, &q)
	}
	kv := RowMajor(2 * 5 * 64) // grouped heads, each for 4
	kv, ok = kv.expand(Shape{2, 1, 5, 64}, Shape{2, 4, 5, 64})
	if !ok || kv.Rank != 3 {
		t.Errorf("repeated %v", &kv)
	}
	windows := RowMajor(3 * 56 * 56 * 96)
	windows, ok = windows.permute(Shape{3, 8, 7, 8, 7, 96}, []int{0, 1, 3, 2, 4, 5})
	if !ok || windows.Rank != 4 {
		t.Errorf("windows %v", &windows)
	}
}

// TestLayoutBroadcastKind checks which layouts have which broadcast kind.
func TestLayoutBroadcastKind(t *testing.T) {
	for _, c := range []struct {
		s, out Shape
		want   BroadcastKind
	}{
		{Shape{}, Shape{}, Full}, {Shape{1}, Shape{1, 1}, Full}, {Shape{2, 3}, Shape{2, 3}, Full}, {Shape{0}, Shape{0}, Full},
		{Shape{}, Shape{4}, Scalar}, {Shape{1, 1}, Shape{2, 3}, Scalar}, {Shape{1}, Shape{0}, Scalar},
		{Shape{3}, Shape{2, 3}, Tiled}, {Shape{2, 3}, Shape{4, 2, 3}, Tiled}, {Shape{3}, Shape{0, 3}, Tiled},
		{Shape{2, 1}, Shape{2, 3}, Repeated}, {Shape{4, 2, 1}, Shape{4, 2, 3}, Repeated},
		{Shape{4, 1, 3}, Shape{4, 2, 3}, Strided}, {Shape{2, 1}, Shape{4, 2, 3}, Strided},
	} {
		if got, err := BroadcastOf(c.s, c.out); err != nil || got != c.want {
			t.Errorf("%v over %v: %v, %v, want %v", c.s, c.out, got, err, c.want)
		}
	}
}
