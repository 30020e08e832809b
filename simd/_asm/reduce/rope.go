package main

// rope writes the kernel that rotates pairs of elements: from the two halves of a row if half is
// set, otherwise adjacent elements.
func (k *writer) rope(half bool) {
	f := &fn{name: "ropePairs", doc: "sets dst to x*c + swap(x)*s, for n > 0 elements, an even number, in each of count > 0 vectors, stride bytes apart. swap exchanges neighbours."}
	if half {
		f.name, f.doc = "ropeHalves", "sets (u, v) of dst to (u*c - v*s, u*s + v*c) of x in each of count > 0 vectors, stride bytes apart. u is the first n > 0 elements of a vector, and v the next n."
	}
	f.params = list("dst x c s *float32, n count stride int")
	k.begin(f)
	dst, x, c, s := k.pointer("dst"), k.pointer("x"), k.pointer("c"), k.pointer("s")
	count, stride := k.pointer("count"), k.pointer("stride")
	d, p, pc, ps, n := k.int(), k.int(), k.int(), k.int(), k.int()
	L := k.lanes()
	bytes := k.pointer("n")
	k.times4(bytes, bytes)
	vector, loop, last, next := k.fresh("vector"), k.fresh("loop"), k.fresh("last"), k.fresh("next")
	one := func(part bool) {
		get := func(p gp) vec {
			v := k.vec()
			if part {
				k.loadPart(v, p, none)
			} else {
				k.load(v, p, 0)
			}
			return v
		}
		put := func(p gp, v vec) {
			if part {
				k.storePart(p, v)
			} else {
				k.store(p, 0, v)
			}
			k.free(v)
		}
		cv, sv, u := get(pc), get(ps), get(p)
		if !half {
			t := k.vec()
			k.swapPairs(t, u)
			k.mul(t, t, sv)
			k.fma(t, u, cv)
			put(d, t)
			k.free(cv, sv, u)
			return
		}
		k.addInt(p, bytes)
		v, t := get(p), k.vec()
		k.subInt(p, bytes)
		w := k.vec()
		k.mul(w, v, sv)
		k.mul(t, u, cv)
		k.sub(t, t, w)
		k.free(w)
		put(d, t)
		k.mul(u, u, sv)
		k.fma(u, v, cv)
		k.addInt(d, bytes)
		put(d, u)
		k.subInt(d, bytes)
		k.free(cv, sv, v)
	}
	k.label(vector)
	k.copyInt(d, dst)
	k.copyInt(p, x)
	k.copyInt(pc, c)
	k.copyInt(ps, s)
	k.copyInt(n, bytes)
	k.label(loop)
	k.ifLess(n, 4*L, last)
	one(false)
	for _, r := range []gp{d, p, pc, ps} {
		k.addConst(r, 4*L)
	}
	k.addConst(n, -4*L)
	k.jump(loop)
	k.label(last)
	k.ifNil(n, next)
	k.quarter(n)
	k.part(n)
	one(true)
	k.partEnd()
	k.label(next)
	k.addInt(dst, stride)
	k.addInt(x, stride)
	k.addConst(count, -1)
	k.ifAtLeast(count, 1, vector)
	k.ret()
}
