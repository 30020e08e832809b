//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/kernel"

// groupLayout divides a workgroup into lane groups. Each lane group works on one row or on
// one part of a row.
type groupLayout struct {
	GroupLanes int  // lanes of a lane group, a power of two
	Groups     int  // lane groups of a workgroup
	Subgroups  bool // reduce by subgroup operations
	// Across says that neighbouring lanes belong to neighbouring lane groups, so that the lanes of one
	// group are Groups apart. Only folds and scans of states support it.
	Across bool
	// Size is the number of lanes of every subgroup, or 0 if it is unknown. With an unknown size, a
	// workgroup of several lane groups does not use subgroups.
	Size int
}

func (c groupLayout) lanes() int { return c.GroupLanes * c.Groups }

// on reports whether the target can run the layout. If several lane groups use subgroups, a
// subgroup must contain at least one lane group.
func (c groupLayout) on(t *Target) bool {
	return c.lanes() <= t.Lanes && (!c.Subgroups || t.Subgroups && (c.Groups == 1 || t.Subgroup >= c.GroupLanes))
}

// with returns the layout with the subgroup size of the target.
func (c groupLayout) with(t *Target) groupLayout {
	// The kernels cannot use a subgroup size that does not divide the workgroup.
	if c.Subgroups && t.Subgroup > 0 && t.Subgroup&(t.Subgroup-1) == 0 && c.lanes()%t.Subgroup == 0 {
		c.Size = t.Subgroup
	}
	return c
}

// laneGroup is the lane group of the running lane.
type laneGroup struct {
	groupLayout
	b      *kernel.Builder
	lane   kernel.U32 // number of the lane in its lane group
	index  kernel.U32 // number of the lane group in its workgroup
	number kernel.U32 // number of the lane group in the grid
	f      kernel.Array[kernel.F32]
	u      kernel.Array[kernel.U32]
	hasF   bool
	hasU   bool
	m      kernel.Array[kernel.U32]
	hasM   bool
	read   use // arrays that lanes may still be reading
	second bool
}

// use is a set of arrays of a lane group. Consecutive reductions use alternating halves of an
// array: a lane that reaches the barrier of one half has finished reading the other half.
type use uint8

const (
	useSums use = 1 << iota
	useKeys
	useWords
	useOdd = iota // bits from the first half of an array to its second half
)

// newLaneGroup sets the local size and returns the lane group of the running lane. Lane groups are
// numbered in the order of [kernel.Builder.Group].
func newLaneGroup(b *kernel.Builder, c groupLayout) *laneGroup {
	b.LocalSize(c.lanes(), 1, 1)
	t := &laneGroup{groupLayout: c, b: b}
	lane := b.LocalX()
	t.lane, t.index = lane.And(kernel.U(uint32(c.GroupLanes-1))), lane.Div(kernel.U(uint32(c.GroupLanes)))
	switch {
	case c.Groups == 1:
		t.lane, t.index = lane, kernel.U(0)
	case c.Across:
		t.lane, t.index = lane.Div(kernel.U(uint32(c.Groups))), lane.And(kernel.U(uint32(c.Groups-1)))
	}
	t.number = b.Group().Mul(kernel.U(uint32(c.Groups))).Add(t.index)
	return t
}

// apart returns the distance between neighbouring lanes of a lane group.
func (c groupLayout) apart() int {
	if c.Across {
		return c.Groups
	}
	return 1
}

// groups returns the grid for n lane groups.
func (c groupLayout) groups(n int) kernel.Size { return kernel.GridOf((n-1)/c.Groups + 1) }

// sum returns the sum of x over the lane group, in each of its lanes. All lanes of the workgroup
// must call it.
func (t *laneGroup) sum(x kernel.F32) kernel.F32 {
	return combine(t, t.sums, useSums, x, kernel.F32.Add, kernel.SubgroupAdd[kernel.F32])
}

func (t *laneGroup) sums() kernel.Array[kernel.F32] {
	if !t.hasF {
		t.f, t.hasF = kernel.Shared[kernel.F32](t.b, "team_sums", 2*t.places()), true
	}
	return t.f
}

// max returns the greatest x of the lane group, in each of its lanes. All lanes of the workgroup
// must call it.
func (t *laneGroup) max(x kernel.U32) kernel.U32 {
	return combine(t, t.keys, useKeys, x, kernel.U32.Max, kernel.SubgroupMax[kernel.U32])
}

// min returns the least x of the lane group, in each of its lanes. All lanes of the workgroup must
// call it.
func (t *laneGroup) min(x kernel.U32) kernel.U32 {
	return combine(t, t.keys, useKeys, x, kernel.U32.Min, kernel.SubgroupMin[kernel.U32])
}

func (t *laneGroup) keys() kernel.Array[kernel.U32] {
	if !t.hasU {
		t.u, t.hasU = kernel.Shared[kernel.U32](t.b, "team_keys", 2*t.places()), true
	}
	return t.u
}

// places returns the number of elements in half an array: one for each lane, or one for each
// subgroup if the subgroup size is known.
func (t *laneGroup) places() int { return t.lanes() / max(t.Size, 1) }

// combine reduces x over the lane group, always in the same order.
func combine[T kernel.F32 | kernel.U32](t *laneGroup, array func() kernel.Array[T], u use, x T, f func(a, b T) T, sub func(*kernel.Builder, T) T) T {
	if t.GroupLanes == 1 {
		return x
	}
	b, zero := t.b, kernel.U(0)
	if t.Size > 0 {
		x = shuffle(b, x, min(t.GroupLanes, t.Size), f)
		if t.GroupLanes <= t.Size {
			return x
		}
	}
	s, half := array(), zero
	if t.second {
		u, half = u<<useOdd, kernel.U(uint32(t.places()))
	}
	t.second = !t.second
	t.wait(u)
	me := b.LocalX()
	switch {
	case t.Size > 0:
		lane, n := me.And(kernel.U(uint32(t.Size-1))), t.GroupLanes/t.Size
		b.If(lane.Eq(zero), func() { s.Set(half.Add(me.Div(kernel.U(uint32(t.Size)))), x) })
		b.Barrier()
		if n <= t.Size {
			return shuffle(b, s.At(half.Add(lane.And(kernel.U(uint32(n-1))))), n, f)
		}
		return chain(n, f, func(i int) T { return s.At(half.Add(kernel.U(uint32(i)))) })
	case t.Subgroups:
		// The subgroup size is unknown here, and with it the number of subgroups.
		x = sub(b, x)
		b.If(b.SubgroupLane().Eq(zero), func() { s.Set(half.Add(b.Subgroup()), x) })
		b.Barrier()
		r := kernel.NewVar(b, "r", s.At(half))
		b.For(kernel.U(1), kernel.U(uint32(t.lanes())).Div(b.SubgroupSize()), func(i kernel.U32) {
			r.Set(f(r.Get(), s.At(half.Add(i))))
		})
		return r.Get()
	}
	// The reduction has two steps: some lanes reduce several values each, and then all lanes reduce
	// these results.
	s.Set(half.Add(me), x)
	b.Barrier()
	first, n := half.Add(me.Sub(t.lane)), t.GroupLanes
	for n > 1 && n*n > t.GroupLanes {
		n /= 2
	}
	if t.GroupLanes > 8 {
		at := half.Add(me)
		b.If(t.lane.Lt(kernel.U(uint32(n))), func() {
			s.Set(at, chain(t.GroupLanes/n, f, func(i int) T { return s.At(at.Add(kernel.U(uint32(i * n)))) }))
		})
		b.Barrier()
	} else {
		n = t.GroupLanes
	}
	return chain(n, f, func(i int) T { return s.At(first.Add(kernel.U(uint32(i)))) })
}

// group has the reductions over a group of lanes. Each lane of the group gets the result.
type group struct {
	sum func(x kernel.F32) kernel.F32
	max func(x kernel.U32) kernel.U32
}

// merge reduces words over the lane group. f reduces the words of any group of lanes, one word
// after the other if necessary. If the subgroup size is known, merge first reduces each subgroup,
// so that one barrier is enough.
func (t *laneGroup) merge(words []kernel.U32, f func(g group, words []kernel.U32) []kernel.U32) []kernel.U32 {
	n := t.GroupLanes / max(t.Size, 1)
	if t.Size == 0 || t.Groups > 1 || n <= 1 || n > min(t.Size, maxSubgroups) {
		return f(group{t.sum, t.max}, words)
	}
	b, size := t.b, kernel.U(uint32(t.Size))
	over := func(n int) group {
		return group{
			func(x kernel.F32) kernel.F32 { return shuffle(b, x, n, kernel.F32.Add) },
			func(x kernel.U32) kernel.U32 { return shuffle(b, x, n, kernel.U32.Max) },
		}
	}
	words = f(over(t.Size), words)
	m := t.words()
	t.wait(useWords)
	lane := b.LocalX()
	place := func(i int, of kernel.U32) kernel.U32 { return kernel.U(uint32(i * n)).Add(of) }
	b.If(lane.And(size.Sub(kernel.U(1))).Eq(kernel.U(0)), func() {
		for i, w := range words {
			m.Set(place(i, lane.Div(size)), w)
		}
	})
	b.Barrier()
	all := make([]kernel.U32, len(words))
	for i := range words {
		all[i] = m.At(place(i, lane.And(kernel.U(uint32(n-1)))))
	}
	return f(over(n), all)
}

// maxWords and maxSubgroups limit the words and the subgroups that merge stores in workgroup
// memory.
const maxWords, maxSubgroups = 3, 32

func (t *laneGroup) words() kernel.Array[kernel.U32] {
	if !t.hasM {
		t.m, t.hasM = kernel.Shared[kernel.U32](t.b, "team_words", maxWords*maxSubgroups), true
	}
	return t.m
}

// shuffle reduces x over n neighbouring lanes of a subgroup. Each of them gets the result.
func shuffle[T kernel.F32 | kernel.U32](b *kernel.Builder, x T, n int, f func(a, b T) T) T {
	for mask := n / 2; mask > 0; mask /= 2 {
		x = f(x, kernel.SubgroupXor(b, x, mask))
	}
	return x
}

// chain reduces n values from the first to the last.
func chain[T any](n int, f func(a, b T) T, at func(i int) T) T {
	r := at(0)
	for i := 1; i < n; i++ {
		r = f(r, at(i))
	}
	return r
}

// again marks all arrays as possibly still read by other lanes. A loop calls it at its beginning,
// because its previous iteration has read them.
func (t *laneGroup) again() { t.read = (useSums | useKeys | useWords) * (1 + 1<<useOdd) }

// wait inserts a barrier if other lanes may still be reading the arrays u.
func (t *laneGroup) wait(u use) {
	if t.read&u != 0 {
		t.b.Barrier()
	}
	t.read = u
}

// scan returns the sum of x over the earlier lanes of the lane group, and over all of its lanes.
// All lanes of the workgroup must call it.
func (t *laneGroup) scan(x kernel.F32) (before, whole kernel.F32) {
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
	for d := 1; d < t.GroupLanes; d *= 2 {
		b.Barrier()
		b.If(t.lane.Ge(kernel.U(uint32(d))), func() { sum.Set(s.At(me.Sub(kernel.U(uint32(d)))).Add(sum.Get())) })
		b.Barrier()
		s.Set(me, sum.Get())
	}
	b.Barrier()
	first := me.Sub(t.lane)
	// The sum minus x would be wrong: it is NaN if x is infinite.
	previous := kernel.NewVar(b, "previous", kernel.F(0))
	b.If(t.lane.Gt(kernel.U(0)), func() { previous.Set(s.At(me.Sub(kernel.U(1)))) })
	return previous.Get(), s.At(first.Add(kernel.U(uint32(t.GroupLanes - 1))))
}

// sumTerms is the number of terms that a lane adds before it adds their sum to its total. The error
// grows with the longer of these two chains, not with their product.
const sumTerms = 64

// totals returns the sums that one lane computes over i = from, from+step, ... below to. add
// returns acc with term i added to each sum.
func totals(b *kernel.Builder, n int, from, to kernel.U32, step int, add func(acc []kernel.F32, i kernel.U32) []kernel.F32) []kernel.F32 {
	all := kernel.NewVars(b, "all", n, kernel.F(0))
	iterations := kernel.U(uint32(step * sumTerms))
	b.ForStep(from, to, iterations, func(at kernel.U32) {
		some := kernel.NewVars(b, "some", n, kernel.F(0))
		b.ForStep(at, at.Add(iterations).Min(to), kernel.U(uint32(step)), func(i kernel.U32) {
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

// total is totals for one sum.
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
