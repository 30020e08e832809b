package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// radixPass is a kernel of a pass.
type radixPass struct {
	radixOrder
	radixTile
	First  bool     // the pass reads elements; the payload is their index
	Last   bool     // the pass writes elements; other passes write words
	Values op.DType // type of the values that move instead of indices, read in the first pass
}

// moves reports whether the pass reads a payload from memory.
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
	number    ptx.U32 // index of the tile among all tiles
	left      ptx.U32 // elements of the tile

	state ptx.Global[ptx.U32] // words of the tile, indexed by digit
	hist  ptx.Shared[ptx.U32] // counts of the warp, indexed by digit
	all   ptx.Shared[ptx.U32] // counts of the first warp
	sums  ptx.Shared[ptx.U32]
}

// radixItem is an element of a thread: its bits, and its rank among the warp's elements with the
// same digit. The digit is in the upper bits of the rank, to save a register.
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
	t.warp, t.shift = t.tid.Shr(ptx.U(5)), pass.Mul(ptx.U(radixBits)).Add(ptx.N(s.Skip))
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

// mine returns the index in the tile of the thread's first element.
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

// load calls get for each element of the thread that exists, and returns the results; missing elements are 0.
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

// payload returns the payload of the thread's elements: their indices or values. Values of 16 bits
// become float32.
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

// same returns the mask of the lanes of the warp that have the same digit.
func (t *radixBlock) same(digit ptx.U32) ptx.U32 {
	all := ptx.AllLanes
	for i := range radixBits {
		has := digit.And(ptx.U(1 << i)).Ne(ptx.U(0))
		const andSame = 0xf0 & (0xcc ^ 0xaa) // x & (y ^ z)
		all = all.Lop3(has.Ballot(ptx.AllLanes), ptx.Select(has, ptx.U(0), ptx.AllLanes), andSame)
	}
	return all
}

// rank computes, for each element of the thread, the number of earlier elements of the warp with
// the same digit. It also counts the digits of the warp.
func (t *radixBlock) rank(x []ptx.U32) []radixItem {
	const together = 4 // elements whose atomic operations overlap
	k, items := t.k, make([]radixItem, len(x))
	before := k.Special(ptx.LaneMaskLt)
	for at := 0; at < len(x); at += together {
		some := items[at:min(at+together, len(x))]
		old, leader := make([]ptx.Var[ptx.U32], len(some)), make([]ptx.U32, len(some))
		for i := range some {
			e := &some[i]
			e.x = x[at+i]
			is := t.mine().Add(ptx.N(32 * (at + i))).Lt(t.left)
			digit := ptx.Select(is, t.digit(e.x, t.shift), ptx.U(radixDigits-1)) // missing elements are last
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

// radixPlace locates the elements of a digit.
type radixPlace struct {
	count  ptx.U32 // number of elements in the tile
	inTile ptx.U32 // first index in the tile
	inRow  ptx.U32 // first index in the row
}

// flag returns the upper bits of a word of the look-back. They say whether the word counts the
// elements of one tile, or (if all) of all tiles up to it. Words with the flags of another pass are
// ignored.
func (t *radixBlock) flag(all bool) ptx.U32 {
	n := uint32(1)
	if all {
		n = 2
	}
	return t.pass.Mul(ptx.U(2)).Add(ptx.U(n)).Shl(ptx.U(radixCountBits))
}

// offsets replaces the counts of each warp by the first index of its elements in the tile, and
// publishes the counts of the tile. Each of the first threads processes one digit.
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

// scan returns the exclusive prefix sums of x and y over the digits.
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

// radixPause is the time in nanoseconds that a thread sleeps before it reads the count of a tile again.
const radixPause = 40

// lookBack counts the elements of earlier tiles that have the thread's digit, and publishes this
// count plus the tile's own. It returns the first index of the tile's elements in the row, minus
// their first index in the tile.
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
				// Do not look back beyond the first tile of the row.
				back := t.tile.Sub(next.Live().Max(ptx.N(i)).Sub(ptx.N(i)))
				words[i] = t.backBy(row, back).Hint(ptx.Volatile).Load()
			}
			going := ptx.NewVar(k, ptx.U(1)) // 1 while the words read so far are valid
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
			// Sleep, to leave bandwidth to the blocks that have to publish their counts.
			k.If(waiting.And(going.Live().Eq(ptx.U(0))), func() { k.Sleep(ptx.U(radixPause)) })
			return waiting
		})
		t.state.Hint(ptx.Volatile).Store(before.Live().Add(p.count).Or(t.flag(true)))
	})
	return before.Live().Sub(p.inTile)
}

// backBy returns the word of the tile back tiles earlier.
func (t *radixBlock) backBy(own ptx.Global[ptx.U32], back ptx.U32) ptx.Global[ptx.U32] {
	return own.At64(back.MulWide(ptx.U(radixDigits)).S64().Neg().U64())
}

// write writes the sorted tile. Adjacent elements go to adjacent addresses.
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
