package main

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// exp writes the kernel of the exponentials of a softmax.
func (k *writer) exp(store bool) {
	f := &fn{name: "rowsExpSum", doc: "returns the sum of exp(x-m), of n > 0 elements, none above m unless that is NaN.",
		params: list("x *float32, n int, m float32"), results: list("ret float32")}
	if store {
		f.name, f.doc = "rowsExpStore", "sets dst to exp(x-m) and returns its sum, of n > 0 elements, none above m unless that is NaN."
		f.params = append(list("dst *float32"), f.params...)
	}
	k.begin(f)
	x, n, m, dst := k.pointer("x"), k.pointer("n"), k.scalar("m"), gp(-1)
	if store {
		dst = k.pointer("dst")
	}
	e := k.lower(expOfNegative())
	k.pin(e)
	L := k.lanes()
	sum := [2]vec{k.vec(), k.vec()}
	k.zero(sum[0])
	k.zero(sum[1])
	finish := func(vs []vec, part bool) {
		for _, v := range vs {
			k.sub(v, v, m)
		}
		k.apply(e, vs)
		for i, v := range vs {
			if store && part {
				k.storePart(dst, v)
			} else if store {
				k.store(dst, i, v)
			}
			k.add(sum[i%2], sum[i%2], v)
		}
		k.free(vs...)
	}
	count := func(c int) {
		var vs []vec
		for i := range c {
			v := k.vec()
			k.load(v, x, i)
			vs = append(vs, v)
		}
		finish(vs, false)
		k.addConst(x, 4*c*L)
		if store {
			k.addConst(dst, 4*c*L)
		}
		k.addConst(n, -c*L)
	}
	loop, one, last, done := k.fresh("loop"), k.fresh("one"), k.fresh("last"), k.fresh("done")
	u := k.expUnroll()
	k.ifLess(n, u*L, one)
	k.label(loop)
	count(u)
	k.ifAtLeast(n, u*L, loop)
	k.label(one)
	k.ifLess(n, L, last)
	count(1)
	k.jump(one)
	k.label(last)
	k.ifNil(n, done)
	k.part(n)
	v, rest := k.vec(), k.vec()
	k.constant(rest, float32(math.Inf(-1))) // whose exponential is 0
	k.loadPart(v, x, rest)
	k.free(rest)
	finish([]vec{v}, true)
	k.partEnd()
	k.label(done)
	k.unpin()
	k.add(sum[0], sum[0], sum[1])
	k.across(sum[0], k.add)
	k.resultLane("ret", sum[0])
	k.ret()
}

// affine writes the kernel that finishes a row: a loop for each of the cases
// of gamma and beta.
func (k *writer) affine() {
	k.begin(&fn{name: "rowsAffine", doc: "sets dst to ((x-m)*s+b)*gamma+beta, n > 0 elements; gamma and beta may be nil.",
		params: list("dst x gamma beta *float32, n int, m s b float32")})
	dst, x, gamma, beta, n := k.pointer("dst"), k.pointer("x"), k.pointer("gamma"), k.pointer("beta"), k.pointer("n")
	m, s, b := k.scalar("m"), k.scalar("s"), k.scalar("b")
	L := k.lanes()
	const unroll = 4
	pass := func(scaled, shifted bool) {
		one := func(i int, part bool) {
			get := func(p gp) vec {
				v := k.vec()
				if part {
					k.loadPart(v, p, none)
				} else {
					k.load(v, p, i)
				}
				return v
			}
			v := get(x)
			k.sub(v, v, m)
			k.fma3(v, v, s, b)
			switch {
			case scaled && shifted:
				g, h := get(gamma), get(beta)
				k.fma3(v, v, g, h)
				k.free(g, h)
			case scaled:
				g := get(gamma)
				k.mul(v, v, g)
				k.free(g)
			case shifted:
				h := get(beta)
				k.add(v, v, h)
				k.free(h)
			}
			if part {
				k.storePart(dst, v)
			} else {
				k.store(dst, i, v)
			}
			k.free(v)
		}
		count := func(c int) {
			for i := range c {
				one(i, false)
			}
			k.addConst(x, 4*c*L)
			k.addConst(dst, 4*c*L)
			if scaled {
				k.addConst(gamma, 4*c*L)
			}
			if shifted {
				k.addConst(beta, 4*c*L)
			}
			k.addConst(n, -c*L)
		}
		loop, single, last, done := k.fresh("loop"), k.fresh("one"), k.fresh("last"), k.fresh("done")
		k.ifLess(n, unroll*L, single)
		k.label(loop)
		count(unroll)
		k.ifAtLeast(n, unroll*L, loop)
		k.label(single)
		k.ifLess(n, L, last)
		count(1)
		k.jump(single)
		k.label(last)
		k.ifNil(n, done)
		k.part(n)
		one(0, true)
		k.partEnd()
		k.label(done)
		k.ret()
	}
	noGamma, neither, onlyGamma := k.fresh("noGamma"), k.fresh("neither"), k.fresh("onlyGamma")
	k.ifNil(gamma, noGamma)
	k.ifNil(beta, onlyGamma)
	pass(true, true)
	k.label(noGamma)
	k.ifNil(beta, neither)
	pass(false, true)
	k.label(onlyGamma)
	pass(true, false)
	k.label(neither)
	pass(false, false)
}

// expOfNegative returns e**x for x <= 0. Below -104 that is 0; the lanes where
// it is, and there are whole rows of them behind a mask of -Inf, must not
// underflow on their way, which processors of Intel take a hundred times
// longer for.
func expOfNegative() *ir.Node {
	node := func(c ir.Code, args ...*ir.Node) *ir.Node {
		n, err := ir.New(c, args...)
		check(err)
		return n
	}
	x, zero := ir.NewArg(0, ir.F32), ir.NewConst(0, ir.F32)
	far := node(ir.Lt, x, ir.NewConst(-104, ir.F32))
	return node(ir.Select, far, zero, node(ir.Exp, node(ir.Select, far, zero, x)))
}
