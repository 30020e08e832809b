package interp

import (
	"math"
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// row returns component k of a value, a scalar's one for any k, by lanes of the
// workgroup.
func (c *checker) row(v ir.Value, k int) []uint32 {
	at := c.place(v, k)
	return c.vals[at : at+c.lanes]
}

func (c *checker) place(v ir.Value, k int) int {
	if c.code[v].width == 1 {
		k = 0
	}
	return c.code[v].out + k*c.lanes
}

// step runs one instruction of a subgroup.
func (c *checker) step(w *warp) {
	if w.pc >= len(c.p.Code) {
		w.state = done
		return
	}
	v := ir.Value(w.pc)
	in, d := &c.p.Code[v], &c.code[v]
	w.pc++
	switch d.how {
	case howNothing:
		return
	case howFunction:
		c.function(w, in, d)
		return
	case howRename:
		c.rename(w, in, d)
		return
	case howAccess:
		for _, i := range w.order {
			if w.active.has(i) {
				c.access(w.from+i, v, in, d)
			}
		}
		return
	case howVar:
		if in.Code == ir.LoadVar {
			c.loadVar(w, v, in, d)
		} else {
			c.storeVar(w, in, d)
		}
		return
	case howOther:
		for i := range w.n {
			if w.active.has(i) {
				c.other(w.from+i, in, d)
			}
		}
		return
	}
	c.control(w, v, in)
}

// control runs an instruction that controls the lanes, or in which lanes exchange values.
func (c *checker) control(w *warp, v ir.Value, in *ir.Instr) {
	switch in.Code {
	case ir.Barrier, ir.UniformLoad:
		w.pc--
		w.state = waiting
		if w.active != w.all {
			c.find(&Finding{Kind: DivergentBarrier, Value: v, Index: -1, Lanes: c.split(w), Note: "lanes of one subgroup disagree"})
		}
	case ir.If:
		yes := c.truths(w, in.Args[0])
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), other: w.active.andNot(yes)})
		if w.active = yes; yes.empty() {
			w.leave()
		}
	case ir.Else:
		f := &w.nest[len(w.nest)-1]
		w.active, f.other, f.close = f.other, w.active, int(in.Imm)
		if w.active.empty() {
			w.leave()
		}
	case ir.For:
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), free: in.Flag == ir.Bounded})
		counter, start := c.row(v, 0), c.row(in.Args[0], 0)
		step := c.row(in.Args[2], 0)
		for i := range w.n {
			if w.active.has(i) {
				counter[w.from+i] = start[w.from+i]
				if step[w.from+i] == 0 {
					w.nest[len(w.nest)-1].free = false
				}
			}
		}
		c.turn(w, v, false)
	case ir.Loop:
		w.nest = append(w.nest, nested{head: v, close: int(in.Imm), free: in.Flag == ir.Bounded})
	case ir.End:
		c.endBlock(w)
	case ir.Break, ir.Continue:
		k := len(w.nest) - 1
		for w.nest[k].head != ir.Value(in.Imm) {
			k--
		}
		if f := &w.nest[k]; in.Code == ir.Break {
			f.left = f.left.or(w.active)
		} else {
			f.next = f.next.or(w.active)
		}
		w.active = lanes{}
		w.leave()
	case ir.Return:
		w.active = lanes{}
		w.leave()
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		c.subgroup(w, v, in)
	}
}

// split returns a lane that is active and one that is not.
func (c *checker) split(w *warp) [2]int32 {
	out := [2]int32{int32(w.from + w.lowest()), -1}
	for i := range w.n {
		if !w.active.has(i) {
			out[1] = int32(w.from + i)
			break
		}
	}
	return out
}

// truths returns the active lanes in which a condition holds.
func (c *checker) truths(w *warp, v ir.Value) (m lanes) {
	cond := c.row(v, 0)
	for i := range w.n {
		if w.active.has(i) && cond[w.from+i] != 0 {
			m.set(i)
		}
	}
	return m
}

// turn begins an iteration of a For for the lanes that have not left it.
func (c *checker) turn(w *warp, v ir.Value, advance bool) {
	f := &w.nest[len(w.nest)-1]
	d := &c.code[v]
	var on lanes
	for i := range w.n {
		if !w.active.has(i) {
			continue
		}
		j := w.from + i
		counter := &c.vals[d.out+j]
		ok := true
		if advance {
			if *counter, ok = sum(*counter, c.vals[d.arg[2]+j], d.signed); !ok {
				c.find(&Finding{Kind: CounterOverflow, Value: v, Index: -1, Lanes: [2]int32{int32(j), -1}})
			}
		}
		c.exact[d.out+j] = integer(*counter, d.signed)
		if ok && less(*counter, c.vals[d.arg[1]+j], d.signed) {
			on.set(i)
		}
	}
	f.left = f.left.or(w.active.andNot(on))
	w.active = on
	if on.empty() {
		c.leaveLoop(w)
	}
}

// leaveLoop ends the innermost loop for the lanes of the subgroup.
func (c *checker) leaveLoop(w *warp) {
	f := &w.nest[len(w.nest)-1]
	w.active, w.pc = f.left, int(c.p.Code[f.head].Imm)+1
	w.nest = w.nest[:len(w.nest)-1]
	if w.active.empty() {
		w.leave()
	}
}

func (c *checker) endBlock(w *warp) {
	f := &w.nest[len(w.nest)-1]
	head := &c.p.Code[f.head]
	if head.Code == ir.If {
		w.active = w.active.or(f.other)
		w.nest = w.nest[:len(w.nest)-1]
		if w.active.empty() {
			w.leave()
		}
		return
	}
	w.active, f.next = w.active.or(f.next), lanes{}
	if !w.active.empty() && !f.free {
		if f.turns++; f.turns > c.l.budget {
			c.find(&Finding{Kind: Budget, Value: f.head, Index: -1, Lanes: [2]int32{int32(w.from + w.lowest()), -1},
				Note: fmt.Sprintf("more than %d turns", c.l.budget)})
			f.left, w.active = f.left.or(w.active), lanes{}
		}
	}
	if w.active.empty() {
		c.leaveLoop(w)
		return
	}
	w.pc = int(f.head) + 1
	if head.Code == ir.For {
		c.turn(w, f.head, true)
	}
}

// integer returns the value of an integer's bits.
func integer(v uint32, signed bool) int64 {
	if signed {
		return int64(int32(v))
	}
	return int64(v)
}

// function computes a value and, for an integer, also the exact value without wrapping. The results of inactive lanes,
// and of lanes that pad the last block, are not used.
func (c *checker) function(w *warp, in *ir.Instr, d *decoded) {
	inPlace := w.active == w.all && w.n%block == 0
	c.plane.blocks = (w.n + block - 1) / block
	for k := range d.width {
		var x [3]int
		for j := range x {
			n := min(j, d.n-1) // the last element, for missing ones
			x[j] = d.arg[n] + k*d.step[n] + w.from
		}
		out := d.out + k*c.lanes + w.from
		y, e := c.vals[out:], c.exact[out:][:w.n]
		if !inPlace {
			y, e = c.lane[:], c.laneExact[:w.n]
		}
		at := func(i int) unsafe.Pointer { return unsafe.Pointer(&c.vals[x[i]]) }
		d.plane(unsafe.Pointer(&y[0]), at(0), at(1), at(2), &c.plane)
		if d.rounds {
			roundF16.plane(unsafe.Pointer(&y[0]), unsafe.Pointer(&y[0]), nil, nil, &c.plane)
		}
		if d.whole {
			c.exactly(in, d, e, y, x)
		}
		for i := 0; !inPlace && i < w.n; i++ {
			if w.active.has(i) {
				c.vals[out+i] = y[i]
				if d.whole {
					c.exact[out+i] = e[i]
				}
			}
		}
	}
}

// exactly computes the exact values of the integers y of an instruction, without wrapping. The rows
// of its operands are at x.
func (c *checker) exactly(in *ir.Instr, d *decoded, e []int64, y []uint32, x [3]int) {
	n := len(e)
	y = y[:n]
	a, b, third := c.exact[x[0]:][:n], c.exact[x[1]:][:n], c.exact[x[2]:][:n]
	first, second := c.vals[x[0]:][:n], c.vals[x[1]:][:n]
	switch in.Code {
	case ir.Add:
		for i := range e {
			e[i] = saturate(a[i] + b[i])
		}
	case ir.Sub:
		for i := range e {
			e[i] = saturate(a[i] - b[i])
		}
	case ir.Neg:
		for i := range e {
			e[i] = -a[i]
		}
	case ir.Mul:
		for i := range e {
			e[i] = times(a[i], b[i])
		}
	case ir.Shl:
		for i := range e {
			e[i] = times(a[i], 1<<(second[i]&31))
		}
	case ir.Min, ir.Max:
		for i := range e {
			if e[i] = b[i]; y[i] == first[i] {
				e[i] = a[i]
			}
		}
	case ir.Select:
		for i := range e {
			if e[i] = third[i]; first[i] != 0 {
				e[i] = b[i]
			}
		}
	default:
		for i := range e {
			e[i] = integer(y[i], d.signed)
		}
	}
}

// rename copies a value; a copied integer keeps its exact value.
func (c *checker) rename(w *warp, in *ir.Instr, d *decoded) {
	keeps := d.whole && c.p.Code[in.Args[0]].Type.Integer()
	for k := range d.width {
		from, to := d.arg[0]+k*d.step[0]+w.from, d.out+k*c.lanes+w.from
		for i := range w.n {
			if !w.active.has(i) {
				continue
			}
			c.vals[to+i] = c.vals[from+i]
			if keeps {
				c.exact[to+i] = c.exact[from+i]
			} else {
				c.exact[to+i] = integer(c.vals[from+i], d.signed)
			}
		}
	}
}

func (c *checker) loadVar(w *warp, v ir.Value, in *ir.Instr, d *decoded) {
	for k := range d.width {
		from, to := c.varBase[in.Imm]+k*c.lanes+w.from, d.out+k*c.lanes+w.from
		if w.active == w.all && !slices.Contains(c.written[from:][:w.n], false) {
			copy(c.vals[to:][:w.n], c.vars[from:])
			copy(c.exact[to:][:w.n], c.varExact[from:])
			continue
		}
		for i := range w.n {
			if !w.active.has(i) {
				continue
			}
			if !c.written[from+i] && !c.known(Uninitialised, v) {
				c.find(&Finding{Kind: Uninitialised, Value: v, Name: c.p.Vars[in.Imm].Name, Index: -1, Lanes: [2]int32{int32(w.from + i), -1}})
			}
			c.vals[to+i], c.exact[to+i] = c.vars[from+i], c.varExact[from+i]
		}
	}
}

func (c *checker) storeVar(w *warp, in *ir.Instr, d *decoded) {
	for k := range int(c.p.Vars[in.Imm].Width) {
		from, to := d.arg[0]+k*d.step[0]+w.from, c.varBase[in.Imm]+k*c.lanes+w.from
		if w.active == w.all {
			copy(c.vars[to:][:w.n], c.vals[from:])
			copy(c.varExact[to:][:w.n], c.exact[from:])
			for i := range c.written[to:][:w.n] {
				c.written[to+i] = true
			}
			continue
		}
		for i := range w.n {
			if w.active.has(i) {
				c.vars[to+i], c.varExact[to+i], c.written[to+i] = c.vals[from+i], c.exact[from+i], true
			}
		}
	}
}

// other computes a value of one lane.
func (c *checker) other(lane int, in *ir.Instr, d *decoded) {
	set := func(k int, x uint32) {
		at := d.out + k*c.lanes + lane
		c.vals[at], c.exact[at] = x, integer(x, d.signed)
	}
	copyOf := func(k, n, j int) {
		to, from := d.out+k*c.lanes+lane, d.arg[n]+j*d.step[n]+lane
		c.vals[to], c.exact[to] = c.vals[from], c.exact[from]
	}
	arg := func(n, k int) uint32 { return c.vals[d.arg[n]+k*d.step[n]+lane] }
	switch in.Code {
	case ir.Splat:
		for k := range d.width {
			copyOf(k, 0, 0)
		}
	case ir.Compose:
		for k := range d.n {
			copyOf(k, k, 0)
		}
	case ir.Extract:
		copyOf(0, 0, int(in.Flag))
	case ir.Dot:
		s := uint32(0)
		for k := range int(c.p.Code[in.Args[0]].Width) {
			x := rounded(in.Type, laneMulF32(arg(0, k), arg(1, k), 0, 0))
			if k > 0 {
				x = rounded(in.Type, laneAddF32(s, x, 0, 0))
			}
			s = x
		}
		set(0, s)
	case ir.PackHalf:
		set(0, lanePackHalf(arg(0, 0), arg(0, 1), 0, 0))
	case ir.UnpackHalf:
		for k := range 2 {
			set(k, laneUnpackHalf(arg(0, 0), 0, 0, uint32(16*k)))
		}
	case ir.PackI8:
		s := uint32(0)
		for k := range 4 {
			s = lanePackByte(s, arg(0, k), 0, uint32(8*k))
		}
		set(0, s)
	case ir.UnpackI8, ir.UnpackU8:
		f := laneUnpackI8
		if in.Code == ir.UnpackU8 {
			f = laneUnpackU8
		}
		for k := range 4 {
			set(k, f(arg(0, 0), 0, 0, uint32(8*k)))
		}
	}
}

func rounded(t ir.Type, x uint32) uint32 {
	if t == ir.F16 {
		return laneConvertF32F16(x, 0, 0, 0)
	}
	return x
}

// far limits the magnitude of exact integers: such a number has wrapped many times.
const far = 1 << 61

func saturate(e int64) int64 { return min(max(e, -far), far) }

func times(a, b int64) int64 {
	if f := float64(a) * float64(b); math.Abs(f) >= far {
		return int64(math.Copysign(far, f))
	}
	return a * b
}

// subgroup runs an operation that the lanes of each subgroup do together.
func (c *checker) subgroup(w *warp, v ir.Value, in *ir.Instr) {
	w.trace = append(w.trace, v)
	if w.active != w.all {
		c.find(&Finding{Kind: DivergentSubgroup, Value: v, Index: -1, Lanes: c.split(w), Note: "lanes of one subgroup disagree"})
	}
	for at := 0; at < w.n; at += c.l.subgroup {
		c.together(w, v, in, w.from+at, min(c.l.subgroup, w.n-at))
	}
}

// together runs an operation over one subgroup of n lanes.
func (c *checker) together(w *warp, v ir.Value, in *ir.Instr, first, n int) {
	var from []uint32
	if in.Code == ir.SubgroupShuffle {
		from = c.row(in.Args[1], 0)[first:][:n]
	}
	// Devices without subgroups have subgroups of one lane, in which a shuffle is the identity.
	for i := 0; i < n && c.l.subgroup > 1; i++ {
		j := i
		switch in.Code {
		case ir.SubgroupShuffle:
			j = int(min(from[i], 1<<20))
		case ir.SubgroupXor:
			j = i ^ int(min(in.Imm, 1<<20))
		}
		if j >= n && w.active.has(first-w.from+i) {
			c.find(&Finding{Kind: ShuffleRange, Value: v, Index: int64(j), Lanes: [2]int32{int32(first + i), -1},
				Note: fmt.Sprintf("of a subgroup with %d lanes", n)})
		}
	}
	for k := range int(in.Width) {
		d, a := c.row(v, k)[first:][:n], c.row(in.Args[0], k)[first:][:n]
		exchange(subgroupOps[in.Code], combiner(in), in.Imm, d, a, from)
		e := c.exact[c.place(v, k)+first:]
		for i, x := range d {
			e[i] = integer(x, in.Type == ir.I32)
		}
	}
}
