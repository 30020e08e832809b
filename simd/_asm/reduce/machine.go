package main

import (
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
)

// The kernels of this command are written once, for the interface machine, and printed for each
// instruction set. Registers have numbers; the kernels are short, so they allocate and release them
// explicitly.

// vec is a vector register of float32 lanes.
type vec int

// gp is a general register.
type gp int

// param is a parameter or a result of a kernel: *float32, int or float32.
type param struct{ name, typ string }

// fn is the declaration of a kernel.
type fn struct {
	name    string // without the level
	doc     string // the suffix of its name
	params  []param
	results []param
}

// list parses "x y *float32, n int".
func list(s string) []param {
	var ps []param
	for _, group := range strings.Split(s, ",") {
		w := strings.Fields(group)
		if len(w) == 0 {
			continue
		}
		for _, name := range w[:len(w)-1] {
			ps = append(ps, param{name, w[len(w)-1]})
		}
	}
	return ps
}

// signature writes the declaration without func and name.
func (f *fn) signature() string {
	join := func(ps []param) string {
		var s []string
		for _, p := range ps {
			s = append(s, p.name+" "+p.typ)
		}
		return "(" + strings.Join(s, ", ") + ")"
	}
	s := join(f.params)
	if len(f.results) > 0 {
		s += " " + join(f.results)
	}
	return s
}

// fold is an operation that joins two vectors lane by lane.
type fold func(dst, a, b vec)

// machine writes instructions. Destinations come first.
type machine interface {
	level() string // the ending of names
	lanes() int

	begin(f *fn)
	ret()
	pointer(name string) gp // parameter of 64 bits
	scalar(name string) vec // float parameter, in all lanes
	resultLane(string, vec) // lane 0 is the result of that name
	resultInt(string, gp)   // the result of that name

	label(l string)
	jump(l string)
	ifLess(r gp, than int, l string)
	ifAtLeast(r gp, bound int, l string)
	ifNil(r gp, l string)
	int() gp
	drop(...gp)
	ifNotLess(r, than gp, l string)
	clearInt(r gp)
	copyInt(dst, src gp)
	addConst(r gp, c int)
	addInt(dst, src gp)
	subInt(dst, src gp)
	times4(dst, src gp)
	quarter(r gp)

	vec() vec
	free(...vec)
	zero(v vec)
	copyVec(dst, src vec)
	constant(v vec, x float32)
	// splat loads one element into all lanes.
	splat(v vec, p gp)
	// load and store access the vector that is i vectors after p.
	load(v vec, p gp, i int)
	store(p gp, i int, v vec)
	storeLane(p gp, v vec)
	// part prepares loadPart and storePart for n elements, 0 < n <= lanes. partEnd frees its
	// registers.
	part(n gp)
	partEnd()
	// loadPart loads n elements; the other lanes come from rest, or are 0 without rest.
	loadPart(v vec, p gp, rest vec)
	storePart(p gp, v vec)

	fetch(p gp) // prefetches the line at p for writing

	add(dst, a, b vec)
	sub(dst, a, b vec)
	mul(dst, a, b vec)
	fma(acc, a, b vec) // acc += a*b
	max(dst, a, b vec) // either operand, or NaN, if one is NaN: see mark
	min(dst, a, b vec)
	// maxBits is the maximum of the lanes as unsigned integers.
	maxBits(dst, a, b vec)
	absStart()
	abs(dst, a vec)
	absEnd()

	// fma3 sets dst to a*b+c, rounded once. dst may be any of the operands.
	fma3(dst, a, b, c vec)
	addendOnly() bool // fma3 is one instruction only if dst is c
	// pinned returns a constant, in a register or in memory, that is valid until unpin. It may be
	// an operand of arithmetic, but not a destination.
	pinned(bits uint32) vec
	unpin()
	expUnroll() int // number of exponentials that registers allow to interleave
	// native reports whether the machine has instructions for a code.
	native(c ir.Code) bool
	ldexp(dst, a, b vec)
	condition() vec          // a register of conditions
	less(dst, a, b vec)      // a < b, dst a condition
	choose(dst, c, a, b vec) // a where condition c holds, otherwise b
	addBits(dst, a, b vec)   // as integers
	shiftBits(dst, a vec, n int)

	// markStart, mark and marked detect NaN among the operands of max or min. markStart resets the
	// state, mark tests two vectors, and marked sets lane 0 of v to NaN if a NaN was found.
	markStart()
	mark(a, b vec)
	marked(v vec)
	markEnd()

	swapPairs(dst, a vec) // exchanges adjacent lanes

	// across reduces the lanes of v to lane 0.
	across(v vec, f fold)
	storeInt32(p, r gp)
	// ifAny jumps if a lane of the two vectors at p equals v, or is NaN if nan
	// is set.
	ifAny(p gp, v vec, nan bool, l string)
	// first sets i to the first lane with a == b (or with a NaN in a, if nan is set). If there is
	// none, it jumps.
	first(i gp, a, b vec, nan bool, otherwise string)
}

const none vec = -1
