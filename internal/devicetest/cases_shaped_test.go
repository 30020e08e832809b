package devicetest

import (
	"math"
	"slices"

	"github.com/rayo-go/rayo/op"
)

// Shaped returns the cases of an operation of class [op.Shaped], or none if it
// does not take the element type.
func Shaped(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	g := newGenerator(seed)
	var cases []Case
	switch o {
	case op.MatMul:
		cases = append(g.matMul(d, short), g.mixedProducts(o, d)...)
	case op.MatVec:
		cases = append(g.matVec(d, short), g.mixedProducts(o, d)...)
	case op.MatMulQ:
		cases = g.matMulQ(d, short)
	case op.MatMulExperts:
		cases = g.matMulExperts(d)
	case op.Conv2D:
		cases = g.conv2D(d, short)
	case op.Attention:
		cases = g.attention(d, short)
	case op.Rope:
		cases = g.rope(d)
	case op.TopK:
		cases = g.topK(d)
	case op.Sort:
		cases = g.sort(d, short)
	case op.Transpose:
		cases = g.transpose(d)
	default:
		if list, ok := lists[o]; ok {
			cases = list.cases(g, d)
		}
		if f, ok := factorings[o]; ok && d == op.F32 {
			cases = f.cases(g, short)
		}
	}
	for _, c := range cases {
		a := c.Attrs()
		if _, err := o.Types(&a, c.Types()); err != nil {
			return nil
		}
	}
	return cases
}

// activations are the activations of products: none, operations of the catalogue with and
// without parameters, and a user-defined operation.
var activations = []struct {
	o      *op.Operation
	params op.Attrs
}{
	{}, {o: op.Relu}, {o: op.Gelu}, {o: op.LeakyRelu}, {o: op.Clip, params: op.Floats(-0.5, 0.5)},
	{o: op.Unary("softsign", func(x op.Expr) op.Expr { return x.Div(x.Abs().Add(op.Const(1))) })},
}

func (g *generator) matMul(d op.DType, short bool) []Case {
	var cases []Case
	sizes := [][3]int{
		{1, 1, 1}, {2, 3, 4}, {1, 64, 1}, {1, 65, 33}, {33, 65, 1}, {8, 16, 16}, {17, 31, 63}, {64, 64, 64},
		{65, 63, 129}, {5, 300, 7}, {127, 13, 50}, {3, 0, 4}, {0, 4, 3}, {4, 3, 0}, {13, 1, 19}, {1, 1025, 70}, {9, 260, 200},
	}
	if !short {
		sizes = append(sizes, [3]int{129, 517, 261}, [3]int{1, 2050, 300}, [3]int{300, 2050, 1}, [3]int{8, 700, 333})
	}
	put := func(lead op.Shape, shared bool, s [3]int, opts op.MatMulOpts, bias bool, value func(op.DType) float64) {
		m, k, n := s[0], s[1], s[2]
		as, bs := op.Shape{m, k}, op.Shape{k, n}
		if opts.TransA {
			as = op.Shape{k, m}
		}
		if opts.TransB {
			bs = op.Shape{n, k}
		}
		as = append(append(op.Shape{}, lead...), as...)
		if !shared {
			bs = append(append(op.Shape{}, lead...), bs...)
		}
		c := Case{Op: op.MatMul, Options: opts, In: []Tensor{g.tensor(d, as, value), g.tensor(d, bs, value)}}
		if bias {
			c.In = append(c.In, g.tensor(d, op.Shape{n}, g.tame))
		}
		cases = append(cases, c)
	}
	whole := func(d op.DType) float64 { return d.Round(float64(g.IntN(7) - 3)) }
	for i, s := range sizes {
		big := float64(s[0])*float64(s[1])*float64(s[2]) > 2e5
		for t := range 4 {
			if big && t != i%4 && (d != op.F32 || s[0]*s[1]*s[2] > 2e6) {
				continue
			}
			act := activations[(i+t)%len(activations)]
			opts := op.MatMulOpts{TransA: t&1 != 0, TransB: t&2 != 0}
			put(nil, false, s, opts, t == 3, whole)
			opts.Act, opts.ActParams, opts.TF32 = act.o, act.params, d == op.F32 && t == (i+1)%4
			put(nil, false, s, opts, t%2 == 0, g.tame)
		}
	}
	for i, lead := range []op.Shape{{3}, {2, 3}, {0}, {1}, {17}} {
		for t := range 4 {
			opts := op.MatMulOpts{TransA: t&1 != 0, TransB: t&2 != 0, TF32: d == op.F32 && i%2 == 1}
			put(lead, t == i%4, [3]int{5, 18, 7 + 16*(i%2)}, opts, t == 1, g.tame)
		}
	}
	// NaN and infinities must reach the elements that depend on them and no others. Kernels pad tiles, and a
	// product of a padding zero and a NaN would be NaN.
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		c := Case{Op: op.MatMul, In: []Tensor{g.tensor(d, op.Shape{13, 19}, g.tame), g.tensor(d, op.Shape{19, 37}, g.tame)}}
		c.In[0].Data[5*19+18] = v
		c.In[1].Data[3*37+36] = v
		cases = append(cases, c)
	}
	return cases
}

func (g *generator) matVec(d op.DType, short bool) []Case {
	var cases []Case
	sizes := [][2]int{{1, 1}, {3, 5}, {64, 64}, {65, 63}, {1, 257}, {257, 1}, {0, 3}, {3, 0}, {129, 515}}
	if !short {
		sizes = append(sizes, [2]int{301, 2051})
	}
	for _, s := range sizes {
		for _, trans := range []bool{false, true} {
			a := op.Shape{s[0], s[1]}
			if trans {
				a = op.Shape{s[1], s[0]}
			}
			cases = append(cases, Case{Op: op.MatVec, Options: op.MatVecOpts{Trans: trans},
				In: []Tensor{g.tensor(d, a, g.tame), g.tensor(d, op.Shape{s[1]}, g.tame)}})
		}
	}
	return cases
}

func (g *generator) conv2D(d op.DType, short bool) []Case {
	var cases []Case
	put := func(x, w op.Shape, o op.Conv2DOpts, bias bool) {
		cases = append(cases, g.convolution(d, x, w, o, bias))
	}
	pair := func(a, b int) [2]int { return [2]int{a, b} }
	put(op.Shape{1, 1, 3, 3}, op.Shape{1, 1, 3, 3}, op.Conv2DOpts{}, false)
	put(op.Shape{1, 1, 1, 1}, op.Shape{1, 1, 1, 1}, op.Conv2DOpts{}, true)
	put(op.Shape{2, 3, 9, 17}, op.Shape{4, 3, 3, 3}, op.Conv2DOpts{Pad: pair(1, 1), Act: op.Relu}, true)
	put(op.Shape{1, 1, 20, 65}, op.Shape{1, 1, 5, 5}, op.Conv2DOpts{Pad: pair(2, 2)}, false)
	put(op.Shape{1, 3, 16, 19}, op.Shape{2, 3, 1, 1}, op.Conv2DOpts{}, true)
	put(op.Shape{2, 4, 11, 13}, op.Shape{6, 2, 3, 2}, op.Conv2DOpts{Stride: pair(2, 3), Pad: pair(1, 0), Groups: 2}, true)
	put(op.Shape{1, 5, 8, 8}, op.Shape{5, 1, 3, 3}, op.Conv2DOpts{Groups: 5, Pad: pair(1, 1), Act: op.Gelu}, false)
	put(op.Shape{1, 2, 13, 14}, op.Shape{3, 2, 3, 3}, op.Conv2DOpts{Dilation: pair(2, 3)}, false)
	put(op.Shape{1, 1, 4, 4}, op.Shape{1, 1, 3, 3}, op.Conv2DOpts{Pad: pair(5, 4)}, true) // windows that cover only padding
	put(op.Shape{1, 2, 7, 5}, op.Shape{2, 2, 7, 5}, op.Conv2DOpts{}, false)
	put(op.Shape{1, 1, 30, 31}, op.Shape{1, 1, 3, 3}, op.Conv2DOpts{Stride: pair(3, 2), Pad: pair(1, 1), Act: op.LeakyRelu}, false)
	put(op.Shape{0, 1, 3, 3}, op.Shape{2, 1, 2, 2}, op.Conv2DOpts{}, true)
	put(op.Shape{1, 0, 3, 3}, op.Shape{2, 0, 2, 2}, op.Conv2DOpts{}, true)
	put(op.Shape{1, 1, 3, 3}, op.Shape{0, 1, 2, 2}, op.Conv2DOpts{}, false)
	put(op.Shape{1, 1, 4, 4}, op.Shape{1, 1, 3, 3}, op.Conv2DOpts{Stride: pair(2, 3)}, false) // the stride leaves only one place
	put(op.Shape{1, 2, 3, 5}, op.Shape{2, 2, 2, 3}, op.Conv2DOpts{Stride: pair(1<<30, 1)}, true)
	for range 4 {
		cases = append(cases, g.anyConv2D(d))
	}
	if !short {
		put(op.Shape{1, 16, 28, 28}, op.Shape{24, 16, 3, 3}, op.Conv2DOpts{Pad: pair(1, 1)}, true)
		put(op.Shape{3, 1, 28, 28}, op.Shape{8, 1, 5, 5}, op.Conv2DOpts{Act: op.Relu}, true)
	}
	return cases
}

// convolution returns a case with images of shape x and windows of shape w.
func (g *generator) convolution(d op.DType, x, w op.Shape, o op.Conv2DOpts, bias bool) Case {
	c := Case{Op: op.Conv2D, Options: o, In: []Tensor{g.tensor(d, x, g.tame), g.tensor(d, w, g.tame)}}
	if bias {
		c.In = append(c.In, g.tensor(d, op.Shape{w[0]}, g.tame))
	}
	return c
}

// anyConv2D returns a small random convolution whose window fits into the image.
func (g *generator) anyConv2D(d op.DType) Case {
	o := op.Conv2DOpts{Groups: 1 + g.IntN(3)}
	channels, windows := o.Groups*(1+g.IntN(3)), o.Groups*(1+g.IntN(3))
	x, w := op.Shape{1 + g.IntN(2), channels, 0, 0}, op.Shape{windows, channels / o.Groups, 0, 0}
	for i := range 2 {
		o.Stride[i], o.Pad[i], o.Dilation[i] = 1+g.IntN(4), g.IntN(4), 1+g.IntN(3)
		w[2+i] = 1 + g.IntN(4)
		x[2+i] = max(1, o.Dilation[i]*(w[2+i]-1)+1-2*o.Pad[i]) + g.IntN(7)
	}
	return g.convolution(d, x, w, o, g.IntN(2) == 0)
}

func (g *generator) rope(d op.DType) []Case {
	var cases []Case
	for _, s := range []op.Shape{{1, 1, 2}, {5, 2, 8}, {3, 4, 64}, {17, 3, 34}, {0, 2, 4}, {2, 0, 4}, {2, 2, 0}, {70, 1, 128}} {
		for i, o := range []op.RopeOpts{{}, {Start: 1000, Interleaved: true}, {Start: -5, Theta: 500000}, {Theta: 100, Interleaved: true}} {
			c := Case{Op: op.Rope, Options: o, In: []Tensor{g.tensor(d, s, g.tame)}}
			if i%2 == 1 {
				p := g.tensor(op.I32, op.Shape{s[0]}, g.tame)
				for j := range p.Data {
					p.Data[j] = float64(g.IntN(5000))
				}
				c.In = append(c.In, p)
			}
			cases = append(cases, c)
			if i < 2 {
				f := g.tensor(op.F32, op.Shape{s[2] / 2}, func(op.DType) float64 { return op.F32.Round(g.Float64()) })
				positions := Tensor{Type: op.InvalidType}
				if i%2 == 1 {
					positions = c.In[1]
				}
				c.In = []Tensor{c.In[0], positions, f}
				cases = append(cases, c)
			}
		}
	}
	return cases
}

func (g *generator) topK(d op.DType) []Case {
	var cases []Case
	few := func(op.DType) float64 { return float64(g.IntN(4)) }
	for _, s := range []op.Shape{{1}, {7}, {64}, {3, 65}, {2, 3, 17}, {0, 5}, {5, 0}, {997}, {1400}, {4, 300}} {
		n := s[len(s)-1]
		for _, k := range []int{0, 1, 5, n / 2, n} {
			if k > n {
				continue
			}
			for _, value := range []func(op.DType) float64{g.tame, few, g.wild} {
				cases = append(cases, Case{Op: op.TopK, Options: op.TopKOpts{K: k}, In: []Tensor{g.tensor(d, s, value)}})
			}
		}
	}
	return cases
}

func (g *generator) sort(d op.DType, short bool) []Case {
	var cases []Case
	few := func(op.DType) float64 { return float64(g.IntN(4)) }
	special := func(d op.DType) float64 {
		if !d.Float() {
			return g.wild(d)
		}
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1, -1}[g.IntN(7)]
	}
	shapes := []op.Shape{{1}, {2}, {3, 2}, {7}, {64}, {3, 65}, {2, 3, 17}, {0, 5}, {5, 0}, {2, 255}, {257}, {3, 1024}, {1025}, {2049}}
	if !short {
		shapes = append(shapes, op.Shape{2, 5000})
	}
	for _, s := range shapes {
		for _, descending := range []bool{false, true} {
			for _, value := range []func(op.DType) float64{g.tame, few, g.wild, special} {
				cases = append(cases, Case{Op: op.Sort, Options: op.SortOpts{Descending: descending}, In: []Tensor{g.tensor(d, s, value)}})
			}
		}
	}
	return cases
}

func (g *generator) transpose(d op.DType) []Case {
	var cases []Case
	for _, s := range []op.Shape{{1, 1}, {2, 3}, {8, 8}, {16, 17}, {65, 63}, {1, 130}, {130, 1}, {0, 3}, {3, 0}, {3, 5, 7}, {2, 2, 33, 20}, {300, 129}} {
		cases = append(cases, Case{Op: op.Transpose, In: []Tensor{g.tensor(d, s, g.wild)}})
	}
	return cases
}

// Cases returns the cases of an operation over operands of element type d.
func Cases(o *op.Operation, d op.DType, seed uint64, short bool) []Case {
	switch o.Class() {
	case op.Elementwise:
		return Elementwise(o, d, seed, short)
	case op.Shaped:
		return Shaped(o, d, seed, short)
	}
	a := o.Defaults()
	if _, err := o.Types(&a, slices.Repeat([]op.DType{d}, len(o.Inputs()))); err != nil {
		return nil
	}
	switch {
	case o.Class() == op.Reduction && d.Float():
		return Reduction(o, d, seed, short)
	case o.Class() == op.Reduction:
		return wholeReduction(o, d, seed, short)
	case o.Scans():
		return scans(o, d, seed, short)
	}
	return Row(o, d, seed, short)
}
