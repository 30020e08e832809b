package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// radixPass is a kernel of a pass.
type radixPass struct {
	radixOrder
	radixTile
	First  bool     // elements are read, and their places are where they are
	Last   bool     // elements are written, and words else
	Values op.DType // of an array that is moved in the first pass instead of places
}

// moves reports whether an array is moved with the elements.
func (s radixPass) moves() bool { return !s.First || s.Values != op.InvalidType }

// radixBlock is the block of a pass while it is built.
type radixBlock struct {
	radixPass
	k         *ptx.Kernel
	tid, lane ptx.U32
	warp      ptx.U32
	pass      ptx.U32
	shift     ptx.U32
	n         ptx.U32 // elements of a row
	row, tile ptx.U32
	number    ptx.U32 // of the tile, of all
	left      ptx.U32 // elements of the tile

	state ptx.Global[ptx.U32] // of the tile, by digits
	hist  ptx.Shared[ptx.U32] // of the warp, by digits
	all   ptx.Shared[ptx.U32] // of the first warp
	sums  ptx.Shared[ptx.U32]
}

// radixItem is an element of a thread: its bits, and its rank among those of the warp that have its
// digit, with the digit above it. Both share a register, as threads have few.
type radixItem struct {
	x, rank ptx.U32
}

const radixRankBits = 16

// build writes the kernel.
func (s radixPass) build(k *ptx.Kernel) {
	k.Block(s.Lanes, 1, 1)
	if s.Blocks > 0 {
		k.MinBlocks(s.Blocks)
	}
	from := s.elements(k, "x", !s.First)
	var places ptx.Global[ptx.U32]
	if s.moves() {
		places = ptx.GlobalParam[ptx.U32](k, "places")
	}
	to, moved := s.elements(k, "to", !s.Last), ptx.GlobalParam[ptx.U32](k, "moved")
	totals, tickets, state := ptx.GlobalParam[ptx.U32](k, "totals"), ptx.GlobalParam[ptx.U32](k, "tickets"), ptx.GlobalParam[ptx.U32](k, "state")
	n, tiles, pass := ptx.Param[ptx.U32](k, "n"), ptx.Param[ptx.U32](k, "tiles"), ptx.Param[ptx.U32](k, "pass")
	limit := n
	if s.Last {
		limit = ptx.Param[ptx.U32](k, "limit")
	}
	var extent ptx.U32
	if s.First {
		extent = s.extent(k)
	}
	hist := ptx.DynamicShared[ptx.U32](k, s.warps()*radixDigits)
	elements, payload := ptx.DynamicShared[ptx.U32](k, s.size()), ptx.DynamicShared[ptx.U32](k, s.size())
	begin := ptx.DynamicShared[ptx.U32](k, radixDigits)
	ticket := ptx.SharedArray[ptx.U32](k, "ticket", 1)

	t := &radixBlock{radixPass: s, k: k, n: n, pass: pass, tid: k.Special(ptx.TidX), lane: k.Special(ptx.LaneID)}
	t.warp, t.shift = t.tid.Shr(ptx.U(5)), pass.Mul(ptx.U(radixBits))
	t.all, t.hist = hist, hist.At(t.warp.Mul(ptx.U(radixDigits)))
	t.sums = ptx.SharedArray[ptx.U32](k, "sums", 2*radixDigits/32)
	k.If(t.tid.Eq(ptx.U(0)), func() { ticket.Store(ptx.AtomicAdd(tickets.At(pass), ptx.U(1))) })
	for i := 0; i < s.warps()*radixDigits; i += 4 * s.Lanes {
		t.all.At(t.tid.Mul(ptx.U(4))).Offset(i).Store4([4]ptx.U32{})
	}
	k.Sync()
	t.number = ticket.Load()
	t.row = t.number.Div(tiles)
	t.tile = t.number.Sub(t.row.Mul(tiles))
	t.state = state.At(t.number.Mul(ptx.U(radixDigits)).Add(t.tid))
	at := t.tile.Mul(ptx.N(s.size()))
	t.left = n.Sub(at).Min(ptx.N(s.size()))
	first := t.row.Mul(n).Add(at)

	total := totals.At(t.row.Mul(ptx.N(s.Passes)).Add(pass).Mul(ptx.U(radixDigits)).Add(t.tid))
	items := t.rank(t.elements(from.at(first), extent))
	k.Sync()
	place := t.offsets(total)
	k.Sync()
	values := t.payload(places, first, at)
	for j, x := range items {
		to := t.hist.At(x.rank.Shr(ptx.U(radixRankBits))).Load().Add(x.rank.And(ptx.U(1<<radixRankBits - 1)))
		elements.At(to).Store(x.x)
		payload.At(to).Store(values[j])
	}
	k.If(t.tid.Lt(ptx.U(radixDigits)), func() { begin.At(t.tid).Store(t.lookBack(place)) })
	k.Sync()
	t.write(elements, payload, begin, to, moved, limit)
}

// mine returns the place in the tile of the first element of the thread.
func (t *radixBlock) mine() ptx.U32 { return t.warp.Mul(ptx.N(32 * t.Items)).Add(t.lane) }

// elements returns the elements of the thread, or rows for ids.
func (t *radixBlock) elements(x radixArray, extent ptx.U32) []ptx.U32 {
	x = x.at(t.mine())
	return t.load(func(j int) ptx.U32 {
		v := x.offset(32 * j).load()
		if t.First {
			v = t.made(v, extent)
		}
		return v
	})
}

// load returns what get returns for each element of the thread, 0 where there is none.
func (t *radixBlock) load(get func(j int) ptx.U32) (v []ptx.U32) {
	vars := make([]ptx.Var[ptx.U32], t.Items)
	for j := range vars {
		vars[j] = ptx.NewVar(t.k, ptx.U(0))
	}
	for j, x := range vars {
		t.k.When(t.mine().Add(ptx.N(32*j)).Lt(t.left), func() { x.Set(get(j)) })
	}
	for _, x := range vars {
		v = append(v, x.Live())
	}
	return v
}

// payload returns what is moved with the elements of the thread: their places, or values, those of
// 16 bits as float32.
func (t *radixBlock) payload(places ptx.Global[ptx.U32], first, at ptx.U32) []ptx.U32 {
	if !t.moves() {
		v := make([]ptx.U32, t.Items)
		for j := range v {
			v[j] = at.Add(t.mine()).Add(ptx.N(32 * j))
		}
		return v
	}
	first = first.Add(t.mine())
	return t.load(func(j int) ptx.U32 {
		v := loadFurther(t.Values, places, first, 32*j, 1)[0]
		if t.Values.Float() {
			v = ptx.F32(v).Bits().U32()
		}
		return v
	})
}

// same returns the lanes of the warp whose digit is that of the lane.
func (t *radixBlock) same(digit ptx.U32) ptx.U32 {
	all := ptx.AllLanes
	for i := range radixBits {
		has := digit.And(ptx.U(1 << i)).Ne(ptx.U(0))
		const andSame = 0xf0 & (0xcc ^ 0xaa) // x & (y ^ z)
		all = all.Lop3(has.Ballot(ptx.AllLanes), ptx.Select(has, ptx.U(0), ptx.AllLanes), andSame)
	}
	return all
}

// rank finds how many elements of the warp that come before each of the thread's have its digit,
// and counts the digits of the warp.
func (t *radixBlock) rank(x []ptx.U32) []radixItem {
	const together = 4 // whose atomic operations are under way at a time
	k, items := t.k, make([]radixItem, len(x))
	before := k.Special(ptx.LaneMaskLt)
	for at := 0; at < len(x); at += together {
		some := items[at:min(at+together, len(x))]
		old, leader := make([]ptx.Var[ptx.U32], len(some)), make([]ptx.U32, len(some))
		for i := range some {
			e := &some[i]
			e.x = x[at+i]
			is := t.mine().Add(ptx.N(32 * (at + i))).Lt(t.left)
			digit := ptx.Select(is, t.digit(e.x, t.shift), ptx.U(radixDigits-1)) // those that are missing come last
			same := t.same(digit)
			rank := same.And(before).CountOnes()
			leader[i] = same.ReverseBits().LeadingZeros()
			old[i] = ptx.NewVar(k, ptx.U(0))
			k.When(rank.Eq(ptx.U(0)), func() { old[i].Set(ptx.AtomicAdd(t.hist.At(digit), same.CountOnes())) })
			k.SyncWarp(ptx.AllLanes)
			e.rank = digit.Shl(ptx.U(radixRankBits)).Add(rank)
		}
		for i := range some {
			some[i].rank = some[i].rank.Add(ptx.ShuffleIndex(old[i].Live(), leader[i]))
		}
	}
	return items
}

// place is where the elements of a digit are.
type radixPlace struct {
	count  ptx.U32 // in the tile
	inTile ptx.U32 // where they begin in the tile
	inRow  ptx.U32 // where they begin in the row
}

// flag returns what stands above a count of the look-back: of the elements of one tile, or of those
// of all tiles up to it. Words of other passes count nothing.
func (t *radixBlock) flag(all bool) ptx.U32 {
	n := uint32(1)
	if all {
		n = 2
	}
	return t.pass.Mul(ptx.U(2)).Add(ptx.U(n)).Shl(ptx.U(radixCountBits))
}

// offsets makes the counts of each warp the places in the tile of the elements of that warp, and
// publishes the counts of the tile. Each of the first threads has a digit.
func (t *radixBlock) offsets(total ptx.Global[ptx.U32]) radixPlace {
	k, column := t.k, t.all.At(t.tid)
	some := t.tid.Lt(ptx.U(radixDigits))
	first := t.tile.Eq(ptx.U(0))
	counts := make([]ptx.Var[ptx.U32], t.warps())
	for w := range counts {
		counts[w] = ptx.NewVar(k, ptx.U(0))
	}
	whole := ptx.NewVar(k, ptx.U(0))
	k.If(some, func() {
		k.When(first, func() { total.LoadTo(whole) })
		for w := range counts {
			column.Offset(w * radixDigits).LoadTo(counts[w])
		}
	})
	sum := ptx.U(0)
	for _, c := range counts {
		sum = sum.Add(c.Live())
	}
	k.If(some.And(first.Not()), func() { t.state.Hint(ptx.Volatile).Store(sum.Or(t.flag(false))) })
	inTile, inRow := t.scan(sum, whole.Live())
	k.If(some, func() {
		k.When(first, func() { t.state.Hint(ptx.Volatile).Store(inRow.Add(sum).Or(t.flag(true))) })
		at := inTile
		for w, c := range counts {
			column.Offset(w * radixDigits).Store(at)
			at = at.Add(c.Live())
		}
	})
	return radixPlace{sum, inTile, inRow}
}

// scan returns the sums of x and of y over the digits before.
func (t *radixBlock) scan(x, y ptx.U32) (ptx.U32, ptx.U32) {
	const warps = radixDigits / 32
	k := t.k
	own := []ptx.U32{x, y}
	upTo := []ptx.U32{x, y}
	for d := 1; d < 32; d *= 2 {
		for i := range upTo {
			other := ptx.ShuffleUp(upTo[i], ptx.N(d))
			upTo[i] = upTo[i].Add(ptx.Select(t.lane.Ge(ptx.N(d)), other, ptx.U(0)))
		}
	}
	k.If(t.lane.Eq(ptx.U(31)).And(t.tid.Lt(ptx.U(radixDigits))), func() {
		for i := range upTo {
			t.sums.At(t.warp).Offset(i * warps).Store(upTo[i])
		}
	})
	k.Sync()
	for i := range upTo {
		upTo[i] = upTo[i].Sub(own[i])
		for w := range warps - 1 {
			upTo[i] = upTo[i].Add(ptx.Select(t.warp.Gt(ptx.N(w)), t.sums.Offset(i*warps+w).Load(), ptx.U(0)))
		}
	}
	return upTo[0], upTo[1]
}

// radixPause is for how many nanoseconds a thread waits for the count of a tile before it asks again.
const radixPause = 40

// lookBack finds how many elements of the tiles before have the digit of the thread, publishes
// that with the tile's, and returns where those of the tile go in the row, less where they begin
// in the tile.
func (t *radixBlock) lookBack(p radixPlace) ptx.U32 {
	k := t.k
	const mask = 1<<radixCountBits - 1
	before := ptx.NewVar(k, p.inRow)
	k.If(t.tile.Ne(ptx.U(0)), func() {
		before.Set(ptx.U(0))
		next := ptx.NewVar(k, t.tile.Sub(ptx.U(1)))
		done := ptx.NewVar(k, ptx.U(0))
		row := t.state.At(ptx.U(0))
		k.Repeat(func() ptx.Pred {
			words := make([]ptx.U32, t.Look)
			for i := range words {
				// The first tile of the row is the last one that is looked at.
				back := t.tile.Sub(next.Live().Max(ptx.N(i)).Sub(ptx.N(i)))
				words[i] = t.backBy(row, back).Hint(ptx.Volatile).Load()
			}
			going := ptx.NewVar(k, ptx.U(1)) // while words count
			for _, w := range words {
				kind := w.And(ptx.U(mask).Not())
				all := kind.Eq(t.flag(true))
				counts := kind.Eq(t.flag(false)).Or(all).And(going.Live().Ne(ptx.U(0)))
				ptx.AddTo(before, ptx.Select(counts, w.And(ptx.U(mask)), ptx.U(0)))
				ptx.SubTo(next, ptx.Select(counts, ptx.U(1), ptx.U(0)))
				ended := counts.And(all)
				done.Set(ptx.Select(ended, ptx.U(1), done.Live()))
				going.Set(ptx.Select(counts.And(ended.Not()), ptx.U(1), ptx.U(0)))
			}
			waiting := done.Live().Eq(ptx.U(0))
			// Blocks that are asked for their counts need the bandwidth to publish them.
			k.If(waiting.And(going.Live().Eq(ptx.U(0))), func() { k.Sleep(ptx.U(radixPause)) })
			return waiting
		})
		t.state.Hint(ptx.Volatile).Store(before.Live().Add(p.count).Or(t.flag(true)))
	})
	return before.Live().Sub(p.inTile)
}

// backBy returns the word of a tile so many before.
func (t *radixBlock) backBy(own ptx.Global[ptx.U32], back ptx.U32) ptx.Global[ptx.U32] {
	return own.At64(back.MulWide(ptx.U(radixDigits)).S64().Neg().U64())
}

// write writes the tile, which is in order: neighbours go to neighbours.
func (t *radixBlock) write(elements, payload, begin ptx.Shared[ptx.U32], to radixArray, moved ptx.Global[ptx.U32], limit ptx.U32) {
	k := t.k
	row := t.row.Mul(limit)
	to, moved = to.at(row), moved.At(row)
	for j := range t.Items {
		i := t.tid.Add(ptx.N(j * t.Lanes))
		k.If(i.Lt(t.left), func() {
			x := elements.At(i).Load()
			at := begin.At(t.digit(x, t.shift)).Load().Add(i)
			store := func() {
				to.at(at).store(x)
				moved.At(at).Store(payload.At(i).Load())
			}
			if t.Last {
				k.If(at.Lt(limit), store)
			} else {
				store()
			}
		})
	}
}
