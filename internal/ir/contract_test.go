package ir

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestContract(t *testing.T) {
	x, y, z, w := NewArg(0, F32), NewArg(1, F32), NewArg(2, F32), NewArg(3, F32)
	i, j := NewArg(0, I32), NewArg(1, I32)
	p := mul(x, y)
	for _, c := range []struct{ in, want *Node }{
		{add(p, z), fma(x, y, z)},
		{add(z, p), fma(x, y, z)},
		{sub(p, z), fma(x, y, neg(z))},
		{sub(p, c(3)), fma(x, y, c(-3))},
		{sub(z, p), fma(neg(x), y, z)},
		{add(add(p, z), mul(z, w)), fma(z, w, fma(x, y, z))},
		{mul(add(p, z), c(2)), mul(fma(x, y, z), c(2))},
		{add(p, mul(z, w)), add(p, mul(z, w))},       // two products
		{add(add(p, z), p), add(add(p, z), p)},       // the product twice
		{sub(p, mul(x, y)), sub(p, p)},               // likewise
		{add(mul(i, j), i), add(mul(i, j), i)},       // integers
		{add(abs(p), z), add(abs(p), z)},             // no product is added
		{fma(x, y, mul(z, w)), fma(x, y, mul(z, w))}, // nor here
	} {
		if got, want := Format(Contract(c.in)[0], nil, nil), Format(c.want, nil, nil); got != want {
			t.Errorf("%s became %s, not %s", Format(c.in, nil, nil), got, want)
		}
	}
	// A product that is a result itself.
	s := add(p, z)
	if out := Contract(s, p); out[0].Code != Add || out[1].Code != Mul {
		t.Errorf("%s and %s", Format(out[0], nil, nil), Format(out[1], nil, nil))
	}
}

// TestContractDeep contracts an expression of the maximum depth.
func TestContractDeep(t *testing.T) {
	v := NewArg(0, F32)
	for i := range MaxDepth - 1 {
		v = sub(mul(NewArg(1, F32), c(float64(i))), v)
	}
	list, _ := Flatten(Contract(v)...)
	for _, n := range list {
		if n.Code == Mul || n.Code == Sub {
			t.Fatalf("%v is left", n.Code)
		}
	}
}

// TestContractEncloses holds what [Contract] says of the results: they are what
// products and sums may be, each rounded to one of its neighbours.
func TestContractEncloses(t *testing.T) {
	neighbours := func(n *Node, v Interval) Interval {
		if n.Code != Add && n.Code != Sub && n.Code != Mul {
			return v
		}
		lo, hi := float32(v.Lo), float32(v.Hi)
		if float64(lo) > v.Lo {
			lo = math.Nextafter32(lo, float32(math.Inf(-1)))
		}
		if float64(hi) < v.Hi {
			hi = math.Nextafter32(hi, float32(math.Inf(1)))
		}
		return Interval{float64(lo), float64(hi), v.NaN}
	}
	contracted := 0
	for range 3000 {
		values := make([]float64, 4)
		vals := []*Node{c(rand.NormFloat64()), c(1), c(-0.75)}
		for i := range values {
			values[i] = float64(float32(rand.NormFloat64() * math.Ldexp(1, rand.IntN(3)*rand.IntN(30)-20)))
			vals = append(vals, NewArg(i, F32))
		}
		for range 12 {
			f := []func(a, b *Node) *Node{add, sub, mul}[rand.IntN(3)]
			vals = append(vals, f(vals[len(vals)-1-rand.IntN(3)], vals[rand.IntN(len(vals))]))
		}
		root := vals[len(vals)-1]
		points := make([]Interval, len(values))
		for i, v := range values {
			points[i] = Point(v)
		}
		in := NewEncloser(root, neighbours).Enclose(points, nil)
		e := NewEvaluator(Contract(root)[0])
		for i, n := range e.list {
			v := e.places[i]
			switch n.Code {
			case Arg:
				e.values[i] = values[n.Index]
			case Const:
				e.values[i] = n.Value
			case Fma:
				contracted++
				fallthrough
			default:
				e.values[i] = float64(float32(evalNode(n, e.values[v[0]], e.values[v[1]], e.values[v[2]])))
			}
		}
		if got := e.values[len(e.values)-1]; !in.Contains(got) {
			t.Fatalf("%s at %v is %v, not in %v", Format(root, nil, nil), values, got, in)
		}
	}
	if contracted < 1000 {
		t.Errorf("%d products were contracted", contracted)
	}
}
