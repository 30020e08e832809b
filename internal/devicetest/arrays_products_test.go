package devicetest

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// Products that package batch composes of Mul and MatMul.
var products = []composition{
	{name: "outer", shapes: []op.Shape{{5}, {7}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Outer(x[0], x[1]) },
		want: func(x []nd) nd {
			return made(op.Shape{5, 7}, func(p []int) float64 { return x[0].at(p[0]) * x[1].at(p[1]) })
		}},
	{name: "vec_dot", shapes: []op.Shape{{4, 1, 6}, {3, 6}}, loose: 1e-5, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.VecDot(x[0], x[1], -1) },
		want: func(x []nd) nd {
			return made(op.Shape{4, 3}, func(p []int) float64 {
				return summed(6, func(i int) float64 { return x[0].at(p[0], 0, i) * x[1].at(p[1], i) })
			})
		}},
	{name: "kron", shapes: []op.Shape{{3}, {2, 4}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Kron(x[0], x[1]) },
		want: func(x []nd) nd {
			return made(op.Shape{2, 12}, func(p []int) float64 { return x[0].at(p[1]/4) * x[1].at(p[0], p[1]%4) })
		}},
	{name: "cross", shapes: []op.Shape{{3, 5}, {3, 1}}, loose: 1e-5, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Cross(x[0], x[1], 0) },
		want: func(x []nd) nd {
			return made(op.Shape{3, 5}, func(p []int) float64 {
				i, j := (p[0]+1)%3, (p[0]+2)%3
				return x[0].at(i, p[1])*x[1].at(j, 0) - x[0].at(j, p[1])*x[1].at(i, 0)
			})
		}},
	{name: "tensordot", shapes: []op.Shape{{3, 4, 5}, {6, 5, 3}}, loose: 1e-5, record: func(b *batch.Batch, x []batch.Value) batch.Value {
		return b.Tensordot(x[0], x[1], []int{0, -1}, []int{2, 1})
	}, want: func(x []nd) nd {
		return made(op.Shape{4, 6}, func(p []int) float64 {
			return summed(15, func(k int) float64 { return x[0].at(k/5, p[0], k%5) * x[1].at(p[1], k%5, k/5) })
		})
	}},
	{name: "tensordot of nothing", shapes: []op.Shape{{3, 2}, {4}}, loose: 1e-6, record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Tensordot(x[0], x[1], nil, nil) },
		want: func(x []nd) nd {
			return made(op.Shape{3, 2, 4}, func(p []int) float64 { return x[0].at(p[0], p[1]) * x[1].at(p[2]) })
		}},
	spelled("bqhd,bkhd->bhqk", op.Shape{2, 5, 3, 8}, op.Shape{2, 6, 3, 8}), spelled("bhqk,bkhd->bqhd", op.Shape{2, 3, 5, 6}, op.Shape{2, 6, 3, 8}),
	spelled("bi,ijk,bk->bj", op.Shape{4, 5}, op.Shape{5, 6, 7}, op.Shape{4, 7}), spelled("ii", op.Shape{5, 5}), spelled("iji->j", op.Shape{4, 3, 4}), spelled("ij,jk", op.Shape{3, 4}, op.Shape{4, 5}),
	spelled("ba", op.Shape{3, 4}), spelled("ij,kl->", op.Shape{3, 4}, op.Shape{2, 3}), spelled("i,i->i", op.Shape{9}, op.Shape{9}), spelled("ij,ij->", op.Shape{6, 7}, op.Shape{6, 7}),
	spelled("ij,jk->ik", op.Shape{3, 0}, op.Shape{0, 5}), spelled(" a b , b c -> c a ", op.Shape{3, 4}, op.Shape{4, 5}), spelled(",i->i", op.Shape{}, op.Shape{4}), spelled("aBc->cBa", op.Shape{2, 3, 4}),
	spelled("ab,bc,cd,de,ef,fg,gh,hi,ij,jk,kl->al", op.Shape{2, 3}, op.Shape{3, 2}, op.Shape{2, 4}, op.Shape{4, 2}, op.Shape{2, 3}, op.Shape{3, 2}, op.Shape{2, 3}, op.Shape{3, 2}, op.Shape{2, 3}, op.Shape{3, 2}, op.Shape{2, 3}),
}

// spelled is a spec without an ellipsis.
func spelled(spec string, shapes ...op.Shape) composition {
	return composition{name: "einsum " + spec, shapes: shapes, loose: 1e-4,
		record: func(b *batch.Batch, x []batch.Value) batch.Value { return b.Einsum(spec, x...) },
		want:   func(x []nd) nd { y, _ := sums(spec, x); return y }}
}

// sums evaluates a spec without an ellipsis by its definition: over all values of all
// letters. magnitudes are the sums of the magnitudes of the terms.
func sums(spec string, x []nd) (y, magnitudes nd) {
	ins, out, ok := strings.Cut(strings.ReplaceAll(spec, " ", ""), "->")
	terms := strings.Split(ins, ",")
	extents := map[byte]int{}
	var all []byte
	for i, term := range terms {
		for k := range term {
			if _, ok := extents[term[k]]; !ok {
				all = append(all, term[k])
			}
			extents[term[k]] = x[i].s[k]
		}
	}
	if !ok {
		slices.Sort(all)
		for _, l := range all {
			if strings.Count(ins, string(l)) == 1 {
				out += string(l)
			}
		}
	}
	shape := func(ls string) op.Shape {
		s := op.Shape{}
		for k := range ls {
			s = append(s, extents[ls[k]])
		}
		return s
	}
	zero := func([]int) float64 { return 0 }
	y, magnitudes = made(shape(out), zero), made(shape(out), zero)
	at := map[byte]int{}
	place := func(ls string, s op.Shape) int {
		i := 0
		for k := range ls {
			i = i*s[k] + at[ls[k]]
		}
		return i
	}
	made(shape(string(all)), func(p []int) float64 {
		for k, v := range p {
			at[all[k]] = v
		}
		v := 1.0
		for i, term := range terms {
			v *= x[i].data[place(term, x[i].s)]
		}
		i := place(out, y.s)
		y.data[i] += v
		magnitudes.data[i] += math.Abs(v)
		return 0
	})
	return y, magnitudes
}

// randomEinsum compares a random spec with its definition. It has one to four operands with up to four axes.
// There are six letters, which may repeat, and sometimes an ellipsis.
func randomEinsum(t *testing.T, dev *device.Device, g *generator) {
	const names = "abCdef"
	var extents [len(names)]int
	for i := range extents {
		extents[i] = 1 + g.IntN(4)
	}
	dots := g.IntN(3) == 0 // the last two letters are those of the ellipsis
	few := len(names)
	if dots {
		few -= 2
	}
	var plain, spec []string // the spec with letters in place of the ellipsis, and the spec that is tested
	var x []nd
	b := batch.New(dev)
	var in []batch.Value
	used := ""
	for range 1 + g.IntN(4) {
		term := ""
		for range g.IntN(4) {
			term += string(names[g.IntN(few)])
		}
		s, letters := op.Shape{}, ""
		given := term
		if dots {
			tail := names[len(names)-g.IntN(3):]
			at := g.IntN(len(term) + 1)
			given, letters = term[:at]+"..."+term[at:], term[:at]+tail+term[at:]
		} else {
			letters = term
		}
		for _, l := range letters {
			s = append(s, extents[strings.IndexRune(names, l)])
		}
		y := made(s, func([]int) float64 { return float64(float32(g.NormFloat64())) })
		data := make([]float32, len(y.data))
		for i, v := range y.data {
			data[i] = float32(v)
		}
		in, x, used = append(in, b.Reshape(b.Upload(data), s...)), append(x, y), used+letters
		plain, spec = append(plain, letters), append(spec, given)
	}
	out, given := "", ""
	if dots {
		given = "..."
		for _, l := range names[few:] {
			if strings.ContainsRune(used, l) {
				out += string(l)
			}
		}
	}
	for _, i := range g.Perm(few) {
		if l := names[i]; strings.IndexByte(used, l) >= 0 && g.IntN(2) == 0 {
			out, given = out+string(l), given+string(l)
		}
	}
	text := strings.Join(spec, ",") + "->" + given
	y := b.Einsum(text, in...)
	want, magnitudes := sums(strings.Join(plain, ",")+"->"+out, x)
	t.Run(text, func(t *testing.T) {
		compare(t, b, y, want, func(i int) float64 { return 1e-5 * (1 + magnitudes.data[i]) })
	})
}
