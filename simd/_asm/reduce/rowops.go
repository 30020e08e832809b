package main

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// exp writes the kernels of the exponentials of a softmax, for one row and for many. They store the
// exponentials if store is set, and return their sum.
func (k *writer) exp(store bool) {
	e := k.lower(expOfNegative())
	name, sets, setRows, dst := "rowsExpSum", "", "sets sum", ""
	if store {
		name, sets, setRows, dst = "rowsExpStore", "sets dst to exp(x-m) and ", "sets dst to exp(x-m), and sum", "dst "
	}
	k.begin(&fn{name: name, doc: sets + "returns the sum of exp(x-m) for n > 0 elements. No element is above m unless m is NaN.",
		params: list(dst + "x *float32, n int, m float32"), results: list("ret float32")})
	x, n, m, d := k.pointer("x"), k.pointer("n"), k.scalar("m"), gp(-1)
	if store {
		d = k.pointer("dst")
	}
	k.pin(e)
	k.resultLane("ret", k.expSum(e, x, n, m, d))
	k.unpin()
	k.ret()

	k.begin(&fn{name: name + "Rows", doc: setRows + " to the sum of exp(x-m) for each of rows > 0 rows of cols > 0 elements. m has one number for each row, and no element is above it unless it is NaN.",
		params: list(dst + "x m sum *float32, rows cols int")})
	x, pm, ps, rows, cols := k.pointer("x"), k.pointer("m"), k.pointer("sum"), k.pointer("rows"), k.pointer("cols")
	px, pd, step := k.int(), gp(-1), k.int()
	if store {
		d, pd = k.pointer("dst"), k.int()
	}
	n, m = k.int(), k.vec()
	k.times4(step, cols)
	k.pin(e)
	row := k.fresh("row")
	k.label(row)
	k.splat(m, pm)
	k.copyInt(px, x)
	if store {
		k.copyInt(pd, d)
		k.addInt(d, step)
	}
	k.copyInt(n, cols)
	sum := k.expSum(e, px, n, m, pd)
	k.storeLane(ps, sum)
	k.free(sum)
	k.addConst(pm, 4)
	k.addConst(ps, 4)
	k.addInt(x, step)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, row)
	k.unpin()
	k.ret()
}

// expSum writes the exponentials of n elements at x to dst, unless dst is negative, and returns the
// register with their sum in lane 0. It advances the pointers and overwrites n.
func (k *writer) expSum(e *expression, x, n gp, m vec, dst gp) vec {
	store := dst >= 0
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
	k.constant(rest, float32(math.Inf(-1))) // its exponential is 0
	k.loadPart(v, x, rest)
	k.free(rest)
	finish([]vec{v}, true)
	k.partEnd()
	k.label(done)
	k.add(sum[0], sum[0], sum[1])
	k.across(sum[0], k.add)
	k.free(sum[1])
	return sum[0]
}

// expOfNegative returns e**x for x <= 0. Below -104 the result is 0. Masked rows have many such
// lanes (-Inf). Intermediate results of these lanes must not be subnormal, because Intel processors
// need a hundred times longer for subnormal results.
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

// affine writes the kernels that normalise and scale a row, for one row and for many. There is a
// loop for each combination of gamma and beta.
func (k *writer) affine() {
	const what = "dst to ((x-m)*s+b)*gamma+beta"
	k.begin(&fn{name: "rowsAffine", doc: "sets " + what + ", n > 0 elements; gamma and beta may be nil.",
		params: list("dst x gamma beta *float32, n int, m s b float32")})
	r := affineRow{dst: k.pointer("dst"), x: k.pointer("x"), n: k.pointer("n"), m: k.scalar("m"), s: k.scalar("s"), b: k.scalar("b")}
	k.eachCase(func(gamma, beta bool) {
		r.gamma, r.beta = gp(-1), gp(-1)
		if gamma {
			r.gamma = k.pointer("gamma")
		}
		if beta {
			r.beta = k.pointer("beta")
		}
		k.affineRow(r)
		k.ret()
		k.dropAll(r.gamma, r.beta)
	})

	k.begin(&fn{name: "rowsAffineRows", doc: "sets " + what + " for each of rows > 0 rows of cols > 0 elements. All rows have the same gamma and beta, which may be nil. msb has m, s and b of each row, one after the other.",
		params: list("dst x gamma beta msb *float32, rows cols int")})
	dst, x, msb, rows, cols, step := k.pointer("dst"), k.pointer("x"), k.pointer("msb"), k.pointer("rows"), k.pointer("cols"), k.int()
	k.times4(step, cols)
	r = affineRow{dst: k.int(), x: k.int(), n: k.int(), m: k.vec(), s: k.vec(), b: k.vec()}
	k.eachCase(func(gamma, beta bool) {
		r.gamma, r.beta = gp(-1), gp(-1)
		row := k.fresh("row")
		k.label(row)
		for _, v := range []vec{r.m, r.s, r.b} {
			k.splat(v, msb)
			k.addConst(msb, 4)
		}
		k.copyInt(r.dst, dst)
		k.copyInt(r.x, x)
		k.copyInt(r.n, cols)
		if gamma {
			r.gamma = k.pointer("gamma")
		}
		if beta {
			r.beta = k.pointer("beta")
		}
		k.affineRow(r)
		k.addInt(dst, step)
		k.addInt(x, step)
		k.addConst(rows, -1)
		k.ifAtLeast(rows, 1, row)
		k.ret()
		k.dropAll(r.gamma, r.beta)
	})
}

// dropAll releases the registers that are not negative.
func (k *writer) dropAll(rs ...gp) {
	for _, r := range rs {
		if r >= 0 {
			k.drop(r)
		}
	}
}

// eachCase writes f for each combination of present and absent gamma and beta. f ends with a
// return.
func (k *writer) eachCase(f func(gamma, beta bool)) {
	noGamma, neither, onlyGamma := k.fresh("noGamma"), k.fresh("neither"), k.fresh("onlyGamma")
	ifNil := func(name, l string) {
		p := k.pointer(name)
		k.ifNil(p, l)
		k.drop(p)
	}
	ifNil("gamma", noGamma)
	ifNil("beta", onlyGamma)
	f(true, true)
	k.label(noGamma)
	ifNil("beta", neither)
	f(false, true)
	k.label(onlyGamma)
	f(true, false)
	k.label(neither)
	f(false, false)
}

// affineRow holds the registers of affineRow. gamma and beta are negative if absent.
type affineRow struct {
	dst, x, gamma, beta, n gp
	m, s, b                vec
}

// affineRow writes the loop over one row. It advances the pointers and overwrites n.
func (k *writer) affineRow(r affineRow) {
	L := k.lanes()
	const unroll = 4
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
		v := get(r.x)
		k.sub(v, v, r.m)
		k.fma3(v, v, r.s, r.b)
		switch {
		case r.gamma >= 0 && r.beta >= 0:
			g, h := get(r.gamma), get(r.beta)
			k.fma3(v, v, g, h)
			k.free(g, h)
		case r.gamma >= 0:
			g := get(r.gamma)
			k.mul(v, v, g)
			k.free(g)
		case r.beta >= 0:
			h := get(r.beta)
			k.add(v, v, h)
			k.free(h)
		}
		if part {
			k.storePart(r.dst, v)
		} else {
			k.store(r.dst, i, v)
		}
		k.free(v)
	}
	count := func(c int) {
		for i := range c {
			one(i, false)
		}
		for _, p := range []gp{r.x, r.dst, r.gamma, r.beta} {
			if p >= 0 {
				k.addConst(p, 4*c*L)
			}
		}
		k.addConst(r.n, -c*L)
	}
	loop, single, last, done := k.fresh("loop"), k.fresh("one"), k.fresh("last"), k.fresh("done")
	k.ifLess(r.n, unroll*L, single)
	k.label(loop)
	count(unroll)
	k.ifAtLeast(r.n, unroll*L, loop)
	k.label(single)
	k.ifLess(r.n, L, last)
	count(1)
	k.jump(single)
	k.label(last)
	k.ifNil(r.n, done)
	k.part(r.n)
	one(0, true)
	k.partEnd()
	k.label(done)
}
