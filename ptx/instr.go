package ptx

import (
	"math"
	"strings"
)

// code is an instruction with its types: add.u32 and add.f32 have different codes.
type code uint16

// desc describes an instruction.
type desc struct {
	kinds   [4]kind // kinds of the result and of the operands, 0 if absent
	layout  layout
	fold    fold
	version uint8 // first PTX version that has the instruction, times ten
	target  Target
	text    string
}

// layout says where the operands of an instruction are, and how they are printed.
type layout uint8

const (
	layoutPlain     layout = iota // d, a, b, c, if present
	layoutName                    // d, a where a is a special register or a symbol
	layoutAux                     // d, a, b, c, aux
	layoutShuffle                 // d, a, b, aux, c
	layoutPack                    // d, {a, b}
	layoutUnpack                  // {d, a}, b
	layoutImmediate               // aux
	layoutParam                   // d, [a]; aux as in layoutLoad
	layoutLoad                    // d and its successors, [a + b]; aux is kind and width, see memoryAux
	layoutStore                   // [a + b], c; c is an index in lists if aux has a width
	layoutAtomic                  // d, [a + b], c
	layoutReduction               // [a + b], c
	layoutExchange                // d, [a + b], lists[c], lists[c+1]
	layoutCopy                    // [d + lists[c]], [a + lists[c+1]], aux, and b if present
	layoutMatrix                  // {d and its successors}, [a + b]; aux is their number
	layoutMma                     // lists[a] on: D, A, B and C, where C is D; aux has their numbers
	layoutWgmma                   // lists[a] on: D, which is c registers, A and B; b; see wgmmaAux
	layoutForm                    // according to the text: $= is d, and $ with a letter is the next of lists[a] on; aux is their number
	layoutRaw                     // likewise, with the text raws[b]
	layoutBranch                  // a
	layoutLabel                   // a
	layoutNone                    // does not exist
)

// instr is an instruction: 24 bytes without a pointer, so that the garbage collector does not scan
// it.
type instr struct {
	op    code
	aux   uint16
	guard guard
	d     val
	a     val
	b     val
	c     val
}

// guard is the condition of an instruction: 0 for no condition, or guarded, the number of a
// predicate, and in the lowest bit whether the predicate is negated.
type guard uint32

const guarded guard = 1 << 31

func guardOf(p val, not bool) guard {
	g := guarded | guard(p.n()<<1)
	if not {
		g |= 1
	}
	return g
}

// put appends an instruction.
func (k *Kernel) put(o code, aux uint16, d, a, b, c val) {
	if briefs[o].level > k.level && !k.admit(o) {
		return
	}
	n := len(k.code)
	if n == cap(k.code) && !k.room() {
		return
	}
	// The fields are set one by one, because a composite literal would be built elsewhere and
	// copied.
	k.code = k.code[:n+1]
	in := &k.code[n]
	in.op, in.aux, in.guard = o, aux, k.guard
	in.d, in.a, in.b, in.c = d, a, b, c
}

// admit is the slow part of put: for instructions that some targets lack, and for kernels that
// record positions or accept no instructions. It reports whether the instruction is to be added,
// and records the author's position.
func (k *Kernel) admit(o code) bool {
	if !k.ready() {
		return false
	}
	ds := &descs[o]
	if ds.target > k.target {
		k.failure(ErrTarget, "%s needs %v, the module is for %v", ds.name(), ds.target, k.m.target)
		return false
	}
	k.version = max(k.version, ds.version)
	if k.pos != nil {
		k.pos = append(k.pos, authorCounter())
	}
	return true
}

// room makes room for one more instruction.
func (k *Kernel) room() bool {
	if len(k.code) >= MaxInstructions {
		k.failure(ErrLimit, "the kernel has more than %d instructions: does a Go loop unroll too far?", MaxInstructions)
		return false
	}
	k.code = append(make([]instr, 0, 2*cap(k.code)+64), k.code...)
	return true
}

// first appends an instruction that runs before the others.
func (k *Kernel) first(o code, aux uint16, d, a val) {
	if k.target == 0 && !k.ready() {
		return
	}
	k.version = max(k.version, descs[o].version)
	n := len(k.prologue)
	if n == cap(k.prologue) {
		k.prologue = append(make([]instr, 0, 2*n+32), k.prologue...)
	}
	k.prologue = k.prologue[:n+1]
	in := &k.prologue[n]
	in.op, in.aux, in.guard = o, aux, 0
	in.d, in.a, in.b, in.c = d, a, 0, 0
}

// fresh returns an unused register.
func (k *Kernel) fresh(c class) val {
	n := k.regs[c]
	k.regs[c] = n + 1
	return c.reg(n)
}

// brief is the part of desc that result needs.
type brief struct {
	level uint8
	class class  // class of the result
	aux   uint16 // aux, if it is the same for all uses
	first val    // register 0 of the class
}

// The levels of instructions. The level of a kernel is levelPlain, and 0 if it accepts no
// instructions or records positions.
const (
	levelPlain  = 1 + iota // every target has the instruction
	levelTarget            // a check of the target is necessary
)

var briefs = func() (t [numCodes]brief) {
	for o := range descs {
		d := &descs[o]
		c := kinds[d.kinds[0]].class
		t[o] = brief{levelPlain, c, 0, c.reg(0)}
		if d.target > targets[0].target || d.version > targets[0].version {
			t[o].level = levelTarget
		}
		if d.layout == layoutShuffle {
			t[o].aux = shuffleAll
		}
	}
	t[opShuffleUpU32].aux, t[opShuffleUpF32].aux = 0, 0
	return t
}()

// shuffleAll is the aux of exchanges among all lanes of a warp, except those with earlier lanes
// (ShuffleUp).
const shuffleAll = 31

// result appends an instruction and returns its result.
func (k *Kernel) result(o code, a, b, c val) handle {
	s := &briefs[o]
	n := len(k.code)
	if s.level > k.level || n == cap(k.code) {
		return k.resultSlow(o, a, b, c)
	}
	r := &k.regs[s.class]
	d := s.first + val(*r)
	*r++
	k.code = k.code[:n+1]
	in := &k.code[n]
	in.op, in.aux, in.guard = o, s.aux, k.guard
	in.d, in.a, in.b, in.c = d, a, b, c
	return handle{k, d, k.age}
}

// resultSlow is result for instructions that are not plain.
func (k *Kernel) resultSlow(o code, a, b, c val) handle {
	if descs[o].target > k.target && !k.admit(o) {
		return handle{k: k, c: k.age}
	}
	d := k.fresh(briefs[o].class)
	k.put(o, briefs[o].aux, d, a, b, c)
	return handle{k, d, k.age}
}

// op1, op2 and op3 apply an instruction to values.

func op1(o code, x handle) handle {
	k := x.k
	if k == nil || x.c != k.age {
		return op1Slow(o, x)
	}
	return k.result(o, x.v, 0, 0)
}

func op1Slow(o code, x handle) handle {
	k := x.k
	if k == nil {
		if r, ok := fold1(o, x); ok {
			return r
		}
		k = unfolded
	}
	return k.result(o, k.use(x, descs[o].kinds[1]), 0, 0)
}

func op2(o code, x, y handle) handle {
	k := x.k
	if k == nil || k != y.k || x.c != k.age || y.c != k.age {
		return op2Slow(o, x, y)
	}
	return k.result(o, x.v, y.v, 0)
}

// How instructions accept constants that cannot be folded.
const (
	takesNone     = iota
	takesInteger  // constants from 2 on; only products and quotients simplify with these
	takesMultiple // likewise, except powers of two
	takesFloat    // except 1
)

// takes says for each instruction how its second operand may be a constant.
var takes = func() (t [numCodes]uint8) {
	for o := range descs {
		d := &descs[o]
		if d.layout != layoutPlain || d.kinds[2] == kNone {
			continue
		}
		switch d.kinds[2] {
		case kU32, kS32, kB32:
			t[o] = takesInteger
			if d.fold == foldMul || d.fold == foldDiv || d.fold == foldRem {
				t[o] = takesMultiple
			}
		case kF32:
			t[o] = takesFloat
		}
	}
	return t
}()

// plainConstant returns the operand for a constant of instruction o, or 0 if useOther must decide.
func (k *Kernel) plainConstant(o code, y handle) val {
	switch takes[o] {
	case takesMultiple:
		if y.c&(y.c-1) == 0 {
			return 0
		}
		fallthrough
	case takesInteger:
		if y.c-2 < payload-2 && y.v == 0 {
			return tagged(tagSmall, int(y.c))
		}
	case takesFloat:
		if y.c != math.Float32bits(1) {
			return k.pool(tagF32, uint64(y.c))
		}
	}
	return 0
}

func op2Slow(o code, x, y handle) handle {
	k := x.k
	if y.k == nil && k != nil && x.c == k.age && k.target != 0 {
		if v := k.plainConstant(o, y); v != 0 {
			return k.result(o, x.v, v, 0)
		}
	}
	if k == nil {
		k = y.k
	}
	if x.k == nil || y.k == nil {
		if r, ok := fold2(o, x, y); ok {
			return r
		}
		if k == nil {
			k = unfolded
		}
	}
	kd := &descs[o].kinds
	a := k.use(x, kd[1])
	return k.result(o, a, k.use(y, kd[2]), 0)
}

func op3(o code, x, y, z handle) handle {
	k := x.k
	if k == nil || k != y.k || k != z.k || x.c != k.age || y.c != k.age || z.c != k.age {
		return op3Slow(o, x, y, z)
	}
	return k.result(o, x.v, y.v, z.v)
}

func op3Slow(o code, x, y, z handle) handle {
	k := x.k
	if k != nil && x.c == k.age && k.target != 0 && z.k == k && z.c == k.age && y.k == nil {
		if v := k.plainConstant(o, y); v != 0 {
			return k.result(o, x.v, v, z.v)
		}
	}
	if k == nil {
		k = y.k
	}
	if k == nil {
		k = z.k
	}
	if r, ok := fold3(o, x, y, z); ok {
		return r
	}
	if k == nil {
		k = unfolded
	}
	kd := &descs[o].kinds
	a := k.use(x, kd[1])
	b := k.use(y, kd[2])
	return k.result(o, a, b, k.use(z, kd[3]))
}

// use returns the operand for a value of kind kd.
func (k *Kernel) use(x handle, kd kind) val {
	if x.k == k && x.c == k.age {
		return x.v
	}
	return k.useOther(x, kd)
}

// useOther is use for constants and for invalid values.
func (k *Kernel) useOther(x handle, kd kind) val {
	if x.k == nil {
		return k.constant(x, kd)
	}
	return k.misuse(x)
}

// reg returns the register that holds a value, for operands that cannot be
// constants.
func (k *Kernel) reg(x handle, kd kind) val {
	v := k.use(x, kd)
	if _, ok := v.class(); !ok {
		return k.result(kinds[kd].mov, v, 0, 0).v
	}
	return v
}

// constant returns the operand for a constant. If the instructions of its kind accept no constants,
// it is a register.
func (k *Kernel) constant(x handle, kd kind) val {
	if k.target != 0 {
		switch {
		case kd == kU32 && x.c <= payload:
			return tagged(tagSmall, int(x.c))
		case kd == kF32:
			return k.pool(tagF32, uint64(x.c))
		}
	}
	if !k.ready() {
		return 0
	}
	switch kd {
	case kF32:
		return k.pool(tagF32, uint64(x.c))
	case kF64:
		return k.pool(tagF64, x.bits())
	case kPred:
		return k.truth(x.c != 0)
	case kF16, kBF16, kF16x2, kBF16x2:
		return k.result(kinds[kd].mov, k.integer(uint64(x.c)), 0, 0).v
	case kS32:
		return k.integer(uint64(int64(int32(x.c))))
	case kU64:
		if b := x.bits(); int64(b) < 0 {
			return k.pool(tagBig, b)
		}
		fallthrough
	case kS64:
		return k.integer(x.bits())
	}
	return k.integer(uint64(x.c))
}

// truth returns a predicate that is always true or always false.
func (k *Kernel) truth(holds bool) val {
	i, a := 0, 0
	if holds {
		i, a = 1, 1
	}
	if k.truths[i] == 0 {
		k.truths[i] = k.fresh(classP)
		k.prologue = append(k.prologue, instr{op: opEqU32, d: k.truths[i], a: tagged(tagSmall, a), b: tagged(tagSmall, 1)})
	}
	return k.truths[i]
}

func (k *Kernel) integer(bits uint64) val {
	if bits <= payload {
		return tagged(tagSmall, int(bits))
	}
	return k.pool(tagSigned, bits)
}

func (k *Kernel) pool(tag val, bits uint64) val {
	k.consts = append(k.consts, bits)
	return tagged(tag, len(k.consts)-1)
}

func (k *Kernel) misuse(x handle) val {
	switch {
	case !k.ready():
	case x.k == k:
		k.fail("the value belongs to a kernel that was built before")
	case x.k.m == nil:
		k.fail("the operand is %s", x.k.err.Msg)
	default:
		k.fail("the operand is a value of kernel %s", x.k.name)
	}
	return 0
}

// name returns the name of the instruction as it is printed.
func (d *desc) name() string {
	name, _, _ := strings.Cut(strings.TrimSpace(d.text), " ")
	return name
}
