package lib

import "github.com/rayo-go/rayo/kernel"

// crew is how a workgroup is divided: into teams, each of which works on one row
// or one part of a row.
type crew struct {
	Team      int  // lanes of a team, a power of two
	Teams     int  // of a workgroup
	Subgroups bool // reduce by operations of subgroups; one team only
}

func (c crew) lanes() int { return c.Team * c.Teams }

// team is the team of a lane.
type team struct {
	crew
	b      *kernel.Builder
	lane   kernel.U32 // in the team
	index  kernel.U32 // of the team in the workgroup
	number kernel.U32 // of the team in the grid
	f      kernel.Array[kernel.F32]
	u      kernel.Array[kernel.U32]
	hasF   bool
	hasU   bool
	read   use // what lanes may still be reading
}

// use is a set of the arrays of a team.
type use uint8

const (
	useSums use = 1 << iota
	useKeys
)

// newTeam sets the local size and returns the team of the lane. Teams count
// through the grid as by [kernel.Builder.Group].
func newTeam(b *kernel.Builder, c crew) *team {
	b.LocalSize(c.lanes(), 1, 1)
	t := &team{crew: c, b: b}
	lane := b.LocalX()
	t.lane, t.index = lane.And(kernel.U(uint32(c.Team-1))), lane.Div(kernel.U(uint32(c.Team)))
	if c.Teams == 1 {
		t.lane, t.index = lane, kernel.U(0)
	}
	t.number = b.Group().Mul(kernel.U(uint32(c.Teams))).Add(t.index)
	return t
}

// groups returns the grid for n teams.
func (c crew) groups(n int) kernel.Size { return kernel.GridOf((n-1)/c.Teams + 1) }

// sum returns the sum of x over the team, in every lane of it. All lanes of the
// workgroup come here.
func (t *team) sum(x kernel.F32) kernel.F32 {
	return combine(t, t.sums(), useSums, x, kernel.F32.Add, kernel.SubgroupAdd[kernel.F32])
}

func (t *team) sums() kernel.Array[kernel.F32] {
	if !t.hasF {
		t.f, t.hasF = kernel.Shared[kernel.F32](t.b, "team_sums", t.lanes()), true
	}
	return t.f
}

// most returns the greatest x of the team, likewise.
func (t *team) most(x kernel.U32) kernel.U32 {
	return combine(t, t.keys(), useKeys, x, kernel.U32.Max, kernel.SubgroupMax[kernel.U32])
}

// least returns the least x of the team, likewise.
func (t *team) least(x kernel.U32) kernel.U32 {
	return combine(t, t.keys(), useKeys, x, kernel.U32.Min, kernel.SubgroupMin[kernel.U32])
}

func (t *team) keys() kernel.Array[kernel.U32] {
	if !t.hasU {
		t.u, t.hasU = kernel.Shared[kernel.U32](t.b, "team_keys", t.lanes()), true
	}
	return t.u
}

// combine reduces x over the team, in an order that is the same each time.
func combine[T kernel.F32 | kernel.U32](t *team, s kernel.Array[T], u use, x T, f func(a, b T) T, sub func(*kernel.Builder, T) T) T {
	b := t.b
	if t.Team == 1 {
		return x
	}
	t.wait(u)
	if t.Subgroups {
		// Subgroups may have any size, so that it is not known how many there are.
		x = sub(b, x)
		b.If(b.SubgroupLane().Eq(kernel.U(0)), func() { s.Set(b.Subgroup(), x) })
		b.Barrier()
		r := kernel.NewVar(b, "r", s.At(kernel.U(0)))
		b.For(kernel.U(1), kernel.U(uint32(t.lanes())).Div(b.SubgroupSize()), func(i kernel.U32) {
			r.Set(f(r.Get(), s.At(i)))
		})
		return r.Get()
	}
	me := b.LocalX()
	s.Set(me, x)
	b.Barrier()
	for d := t.Team / 2; d > 0; d /= 2 {
		b.If(t.lane.Lt(kernel.U(uint32(d))), func() {
			s.Set(me, f(s.At(me), s.At(me.Add(kernel.U(uint32(d))))))
		})
		b.Barrier()
	}
	return s.At(me.Sub(t.lane))
}

// again says that the lanes may still be reading what was shared last: at the
// beginning of a loop.
func (t *team) again() { t.read = useSums | useKeys }

// wait waits until an array may be written.
func (t *team) wait(u use) {
	if t.read&u != 0 {
		t.b.Barrier()
	}
	t.read = u
}

// scan returns the sum of x over the lanes of the team before this one, and over
// all of them. All lanes of the workgroup come here.
func (t *team) scan(x kernel.F32) (before, whole kernel.F32) {
	b, me := t.b, t.b.LocalX()
	s := t.sums()
	t.wait(useSums)
	if t.Subgroups {
		all := kernel.SubgroupAdd(b, x)
		b.If(b.SubgroupLane().Eq(kernel.U(0)), func() { s.Set(b.Subgroup(), all) })
		start, end := kernel.NewVar(b, "start", kernel.F(0)), kernel.NewVar(b, "end", kernel.F(0))
		inner := kernel.SubgroupScanAdd(b, x)
		b.Barrier()
		b.For(kernel.U(0), kernel.U(uint32(t.lanes())).Div(b.SubgroupSize()), func(i kernel.U32) {
			b.If(i.Eq(b.Subgroup()), func() { start.Set(end.Get()) })
			end.Set(end.Get().Add(s.At(i)))
		})
		return start.Get().Add(inner), end.Get()
	}
	sum := kernel.NewVar(b, "sum", x)
	s.Set(me, x)
	for d := 1; d < t.Team; d *= 2 {
		b.Barrier()
		b.If(t.lane.Ge(kernel.U(uint32(d))), func() { sum.Set(s.At(me.Sub(kernel.U(uint32(d)))).Add(sum.Get())) })
		b.Barrier()
		s.Set(me, sum.Get())
	}
	b.Barrier()
	first := me.Sub(t.lane)
	// Not the sum less x: that is NaN where x is infinite.
	previous := kernel.NewVar(b, "previous", kernel.F(0))
	b.If(t.lane.Gt(kernel.U(0)), func() { previous.Set(s.At(me.Sub(kernel.U(1)))) })
	return previous.Get(), s.At(first.Add(kernel.U(uint32(t.Team - 1))))
}

// sumTurns is how many terms a lane adds before it adds their sum to its
// total: an error grows with the longer of both chains, not with their product.
const sumTurns = 64

// totals returns sums over i = from, from+step ... below to, as one lane makes
// them: add returns each of acc plus its term i.
func totals(b *kernel.Builder, n int, from, to kernel.U32, step int, add func(acc []kernel.F32, i kernel.U32) []kernel.F32) []kernel.F32 {
	all := kernel.NewVars(b, "all", n, kernel.F(0))
	turns := kernel.U(uint32(step * sumTurns))
	b.ForStep(from, to, turns, func(at kernel.U32) {
		some := kernel.NewVars(b, "some", n, kernel.F(0))
		b.ForStep(at, at.Add(turns).Min(to), kernel.U(uint32(step)), func(i kernel.U32) {
			for k, v := range add(values(some), i) {
				some[k].Set(v)
			}
		})
		for k := range all {
			all[k].Set(all[k].Get().Add(some[k].Get()))
		}
	})
	return values(all)
}

// total returns one such sum.
func total(b *kernel.Builder, from, to kernel.U32, step int, add func(acc kernel.F32, i kernel.U32) kernel.F32) kernel.F32 {
	return totals(b, 1, from, to, step, func(acc []kernel.F32, i kernel.U32) []kernel.F32 {
		return []kernel.F32{add(acc[0], i)}
	})[0]
}

func values(vs []kernel.Var[kernel.F32]) []kernel.F32 {
	xs := make([]kernel.F32, len(vs))
	for i := range vs {
		xs[i] = vs[i].Get()
	}
	return xs
}
