package main

import (
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/simd/asm/amd64file"
)

// amd64 is AVX-512 or AVX2 with FMA.
type amd64 struct {
	*build.Context
	wide    bool
	ints    []reg.GPVirtual
	used    [32]bool
	tail    vec               // AVX2: mask of part
	mask    reg.OpmaskVirtual // AVX-512: the same
	magn    vec               // mask of abs
	nans    vec               // AVX2: lanes that were NaN
	nanMask reg.OpmaskVirtual // AVX-512: the same
	labels  int
	consts  map[uint32]string
	pools   map[uint32]string
	pins    []uint32
	held    map[uint32]vec // AVX-512: constants in registers
	opmasks []reg.OpmaskVirtual
	masks   bool
}

func newAMD64(wide bool) *amd64 {
	m := &amd64{Context: build.NewContext(), wide: wide, consts: map[uint32]string{}, pools: map[uint32]string{}}
	m.ConstraintExpr("amd64,!noasm")
	return m
}

func (m *amd64) level() string {
	if m.wide {
		return "AVX512"
	}
	return "AVX2"
}

func (m *amd64) lanes() int {
	if m.wide {
		return 16
	}
	return 8
}

// write writes the assembly and the Go declarations.
func (m *amd64) write(dir, base string) error {
	return amd64file.Write(dir, base, command, m.Context)
}

func (m *amd64) begin(f *fn) {
	m.Function(f.name + m.level())
	m.Attributes(attr.NOSPLIT)
	m.Pragma("noescape")
	m.SignatureExpr("func" + f.signature())
	m.Doc(f.name + m.level() + " " + f.doc)
	m.ints, m.used = nil, [32]bool{}
}

func (m *amd64) ret() {
	m.VZEROUPPER()
	m.RET()
}

func (m *amd64) g(r gp) reg.GPVirtual { return m.ints[r] }

// v is a register, or the memory of a pinned constant.
func (m *amd64) v(v vec) operand.Op {
	if v >= inMemory {
		return m.pool(m.pins[v-inMemory])
	}
	return m.wider(v, m.wide)
}

// inMemory is the number of the first constant that has no register.
const inMemory vec = 1000

// pool is a constant as wide as a register.
func (m *amd64) pool(bits uint32) operand.Mem {
	name, ok := m.pools[bits]
	if !ok {
		name = fmt.Sprintf("reduce%s_all_%08x", m.level(), bits)
		m.pools[bits] = name
		m.StaticGlobal(name)
		m.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range m.lanes() {
			m.AddDatum(4*i, operand.U32(bits))
		}
	}
	return operand.NewDataAddr(operand.Symbol{Name: name, Static: true}, 0)
}

func (m *amd64) wider(v vec, wide bool) reg.Register {
	if v < 0 {
		panic("no register")
	}
	if wide {
		return reg.Vector.Lookup(reg.Index(v), reg.S512)
	}
	return reg.Vector.Lookup(reg.Index(v), reg.S256)
}

func (m *amd64) x(v vec) reg.Register { return reg.Vector.Lookup(reg.Index(v), reg.S128) }

func (m *amd64) pointer(name string) gp {
	r := m.int()
	m.Load(m.Param(name), m.g(r))
	return r
}

func (m *amd64) scalar(name string) vec {
	v := m.vec()
	b, err := m.Param(name).Resolve()
	check(err)
	m.VBROADCASTSS(b.Addr, m.v(v))
	return v
}

func (m *amd64) resultLane(name string, v vec) {
	m.Store(m.x(v), m.Return(name))
}

func (m *amd64) resultInt(name string, r gp) { m.Store(m.g(r), m.Return(name)) }

func (m *amd64) label(l string) { m.Label(l) }
func (m *amd64) jump(l string)  { m.JMP(operand.LabelRef(l)) }

func (m *amd64) ifLess(r gp, than int, l string) {
	m.CMPQ(m.g(r), operand.I32(than))
	m.JLT(operand.LabelRef(l))
}

func (m *amd64) ifAtLeast(r gp, bound int, l string) {
	m.CMPQ(m.g(r), operand.I32(bound))
	m.JGE(operand.LabelRef(l))
}

func (m *amd64) ifNil(r gp, l string) {
	m.TESTQ(m.g(r), m.g(r))
	m.JZ(operand.LabelRef(l))
}

func (m *amd64) ifNotLess(r, than gp, l string) {
	m.CMPQ(m.g(r), m.g(than))
	m.JGE(operand.LabelRef(l))
}

func (m *amd64) clearInt(r gp) { m.XORL(m.g(r).As32(), m.g(r).As32()) }

func (m *amd64) int() gp {
	m.ints = append(m.ints, m.GP64())
	return gp(len(m.ints) - 1)
}

func (m *amd64) drop(...gp) {} // avo computes the live ranges

func (m *amd64) copyInt(dst, src gp)  { m.MOVQ(m.g(src), m.g(dst)) }
func (m *amd64) addConst(r gp, c int) { m.ADDQ(operand.I32(c), m.g(r)) }
func (m *amd64) addInt(dst, src gp)   { m.ADDQ(m.g(src), m.g(dst)) }
func (m *amd64) subInt(dst, src gp)   { m.SUBQ(m.g(src), m.g(dst)) }
func (m *amd64) quarter(r gp)         { m.SHRQ(operand.U8(2), m.g(r)) }
func (m *amd64) times4(dst, src gp) {
	if dst != src {
		m.copyInt(dst, src)
	}
	m.SHLQ(operand.U8(2), m.g(dst))
}

func (m *amd64) vec() vec {
	n := 16
	if m.wide {
		n = 32
	}
	for i := range n {
		if !m.used[i] {
			m.used[i] = true
			return vec(i)
		}
	}
	panic("out of vector registers in " + m.level())
}

func (m *amd64) free(vs ...vec) {
	for _, v := range vs {
		if v >= 0 && v < inMemory {
			m.used[v] = false
		}
	}
}

func (m *amd64) zero(v vec) {
	if v >= 16 {
		m.VPXORD(m.v(v), m.v(v), m.v(v))
		return
	}
	// Clears the whole register, in fewer bytes.
	m.VXORPS(m.x(v), m.x(v), m.x(v))
}

func (m *amd64) copyVec(dst, src vec) { m.VMOVUPS(m.v(src), m.v(dst)) }

// data returns the constant of these bits.
func (m *amd64) data(bits uint32) operand.Mem {
	name, ok := m.consts[bits]
	if !ok {
		name = fmt.Sprintf("reduce%s_%08x", m.level(), bits)
		m.consts[bits] = name
		m.StaticGlobal(name)
		m.DataAttributes(attr.RODATA | attr.NOPTR)
		m.AddDatum(0, operand.U32(bits))
	}
	return operand.NewDataAddr(operand.Symbol{Name: name, Static: true}, 0)
}

func (m *amd64) constant(v vec, x float32) { m.VBROADCASTSS(m.data(math.Float32bits(x)), m.v(v)) }

func (m *amd64) splat(v vec, p gp) { m.VBROADCASTSS(m.mem(p, 0), m.v(v)) }

func (m *amd64) mem(p gp, i int) operand.Mem {
	return operand.Mem{Base: m.g(p), Disp: i * 4 * m.lanes()}
}

func (m *amd64) load(v vec, p gp, i int)  { m.VMOVUPS(m.mem(p, i), m.v(v)) }
func (m *amd64) store(p gp, i int, v vec) { m.VMOVUPS(m.v(v), m.mem(p, i)) }
func (m *amd64) storeLane(p gp, v vec)    { m.VMOVSS(m.x(v), m.mem(p, 0)) }

// maskTable is 8 lanes of ones and 8 of zeros: a window on it is a mask.
const maskTable = "reduceMasks"

func (m *amd64) part(n gp) {
	if m.wide {
		ones := m.GP32()
		m.mask = m.K()
		m.MOVL(operand.I32(-1), ones)
		m.BZHIL(m.g(n).As32(), ones, ones)
		m.KMOVW(ones, m.mask)
		return
	}
	if !m.masks {
		m.masks = true
		m.StaticGlobal(maskTable)
		m.DataAttributes(attr.RODATA | attr.NOPTR)
		for i := range 16 {
			v := operand.U32(0)
			if i < 8 {
				v = ^operand.U32(0)
			}
			m.AddDatum(4*i, v)
		}
	}
	at, back := m.GP64(), m.GP64()
	m.LEAQ(operand.NewDataAddr(operand.Symbol{Name: maskTable, Static: true}, 32), at)
	m.MOVQ(m.g(n), back)
	m.NEGQ(back)
	m.tail = m.vec()
	m.VMOVUPS(operand.Mem{Base: at, Index: back, Scale: 4}, m.v(m.tail))
}

func (m *amd64) partEnd() {
	if !m.wide {
		m.free(m.tail)
	}
}

func (m *amd64) loadPart(v vec, p gp, rest vec) {
	switch {
	case m.wide && rest == none:
		m.VMOVUPS_Z(m.mem(p, 0), m.mask, m.v(v))
	case m.wide:
		m.copyVec(v, rest)
		m.VMOVUPS(m.mem(p, 0), m.mask, m.v(v))
	default:
		m.VMASKMOVPS(m.mem(p, 0), m.v(m.tail), m.v(v))
		if rest != none {
			m.VBLENDVPS(m.v(m.tail), m.v(v), m.v(rest), m.v(v))
		}
	}
}

func (m *amd64) storePart(p gp, v vec) {
	if m.wide {
		m.VMOVUPS(m.v(v), m.mask, m.mem(p, 0))
		return
	}
	m.VMASKMOVPS(m.v(v), m.v(m.tail), m.mem(p, 0))
}

func (m *amd64) add(dst, a, b vec) { m.VADDPS(m.v(b), m.v(a), m.v(dst)) }
func (m *amd64) sub(dst, a, b vec) { m.VSUBPS(m.v(b), m.v(a), m.v(dst)) }
func (m *amd64) mul(dst, a, b vec) { m.VMULPS(m.v(b), m.v(a), m.v(dst)) }
func (m *amd64) fma(acc, a, b vec) { m.VFMADD231PS(m.v(b), m.v(a), m.v(acc)) }
func (m *amd64) max(dst, a, b vec) { m.VMAXPS(m.v(b), m.v(a), m.v(dst)) }
func (m *amd64) min(dst, a, b vec) { m.VMINPS(m.v(b), m.v(a), m.v(dst)) }

// inRegister returns a, or a temporary copy in a register if a is in memory. done releases the copy.
func (m *amd64) inRegister(a vec) (r vec, done func()) {
	if a < inMemory {
		return a, func() {}
	}
	r = m.vec()
	m.copyVec(r, a)
	return r, func() { m.free(r) }
}

func (m *amd64) maxBits(dst, a, b vec) { m.VPMAXUD(m.v(b), m.v(a), m.v(dst)) }

func (m *amd64) absStart() {
	m.magn = m.vec()
	m.VBROADCASTSS(m.data(1<<31-1), m.v(m.magn))
}
func (m *amd64) abs(dst, a vec) { m.VANDPS(m.v(a), m.v(m.magn), m.v(dst)) }
func (m *amd64) absEnd()        { m.free(m.magn) }

func (m *amd64) pinned(bits uint32) vec {
	if v, ok := m.held[bits]; ok {
		return v
	}
	var v vec
	if m.wide {
		v = m.vec()
		m.VBROADCASTSS(m.data(bits), m.v(v))
	} else {
		v = inMemory + vec(len(m.pins))
		m.pins = append(m.pins, bits)
	}
	if m.held == nil {
		m.held = map[uint32]vec{}
	}
	m.held[bits] = v
	return v
}

func (m *amd64) unpin() {
	for _, v := range m.held {
		if v < inMemory {
			m.free(v)
		}
	}
	m.held, m.pins = nil, nil
}

func (m *amd64) fma3(dst, a, b, c vec) {
	switch {
	case dst == c:
		if a >= inMemory {
			a, b = b, a
		}
		m.VFMADD231PS(m.v(b), m.v(a), m.v(dst))
	case dst == a || dst == b:
		if dst == b {
			b = a
		}
		if b < inMemory {
			m.VFMADD213PS(m.v(c), m.v(b), m.v(dst)) // dst = b*dst + c
			return
		}
		if c >= inMemory {
			panic("fma3: two constants in memory")
		}
		m.VFMADD132PS(m.v(b), m.v(c), m.v(dst)) // dst = dst*b + c
	default:
		m.copyVec(dst, c)
		m.fma3(dst, a, b, dst)
	}
}

func (m *amd64) addendOnly() bool { return false }

func (m *amd64) expUnroll() int {
	if m.wide {
		return 4
	}
	return 2
}

func (m *amd64) native(c ir.Code) bool { return m.wide && c == ir.Ldexp }

func (m *amd64) ldexp(dst, a, b vec) { m.VSCALEFPS(m.v(b), m.v(a), m.v(dst)) }

const lessThan = 1

// condition is an opmask in AVX-512, and lanes of zeros or ones in AVX2.
func (m *amd64) condition() vec {
	if !m.wide {
		return m.vec()
	}
	m.opmasks = append(m.opmasks, m.K())
	return firstOpmask + vec(len(m.opmasks)-1)
}

// firstOpmask is the number of the first condition in AVX-512.
const firstOpmask vec = 2000

func (m *amd64) less(dst, a, b vec) {
	if m.wide {
		m.VCMPPS(operand.U8(lessThan), m.v(b), m.v(a), m.opmasks[dst-firstOpmask])
		return
	}
	m.VCMPPS(operand.U8(lessThan), m.v(b), m.v(a), m.v(dst))
}

func (m *amd64) choose(dst, c, a, b vec) {
	if m.wide {
		m.VBLENDMPS(m.v(a), m.v(b), m.opmasks[c-firstOpmask], m.v(dst))
		return
	}
	b, done := m.inRegister(b)
	m.VBLENDVPS(m.v(c), m.v(a), m.v(b), m.v(dst))
	done()
}

func (m *amd64) addBits(dst, a, b vec)       { m.VPADDD(m.v(b), m.v(a), m.v(dst)) }
func (m *amd64) shiftBits(dst, a vec, n int) { m.VPSLLD(operand.U8(n), m.v(a), m.v(dst)) }

const unordered = 3

func (m *amd64) markStart() {
	if m.wide {
		m.nanMask = m.K()
		m.KXORW(m.nanMask, m.nanMask, m.nanMask)
		return
	}
	m.nans = m.vec()
	m.zero(m.nans)
}

func (m *amd64) mark(a, b vec) {
	if m.wide {
		k := m.K()
		m.VCMPPS(operand.U8(unordered), m.v(b), m.v(a), k)
		m.KORW(k, m.nanMask, m.nanMask)
		return
	}
	t := m.vec()
	m.VCMPPS(operand.U8(unordered), m.v(b), m.v(a), m.v(t))
	m.VORPS(m.v(t), m.v(m.nans), m.v(m.nans))
	m.free(t)
}

func (m *amd64) marked(v vec) {
	l := m.fresh("number")
	if m.wide {
		m.KORTESTW(m.nanMask, m.nanMask)
	} else {
		bits := m.GP32()
		m.VMOVMSKPS(m.v(m.nans), bits)
		m.TESTL(bits, bits)
	}
	m.JZ(operand.LabelRef(l))
	m.constant(v, float32(math.NaN()))
	m.Label(l)
}

func (m *amd64) markEnd() {
	if !m.wide {
		m.free(m.nans)
	}
}

func (m *amd64) fresh(s string) string {
	m.labels++
	return fmt.Sprintf("%s%d", s, m.labels)
}

func (m *amd64) across(v vec, f fold) {
	t := m.vec()
	wide := m.wide
	if wide {
		m.VEXTRACTF64X4(operand.U8(1), m.wider(v, true), m.wider(t, false))
		m.wide = false // only the lower halves are needed from here on
		f(v, v, t)
	}
	m.VEXTRACTF128(operand.U8(1), m.v(v), m.x(t))
	f(v, v, t)
	m.VPERMILPS(operand.U8(0b1110), m.x(v), m.x(t))
	f(v, v, t)
	m.VPERMILPS(operand.U8(0b0001), m.x(v), m.x(t))
	f(v, v, t)
	m.wide = wide
	m.free(t)
}

func (m *amd64) storeInt32(p, r gp) { m.MOVL(m.g(r).As32(), m.mem(p, 0)) }

func (m *amd64) ifAny(p gp, v vec, nan bool, l string) {
	predicate := operand.U8(0)
	w := v
	if nan {
		// An element is unordered with itself if it is NaN.
		predicate, v, w = unordered, m.vec(), m.vec()
		m.load(v, p, 0)
		m.load(w, p, 1)
		defer m.free(v, w)
	}
	if m.wide {
		a, b := m.K(), m.K()
		m.VCMPPS(predicate, m.mem(p, 0), m.v(v), a)
		m.VCMPPS(predicate, m.mem(p, 1), m.v(w), b)
		m.KORTESTW(a, b)
		m.JNZ(operand.LabelRef(l))
		return
	}
	a, b, bits := m.vec(), m.vec(), m.GP32()
	m.VCMPPS(predicate, m.mem(p, 0), m.v(v), m.v(a))
	m.VCMPPS(predicate, m.mem(p, 1), m.v(w), m.v(b))
	m.VORPS(m.v(a), m.v(b), m.v(a))
	m.VMOVMSKPS(m.v(a), bits)
	m.TESTL(bits, bits)
	m.JNZ(operand.LabelRef(l))
	m.free(a, b)
}

func (m *amd64) first(i gp, a, b vec, nan bool, otherwise string) {
	predicate := operand.U8(0)
	if nan {
		predicate, b = unordered, a
	}
	bits := m.g(i).As32()
	if m.wide {
		k := m.K()
		m.VCMPPS(predicate, m.v(b), m.v(a), k)
		m.KMOVW(k, bits)
	} else {
		t := m.vec()
		m.VCMPPS(predicate, m.v(b), m.v(a), m.v(t))
		m.VMOVMSKPS(m.v(t), bits)
		m.free(t)
	}
	m.TESTL(bits, bits)
	m.JZ(operand.LabelRef(otherwise))
	m.TZCNTL(bits, bits)
}

func (m *amd64) fetch(p gp) { m.PREFETCHT0(m.mem(p, 0)) }

func (m *amd64) swapPairs(dst, a vec) { m.VPERMILPS(operand.U8(0b10110001), m.v(a), m.v(dst)) }
