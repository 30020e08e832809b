//go:build !js || !nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/kernel"
)

// rowsTimesWords gives each lane group some rows of w and reads their blocks by words: each decoded
// word is used for all rows of a, and each loaded element of a for all rows of w.
func rowsTimesWords(b *kernel.Builder, s matMulQSpec, e *epilogue, m, k, n kernel.U32) {
	u := func(v int) kernel.U32 { return kernel.U(uint32(v)) }
	t := newLaneGroup(b, s.groupLayout)
	a := inputRuns(b, "a", s.Type, 4)
	w := inputWords(b, "w", s.Blocks)
	bias := optional(b, "bias", s.Type, s.Bias)
	if _, own := wordFormats()[w.format]; !own || s.rows*s.of >= 32 {
		b.PreferRegisters()
	}
	put := e.result(b, s.Type)
	f, _ := wordFormatOf(w.format)
	elements, bytes := u(w.format.Elements()), u(w.format.Bytes())
	blocks := k.Div(elements)

	first := t.number.Mul(u(s.of))
	rows := make([]kernel.U32, s.of)
	sums := make([][]kernel.Var[kernel.F32], s.of)
	for i := range rows {
		// Lane groups beyond the end compute the last row again.
		rows[i] = first.Add(u(i)).Min(n.Sub(u(1))).Mul(blocks)
		sums[i] = kernel.NewVars(b, "sum", s.rows, kernel.F(0))
	}
	as := make([]kernel.U32, s.rows)
	for i := range as {
		as[i] = u(i)
		if i > 0 {
			as[i] = as[i].Min(m.Sub(u(1)))
		}
		as[i] = as[i].Mul(k)
	}
	add := func(count int, at kernel.U32) {
		// All loads of an iteration come before the first computation, so that they overlap.
		groups := make([][][]wordGroup, count)
		places := make([]kernel.U32, count)
		for c := range count {
			number := at.Add(u(c * s.GroupLanes))
			block, unit := number.Div(u(f.units)), number.Mod(u(f.units))
			places[c] = block.Mul(elements)
			for i := range rows {
				groups[c] = append(groups[c], f.read(w, rows[i].Add(block).Mul(bytes), unit))
			}
		}
		for c := range count {
			for r := range as {
				for g := range groups[c][0] {
					var xs []kernel.Vec4F
					for _, q := range groups[c][0][g].quads {
						v := a(as[r].Add(places[c]).Add(q.at).Shr(u(2)))
						xs = append(xs, b.Vec4F(v[0], v[1], v[2], v[3]))
					}
					for i := range rows {
						groups[c][i][g].addTo(&sums[i][r], xs)
					}
				}
			}
		}
	}
	units := blocks.Mul(u(f.units))
	whole := units.Div(u(s.GroupLanes * s.ahead)).Mul(u(s.GroupLanes * s.ahead))
	if s.ahead > 1 {
		b.ForStep(t.lane, whole, u(s.GroupLanes*s.ahead), func(at kernel.U32) { add(s.ahead, at) })
	} else {
		whole = u(0)
	}
	b.ForStep(whole.Add(t.lane), units, u(s.GroupLanes), func(at kernel.U32) { add(1, at) })
	for i := range rows {
		row := first.Add(u(i))
		for r := range as {
			total := t.sum(sums[i][r].Get())
			b.If(t.lane.Eq(u(0)).And(row.Lt(n)).And(u(r).Lt(m)), func() {
				put(u(r).Mul(n).Add(row), kernel.Dyn(bias(row, total)))
			})
		}
	}
}

// addTo adds the products of the elements of a group and the elements xs to a sum.
func (g *wordGroup) addTo(v *kernel.Var[kernel.F32], xs []kernel.Vec4F) {
	sum := g.quads[0].v.Mul(xs[0])
	for j := 1; j < len(xs); j++ {
		sum = g.quads[j].v.MulAdd(xs[j], sum)
	}
	v.Set(g.scale.MulAdd(sum.Sum(), v.Get()))
	if g.least == nil {
		return
	}
	all := xs[0]
	for _, x := range xs[1:] {
		all = all.Add(x)
	}
	v.Set(v.Get().Sub(g.least.Mul(all.Sum())))
}
