package devicetest

import (
	"math"
	"math/rand/v2"
	"slices"
)

// This file has the references of networks_loops_test.go: plain loops in float64.

// ndarray is a row-major array.
type ndarray struct {
	s []int
	v []float64
}

func newNDArray(s ...int) ndarray {
	n := 1
	for _, d := range s {
		n *= d
	}
	return ndarray{s, make([]float64, n)}
}

// normals returns an array of random float32 numbers.
func normals(rng *rand.Rand, s ...int) ndarray {
	a := newNDArray(s...)
	for i := range a.v {
		a.v[i] = float64(float32(rng.NormFloat64()))
	}
	return a
}

func (a ndarray) place(i []int) int {
	p := 0
	for k, d := range a.s {
		p = p*d + i[k]
	}
	return p
}

func (a ndarray) at(i ...int) float64     { return a.v[a.place(i)] }
func (a ndarray) set(v float64, i ...int) { a.v[a.place(i)] = v }

// inside reports whether the array has an element i.
func (a ndarray) inside(i ...int) bool {
	for k, d := range a.s {
		if i[k] < 0 || i[k] >= d {
			return false
		}
	}
	return true
}

// each calls f for all indices of a shape.
func each(s []int, f func(i []int)) {
	i := make([]int, len(s))
	for range len(newNDArray(s...).v) {
		f(i)
		for k := len(s) - 1; k >= 0; k-- {
			if i[k]++; i[k] < s[k] {
				break
			}
			i[k] = 0
		}
	}
}

// sliding describes how windows move. All axes have the same numbers.
type sliding struct{ size, stride, before, after, dilation int }

func (w sliding) count(n int, ceil bool) int {
	room := n + w.before + w.after - (w.size-1)*w.dilation - 1
	m := room/w.stride + 1
	if ceil && room%w.stride != 0 && m*w.stride < w.before+n {
		m++
	}
	return m
}

// pool returns f of the elements of each window of x [n c ...], with their places in x, and
// the number of places in x and its padding.
func pool(x ndarray, w sliding, ceil bool, f func(v []float64, at []int, padded int) float64) ndarray {
	out := slices.Clone(x.s)
	for i := 2; i < len(out); i++ {
		out[i] = w.count(x.s[i], ceil)
	}
	y := newNDArray(out...)
	window := slices.Repeat([]int{w.size}, len(out)-2)
	each(out, func(o []int) {
		var v []float64
		var at []int
		padded := 0
		each(window, func(k []int) {
			i, within := slices.Clone(o), true
			for d := range k {
				i[2+d] = o[2+d]*w.stride + k[d]*w.dilation - w.before
				within = within && i[2+d] < x.s[2+d]+w.after
			}
			if within {
				padded++
			}
			if x.inside(i...) {
				v, at = append(v, x.at(i...)), append(at, x.place(i))
			}
		})
		y.set(f(v, at, padded), o...)
	})
	return y
}

// convolve returns the correlation of x [n c ...] with w [o c/groups ...].
func convolve(x, w, bias ndarray, s sliding, groups int) ndarray {
	out := slices.Clone(x.s)
	out[1] = w.s[0]
	for i := 2; i < len(out); i++ {
		out[i] = sliding{w.s[i], s.stride, s.before, s.after, s.dilation}.count(x.s[i], false)
	}
	y := newNDArray(out...)
	each(out, func(o []int) {
		sum := bias.at(o[1])
		each(w.s[1:], func(k []int) {
			i := []int{o[0], o[1]/(w.s[0]/groups)*w.s[1] + k[0]}
			for d := range k[1:] {
				i = append(i, o[2+d]*s.stride+k[1+d]*s.dilation-s.before)
			}
			if x.inside(i...) {
				sum += x.at(i...) * w.at(append([]int{o[1]}, k...)...)
			}
		})
		y.set(sum, o...)
	})
	return y
}

// spreadOut returns the transposed convolution of x [n c ...] with w [c o/groups ...].
func spreadOut(x, w, bias ndarray, s sliding, groups, more int) ndarray {
	out := slices.Clone(x.s)
	out[1] = w.s[1] * groups
	for i := 2; i < len(out); i++ {
		out[i] = (x.s[i]-1)*s.stride + (w.s[i]-1)*s.dilation + 1 + more - s.before - s.after
	}
	y := newNDArray(out...)
	each(out, func(o []int) { y.set(bias.at(o[1]), o...) })
	each(x.s, func(i []int) {
		each(w.s[1:], func(k []int) {
			o := []int{i[0], i[1]/(x.s[1]/groups)*w.s[1] + k[0]}
			for d := range k[1:] {
				o = append(o, i[2+d]*s.stride+k[1+d]*s.dilation-s.before)
			}
			if y.inside(o...) {
				y.v[y.place(o)] += x.at(i...) * w.at(append([]int{i[1]}, k...)...)
			}
		})
	})
	return y
}

// resample returns x [r n] with rows of m elements: at place(i) the mean of the elements,
// weighted by a kernel of the distance. Elements beyond the ends are copies of the ends.
func resample(x ndarray, m int, place, kernel func(float64) float64, reach int) ndarray {
	y := newNDArray(x.s[0], m)
	n := x.s[1]
	each(y.s, func(o []int) {
		p := place(float64(o[1]))
		sum, weights := 0.0, 0.0
		for k := int(math.Floor(p)) - reach; k <= int(math.Floor(p))+reach+1; k++ {
			if w := kernel(p - float64(k)); w != 0 {
				sum += w * x.at(o[0], min(max(k, 0), n-1))
				weights += w
			}
		}
		y.set(sum/weights, o...)
	})
	return y
}

// bilinear returns x [n c h w] at the places of grid [n a b 2]; beyond the borders there
// are zeros or copies of them.
func bilinear(x, grid ndarray, corners, border bool) ndarray {
	y := newNDArray(x.s[0], x.s[1], grid.s[1], grid.s[2])
	place := func(g float64, n int) float64 {
		p := ((g+1)*float64(n) - 1) / 2
		if corners {
			p = (g + 1) / 2 * float64(n-1)
		}
		if border {
			p = min(max(p, 0), float64(n-1))
		}
		return p
	}
	each(y.s, func(o []int) {
		h := place(grid.at(o[0], o[2], o[3], 1), x.s[2])
		w := place(grid.at(o[0], o[2], o[3], 0), x.s[3])
		sum := 0.0
		for i := int(math.Floor(h)); i <= int(math.Floor(h))+1; i++ {
			for j := int(math.Floor(w)); j <= int(math.Floor(w))+1; j++ {
				if x.inside(o[0], o[1], i, j) {
					sum += (1 - math.Abs(h-float64(i))) * (1 - math.Abs(w-float64(j))) * x.at(o[0], o[1], i, j)
				}
			}
		}
		y.set(sum, o...)
	})
	return y
}

// network has the operands of a recurrent network.
type network struct {
	x, w, r, bias, h, c, peep ndarray
	after                     bool
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// recur returns all states [t d n h], the last ones and the last cells [d n h].
func (k *network) recur(gates int) (y, h, c ndarray) {
	steps, n, width, directions := k.x.s[0], k.x.s[1], k.r.s[2], k.r.s[0]
	y, h, c = newNDArray(steps, directions, n, width), newNDArray(directions, n, width), newNDArray(directions, n, width)
	copy(h.v, k.h.v)
	copy(c.v, k.c.v)
	for d := range directions {
		for i := range steps {
			t := i
			if d == 1 {
				t = steps - 1 - i
			}
			for row := range n {
				k.step(gates, d, t, row, h, c)
				for j := range width {
					y.set(h.at(d, row, j), t, d, row, j)
				}
			}
		}
	}
	return y, h, c
}

// step changes the state and the cell of one row of one direction.
func (k *network) step(gates, d, t, row int, h, c ndarray) {
	width := k.r.s[2]
	old := make([]float64, width)
	for j := range old {
		old[j] = h.at(d, row, j)
	}
	in := func(g, j int) float64 {
		sum := k.bias.at(d, g*width+j)
		for i := range k.x.s[2] {
			sum += k.x.at(t, row, i) * k.w.at(d, g*width+j, i)
		}
		return sum
	}
	state := func(g, j int, h []float64) float64 {
		sum := k.bias.at(d, (gates+g)*width+j)
		for i := range width {
			sum += h[i] * k.r.at(d, g*width+j, i)
		}
		return sum
	}
	reset := slices.Clone(old)
	for j := range width {
		if gates == 3 {
			reset[j] *= sigmoid(in(1, j) + state(1, j, old))
		}
	}
	for j := range width {
		g := func(i int) float64 { return in(i, j) + state(i, j, old) }
		switch gates {
		case 1:
			h.set(math.Tanh(g(0)), d, row, j)
		case 3:
			z, next := sigmoid(g(0)), math.Tanh(in(2, j)+state(2, j, reset))
			if k.after {
				next = math.Tanh(in(2, j) + sigmoid(g(1))*state(2, j, old))
			}
			h.set((1-z)*next+z*old[j], d, row, j)
		case 4:
			cell := c.at(d, row, j)
			i, f := sigmoid(g(0)+k.peep.at(d, j)*cell), sigmoid(g(2)+k.peep.at(d, 2*width+j)*cell)
			cell = f*cell + i*math.Tanh(g(3))
			c.set(cell, d, row, j)
			h.set(sigmoid(g(1)+k.peep.at(d, width+j)*cell)*math.Tanh(cell), d, row, j)
		}
	}
}
