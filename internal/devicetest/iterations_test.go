package devicetest

import (
	"encoding/binary"
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
)

// launch holds the parameters of a launch that the loops of a program depend on.
type launch struct {
	Grid     [3]uint32 // workgroups
	Params   []byte    // the block of parameters
	Lengths  []uint32  // elements of each binding
	Subgroup int       // lanes of a subgroup, 0 if that is not known
}

// iterations returns an upper bound of the number of loop iterations of a lane, in all loops together. Each loop
// counts one more iteration for the test that ends it. The bound comes from interval arithmetic, in which numbers
// loaded from memory may have any value. It is at most [math.MaxUint32].
func (l *launch) iterations(p *ir.Program) uint64 {
	return (&iterations{p: p, l: l, spans: make([]span, len(p.Code))}).count()
}

// sampledIterations returns the largest number of iterations of lanes of some workgroups: the first and last
// workgroups along each axis, and some in between. If the work of a workgroup begins at a place that depends on the
// workgroup, intervals for all workgroups together would be too wide.
func (l *launch) sampledIterations(p *ir.Program) uint64 {
	most := uint64(0)
	for _, x := range samples(l.Grid[0]) {
		for _, y := range samples(l.Grid[1]) {
			for _, z := range samples(l.Grid[2]) {
				group := [3]span{{uint64(x), uint64(x)}, {uint64(y), uint64(y)}, {uint64(z), uint64(z)}}
				t := iterations{p: p, l: l, spans: make([]span, len(p.Code)), group: &group}
				most = max(most, t.count())
			}
		}
	}
	return most
}

// samples returns some of the numbers below n.
func samples(n uint32) []uint32 {
	if n <= 8 {
		all := make([]uint32, n)
		for i := range all {
			all[i] = uint32(i)
		}
		return all
	}
	return []uint32{0, 1, 2, n / 3, n / 2, n - 3, n - 2, n - 1}
}

// span is the range of values, as U32, that an integer may have, including both ends.
type span struct{ lo, hi uint64 }

var anything = span{0, math.MaxUint32}

// iterations counts for one workgroup, or for all.
type iterations struct {
	p     *ir.Program
	l     *launch
	group *[3]span // the workgroup, nil for all workgroups
	spans []span
}

// count returns an upper bound of the iterations of all code.
func (t *iterations) count() uint64 { return t.block(1, ir.Value(len(t.p.Code))) }

// block returns an upper bound of the iterations of the code from i up to end.
func (t *iterations) block(i, end ir.Value) uint64 {
	sum := uint64(0)
	for i < end && sum < math.MaxUint32 {
		in := &t.p.Code[i]
		switch in.Code {
		case ir.For:
			n := t.counter(i, in)
			sum += n + 1
			if n > 0 {
				sum += n * t.block(i+1, ir.Value(in.Imm))
			}
			i = ir.Value(in.Imm)
		case ir.Loop:
			sum = math.MaxUint32
		case ir.If:
			n := uint64(0)
			n, i = t.branches(i, in)
			sum += n
		case ir.AtomicOp, ir.AtomicOpShared:
			if in.Flag == ir.AtomicCompareExchange {
				sum += 2 // compilers may repeat it
			}
			t.spans[i] = anything
		default:
			t.spans[i] = t.value(in)
		}
		i++
	}
	return min(sum, math.MaxUint32)
}

// counter records the range of the counter of a For, and returns an upper bound of its number of iterations.
func (t *iterations) counter(i ir.Value, in *ir.Instr) uint64 {
	from, to, step := t.spans[in.Args[0]], t.spans[in.Args[1]], t.spans[in.Args[2]]
	if to.hi <= from.lo {
		t.spans[i] = from
		return 0
	}
	t.spans[i] = span{from.lo, to.hi - 1}
	if n := t.distance(in.Args[1], in.Args[0], maxDistance); n > 0 {
		return (n-1)/max(step.lo, 1) + 1
	}
	return 0
}

// maxDistance is the largest depth to which distance follows operands.
const maxDistance = 8

// distance returns an upper bound of the difference to - from. If one value is computed from the other, as in
// min(from+64, n), the bound is tighter than the difference of their spans.
func (t *iterations) distance(to, from ir.Value, depth int) uint64 {
	x, y := t.spans[to], t.spans[from]
	least := uint64(0)
	if x.hi > y.lo {
		least = x.hi - y.lo
	}
	if to == from {
		return 0
	}
	if depth == 0 {
		return least
	}
	a, b := &t.p.Code[to], &t.p.Code[from]
	switch {
	case a.Code == ir.Min:
		least = min(least, t.distance(a.Args[0], from, depth-1), t.distance(a.Args[1], from, depth-1))
	case a.Code == ir.Add:
		for k := range 2 {
			if c := t.spans[a.Args[1-k]]; c.hi < math.MaxUint32 {
				least = min(least, t.distance(a.Args[k], from, depth-1)+c.hi)
			}
		}
	}
	if b.Code == ir.Add {
		for k := range 2 {
			if n := t.distance(to, b.Args[k], depth-1); n < math.MaxUint32 {
				least = min(least, n-min(n, t.spans[b.Args[1-k]].lo))
			}
		}
	}
	return least
}

// branches returns an upper bound of the iterations of an If, and its End. If the condition is not known, both
// blocks count.
func (t *iterations) branches(i ir.Value, in *ir.Instr) (sum uint64, end ir.Value) {
	cond := t.spans[in.Args[0]]
	end = ir.Value(in.Imm)
	if cond.hi > 0 {
		sum = t.block(i+1, end)
	}
	if e := &t.p.Code[end]; e.Code == ir.Else {
		from := end + 1
		end = ir.Value(e.Imm)
		if cond.lo == 0 {
			sum += t.block(from, end)
		}
	}
	return sum, end
}

// value returns bounds of the value of an instruction.
func (t *iterations) value(in *ir.Instr) span {
	top := anything
	if in.Type == ir.Bool {
		top.hi = 1
	}
	switch in.Code {
	case ir.Const:
		return span{uint64(in.Imm), uint64(in.Imm)}
	case ir.Param32:
		if at := int(t.p.Uniforms[in.Imm].Offset); at+4 <= len(t.l.Params) {
			v := uint64(binary.NativeEndian.Uint32(t.l.Params[at:]))
			return span{v, v}
		}
	case ir.Len:
		if int(in.Imm) < len(t.l.Lengths) {
			v := uint64(t.l.Lengths[in.Imm])
			return span{v, v}
		}
	case ir.BuiltIn:
		return t.builtIn(in.Flag)
	}
	args, n := in.Operands()
	if in.Width != 1 || n == 0 || n > 3 || in.Code >= ir.BuiltIn && in.Code != ir.IDiv && in.Code != ir.IMod {
		return top
	}
	var of [3]span
	points := true
	for k, a := range args[:n] {
		of[k] = t.spans[a]
		points = points && of[k].lo == of[k].hi && t.p.Code[a].Width == 1
	}
	if points {
		if v, ok := ir.Fold(in.Code, in.Type, t.p.Code[args[0]].Type, uint32(of[0].lo), uint32(of[1].lo), uint32(of[2].lo)); ok {
			return span{uint64(v), uint64(v)}
		}
	}
	if in.Type != ir.U32 && !(in.Type == ir.Bool && t.p.Code[args[0]].Type == ir.U32) && in.Code != ir.Select {
		return top
	}
	return spanOf(in.Code, of, top)
}

// builtIn returns bounds of a built-in value.
func (t *iterations) builtIn(flag uint8) span {
	local := t.p.Local
	switch {
	case flag <= ir.BuiltInLocalZ:
		return span{0, uint64(local[flag-ir.BuiltInLocalX]) - 1}
	case flag <= ir.BuiltInGroupZ:
		if t.group != nil {
			return t.group[flag-ir.BuiltInGroupX]
		}
		return span{0, uint64(t.l.Grid[flag-ir.BuiltInGroupX]) - 1}
	case flag <= ir.BuiltInGroupsZ:
		n := uint64(t.l.Grid[flag-ir.BuiltInGroupsX])
		return span{n, n}
	case flag == ir.BuiltInSubgroupSize && t.l.Subgroup > 0:
		return span{uint64(t.l.Subgroup), uint64(t.l.Subgroup)}
	case flag == ir.BuiltInSubgroupSize:
		return span{1, maxSubgroup}
	case flag == ir.BuiltInSubgroupLane:
		return span{0, maxSubgroup - 1}
	}
	return span{0, uint64(local[0])*uint64(local[1])*uint64(local[2]) - 1}
}

// maxSubgroup is the largest number of lanes of a subgroup.
const maxSubgroup = 128

// spanOf returns bounds of a U32 or of a comparison.
func spanOf(c ir.Code, of [3]span, top span) span {
	x, y := of[0], of[1]
	s := top
	switch c {
	case ir.Add:
		s = span{x.lo + y.lo, x.hi + y.hi}
	case ir.Sub:
		if x.lo >= y.hi {
			s = span{x.lo - y.hi, x.hi - y.lo}
		}
	case ir.Mul:
		s = span{x.lo * y.lo, x.hi * y.hi}
	case ir.Min:
		s = span{min(x.lo, y.lo), min(x.hi, y.hi)}
	case ir.Max:
		s = span{max(x.lo, y.lo), max(x.hi, y.hi)}
	case ir.IDiv:
		if y.lo > 0 {
			s = span{x.lo / y.hi, x.hi / y.lo}
		}
	case ir.IMod:
		if y.lo > 0 {
			s = span{0, min(x.hi, y.hi-1)}
		}
	case ir.And:
		s = span{0, min(x.hi, y.hi)}
	case ir.Shl:
		if y.hi < 32 {
			s = span{x.lo << y.lo, x.hi << y.hi}
		}
	case ir.Shr:
		if y.hi < 32 {
			s = span{x.lo >> y.hi, x.hi >> y.lo}
		}
	case ir.Select:
		s = span{min(y.lo, of[2].lo), max(y.hi, of[2].hi)}
		if x.hi == 0 {
			s = of[2]
		} else if x.lo == 1 {
			s = y
		}
	case ir.Lt, ir.Le:
		less := c == ir.Le
		switch {
		case x.hi < y.lo || less && x.hi == y.lo:
			s = span{1, 1}
		case x.lo > y.hi || !less && x.lo == y.hi:
			s = span{0, 0}
		}
	}
	if s.hi > top.hi { // the result may exceed 32 bits and wrap to any value
		return top
	}
	return s
}

// maxIterations is the number of iterations after which Mesa's lavapipe ends the loops of a lane
// without an error (LP_MAX_TGSI_LOOP_ITERATIONS), so that a sum has only some of its terms. A loop that
// ends by its condition takes one more iteration, for the last test.
const maxIterations = 65535

// endsLoops reports whether a driver ends loops of a launch too early.
func endsLoops(driver string, p *ir.Program, grid [3]uint32, params []byte, arrayBytes []int64, subgroup int) bool {
	if !strings.Contains(driver, "llvmpipe") {
		return false
	}
	l := launch{Grid: grid, Params: params, Subgroup: subgroup}
	for i, b := range p.Bindings {
		each := int64(4)
		if b.Type == ir.F16 {
			each = 2
		}
		l.Lengths = append(l.Lengths, uint32(arrayBytes[i]/(each*int64(b.Width))))
	}
	return l.iterations(p) > maxIterations && l.sampledIterations(p) > maxIterations
}
