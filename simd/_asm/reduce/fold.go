package main

import "fmt"

// writer writes kernels on a machine.
type writer struct {
	machine
	labels int
}

func (k *writer) fresh(s string) string {
	k.labels++
	return fmt.Sprintf("%s_%d", s, k.labels)
}

// each is dot with the same y for all rows.
var each = reduction{name: "Dot", doc: reductions[3].doc, join: sums, two: true, one: true, add: reductions[3].add}

// reduction is a kernel that reduces a row to one number.
type reduction struct {
	name, doc string
	two       bool // reduces x and y
	one       bool // all rows use the same y
	// first means that lanes without an element hold the first element of the row instead of 0.
	first bool
	// add combines vector x (and y) with the accumulator, and may overwrite x.
	add func(m machine, acc, x, y vec)
	// join returns the operation that combines two accumulators.
	join  func(m machine) fold
	abs   bool // uses abs
	marks bool // detects NaN
}

func sums(m machine) fold { return m.add }

var reductions = []reduction{
	{name: "Sum", doc: "the sum of x", join: sums,
		add: func(m machine, acc, x, _ vec) { m.add(acc, acc, x) }},
	{name: "SumAbs", doc: "the sum of |x|", join: sums, abs: true,
		add: func(m machine, acc, x, _ vec) { m.abs(x, x); m.add(acc, acc, x) }},
	{name: "SumSquares", doc: "the sum of the squares of x", join: sums,
		add: func(m machine, acc, x, _ vec) { m.fma(acc, x, x) }},
	{name: "Dot", doc: "the sum of the products of x and y", join: sums, two: true,
		add: func(m machine, acc, x, y vec) { m.fma(acc, x, y) }},
	{name: "Max", doc: "the greatest of x, or NaN", first: true, marks: true,
		join: func(m machine) fold { return m.max },
		add:  func(m machine, acc, x, _ vec) { m.max(acc, acc, x) }},
	{name: "Min", doc: "the least of x, or NaN", first: true, marks: true,
		join: func(m machine) fold { return m.min },
		add:  func(m machine, acc, x, _ vec) { m.min(acc, acc, x) }},
	{name: "MaxAbs", doc: "the greatest of |x|, or NaN", abs: true,
		join: func(m machine) fold { return m.maxBits },
		add:  func(m machine, acc, x, _ vec) { m.abs(x, x); m.maxBits(acc, acc, x) }},
}

// block writes the kernel that reduces n > 0 elements.
func (k *writer) block(r reduction) {
	k.begin(&fn{name: "reduce" + r.name, doc: "returns " + r.doc + ", of n > 0 elements.",
		params: list("x y *float32, n int"), results: list("ret float32")})
	x, n := k.pointer("x"), k.pointer("n")
	y := gp(-1)
	if r.two {
		y = k.pointer("y")
	}
	if r.abs {
		k.absStart()
	}
	k.resultLane("ret", k.reduce(r, x, y, n))
	k.ret()
}

// rows writes the kernel that reduces many rows. Rows that fit into one vector have a separate
// loop.
func (k *writer) rows(r reduction) {
	suffix := "Rows"
	if r.one {
		suffix = "Each"
	}
	k.begin(&fn{name: "reduce" + r.name + suffix, doc: "sets dst to " + r.doc + ", for each of rows > 0 rows of cols > 0 elements.",
		params: list("dst x y *float32, rows cols int")})
	dst, x, rows, cols := k.pointer("dst"), k.pointer("x"), k.pointer("rows"), k.pointer("cols")
	y := gp(-1)
	if r.two {
		y = k.pointer("y")
	}
	if r.abs {
		k.absStart()
	}
	step := k.int()
	k.times4(step, cols)
	short, long, next, done := k.fresh("short"), k.fresh("long"), k.fresh("next"), k.fresh("done")
	k.ifLess(cols, k.lanes()+1, short)

	k.label(long)
	px, n, py := k.int(), k.int(), gp(-1)
	k.copyInt(px, x)
	k.copyInt(n, cols)
	if r.two {
		py = k.int()
		k.copyInt(py, y)
		if !r.one {
			k.addInt(y, step)
		}
	}
	acc := k.reduce(r, px, py, n)
	k.drop(px, n)
	if r.two {
		k.drop(py)
	}
	k.storeLane(dst, acc)
	k.free(acc)
	k.addConst(dst, 4)
	k.addInt(x, step)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, long)
	k.jump(done)

	k.label(short)
	k.part(cols)
	k.label(next)
	acc, v, w, rest := k.vec(), k.vec(), none, none
	if r.marks {
		k.markStart()
	}
	if r.first {
		rest = k.vec()
		k.splat(rest, x)
		k.loadPart(acc, x, rest)
		k.mark(acc, acc)
	} else {
		k.zero(acc)
		k.loadPart(v, x, none)
		if r.two {
			w = k.vec()
			k.loadPart(w, y, none)
			if !r.one {
				k.addInt(y, step)
			}
		}
		r.add(k, acc, v, w)
	}
	k.across(acc, r.join(k))
	if r.marks {
		k.marked(acc)
		k.markEnd()
	}
	k.storeLane(dst, acc)
	k.free(acc, v, w, rest)
	k.addConst(dst, 4)
	k.addInt(x, step)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, next)
	k.partEnd()
	k.label(done)
	k.ret()
}

// reduce writes the reduction of n elements at x (and at y). It returns the register with the
// result in lane 0. It advances x and y and overwrites n.
//
// Eight accumulators hide the latency of the additions. The remaining vectors are added to the
// first four, one step each, so that a short row takes at most four steps and joins at most four
// registers.
func (k *writer) reduce(r reduction, x, y, n gp) vec {
	p := &folding{writer: k, r: r, x: x, y: y, n: n}
	for i := range p.acc {
		p.acc[i] = k.vec()
	}
	acc := &p.acc
	if r.first {
		k.splat(acc[0], x)
	}
	p.start(acc[:4])
	if r.marks {
		k.markStart()
	}
	join := r.join(k)
	L := k.lanes()
	four, two, one, last, done := k.fresh("four"), k.fresh("two"), k.fresh("one"), k.fresh("last"), k.fresh("done")
	k.ifLess(n, 8*L, four)
	p.start(acc[4:])
	loop := k.fresh("loop")
	k.label(loop)
	p.count(8, 0)
	k.ifAtLeast(n, 8*L, loop)
	for i := range 4 {
		join(acc[i], acc[i], acc[i+4])
	}
	k.free(acc[4:]...)
	k.label(four)
	k.ifLess(n, 4*L, two)
	p.count(4, 0)
	k.label(two)
	k.ifLess(n, 2*L, one)
	p.count(2, 0)
	k.label(one)
	k.ifLess(n, L, last)
	p.count(1, 2)
	k.label(last)
	k.ifNil(n, done)
	p.countPart()
	k.label(done)
	join(acc[0], acc[0], acc[1])
	join(acc[2], acc[2], acc[3])
	join(acc[0], acc[0], acc[2])
	k.across(acc[0], join)
	if r.marks {
		k.marked(acc[0])
		k.markEnd()
	}
	k.free(acc[1:4]...)
	return acc[0]
}

// folding holds the values that the parts of reduce share.
type folding struct {
	*writer
	r       reduction
	x, y, n gp
	acc     [8]vec
}

// start sets accumulators to the first element of the row (a copy of the first accumulator), or to zeros.
func (p *folding) start(acc []vec) {
	for _, a := range acc {
		switch {
		case !p.r.first:
			p.zero(a)
		case a != p.acc[0]:
			p.copyVec(a, p.acc[0])
		}
	}
}

// count combines c vectors with the accumulators from first on.
func (p *folding) count(c int, first int) {
	k, r := p.writer, p.r
	var xs, ys []vec
	for i := range c {
		v, w := k.vec(), none
		k.load(v, p.x, i)
		if r.two {
			w = k.vec()
			k.load(w, p.y, i)
		}
		xs, ys = append(xs, v), append(ys, w)
		if i%2 == 0 && i+1 < c {
			continue
		}
		if r.marks {
			k.mark(xs[0], xs[len(xs)-1])
		}
		for j := range xs {
			r.add(k, p.acc[first+i+1-len(xs)+j], xs[j], ys[j])
		}
		k.free(xs...)
		k.free(ys...)
		xs, ys = nil, nil
	}
	L := k.lanes()
	k.addConst(p.x, 4*c*L)
	if r.two {
		k.addConst(p.y, 4*c*L)
	}
	k.addConst(p.n, -c*L)
}

// countPart combines the tail of n elements, less than a vector, with the fourth accumulator.
func (p *folding) countPart() {
	k, r := p.writer, p.r
	k.part(p.n)
	v, w, rest := k.vec(), none, none
	if r.first {
		// Other lanes may repeat any element that has been combined already.
		rest = p.acc[3]
	}
	k.loadPart(v, p.x, rest)
	if r.two {
		w = k.vec()
		k.loadPart(w, p.y, none)
	}
	if r.marks {
		k.mark(v, v)
	}
	r.add(k, p.acc[3], v, w)
	k.free(v, w)
	k.partEnd()
}

// deviations writes the kernels of the variance, of one row and of many.
func (k *writer) deviations() {
	k.begin(&fn{name: "reduceDeviations", doc: "returns the sum of x-m and the sum of (x-m)² for n > 0 elements.",
		params: list("x *float32, n int, m float32"), results: list("s1 s2 float32")})
	x, n, m := k.pointer("x"), k.pointer("n"), k.scalar("m")
	s1, s2 := k.deviate(x, n, m)
	k.resultLane("s1", s1)
	k.resultLane("s2", s2)
	k.ret()

	k.begin(&fn{name: "reduceDeviationsRows", doc: "sets s1 to the sum of x-m and s2 to the sum of (x-m)² for each of rows > 0 rows of cols > 0 elements. m has one number for each row.",
		params: list("s1 s2 x m *float32, rows cols int")})
	p1, p2, x, pm := k.pointer("s1"), k.pointer("s2"), k.pointer("x"), k.pointer("m")
	rows, cols, step := k.pointer("rows"), k.pointer("cols"), k.int()
	k.times4(step, cols)
	px, n := k.int(), k.int()
	m = k.vec()
	row := k.fresh("row")
	k.label(row)
	k.splat(m, pm)
	k.copyInt(px, x)
	k.copyInt(n, cols)
	s1, s2 = k.deviate(px, n, m)
	k.storeLane(p1, s1)
	k.storeLane(p2, s2)
	k.free(s1, s2)
	for _, p := range []gp{p1, p2, pm} {
		k.addConst(p, 4)
	}
	k.addInt(x, step)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, row)
	k.ret()
}

// deviate writes the sums over n elements from x on. The results are in lane 0 of the returned
// registers. It advances x and overwrites n.
func (k *writer) deviate(x, n gp, m vec) (sum, squares vec) {
	L := k.lanes()
	var s1, s2 [4]vec
	for i := range 4 {
		s1[i], s2[i] = k.vec(), k.vec()
		k.zero(s1[i])
		k.zero(s2[i])
	}
	one := func(i int, v vec) {
		k.sub(v, v, m)
		k.add(s1[i], s1[i], v)
		k.fma(s2[i], v, v)
		k.free(v)
	}
	count := func(c int) {
		for i := range c {
			v := k.vec()
			k.load(v, x, i)
			one(i, v)
		}
		k.addConst(x, 4*c*L)
		k.addConst(n, -c*L)
	}
	loop, two, single, last, done := k.fresh("loop"), k.fresh("two"), k.fresh("one"), k.fresh("last"), k.fresh("done")
	k.ifLess(n, 4*L, two)
	k.label(loop)
	count(4)
	k.ifAtLeast(n, 4*L, loop)
	k.label(two)
	k.ifLess(n, 2*L, single)
	count(2)
	k.label(single)
	k.ifLess(n, L, last)
	count(1)
	k.label(last)
	k.ifNil(n, done)
	k.part(n)
	v := k.vec()
	k.loadPart(v, x, m) // fill with m, whose deviation is 0
	one(3, v)
	k.partEnd()
	k.label(done)
	for _, s := range [][4]vec{s1, s2} {
		k.add(s[0], s[0], s[1])
		k.add(s[2], s[2], s[3])
		k.add(s[0], s[0], s[2])
		k.across(s[0], k.add)
		k.free(s[1:]...)
	}
	return s1[0], s2[0]
}

// index writes the search for an element, in one row and in many.
func (k *writer) index() {
	k.begin(&fn{name: "reduceIndex", doc: "returns the first i < n with x[i] == v, or the first with NaN if v is NaN. It returns n if there is none. n > 0.",
		params: list("x *float32, n int, v float32"), results: list("ret int")})
	x, n, v := k.pointer("x"), k.pointer("n"), k.scalar("v")
	k.resultInt("ret", k.find(x, n, v))
	k.ret()

	k.begin(&fn{name: "reduceIndexRows", doc: "sets dst to the result of reduceIndex for each of rows > 0 rows of cols > 0 elements. v has one number for each row.",
		params: list("dst *int32, x v *float32, rows cols int")})
	dst, x, pv := k.pointer("dst"), k.pointer("x"), k.pointer("v")
	rows, cols, step := k.pointer("rows"), k.pointer("cols"), k.int()
	k.times4(step, cols)
	px, n := k.int(), k.int()
	v = k.vec()
	row := k.fresh("row")
	k.label(row)
	k.splat(v, pv)
	k.copyInt(px, x)
	k.copyInt(n, cols)
	at := k.find(px, n, v)
	k.storeInt32(dst, at)
	k.drop(at)
	k.addConst(dst, 4)
	k.addConst(pv, 4)
	k.addInt(x, step)
	k.addConst(rows, -1)
	k.ifAtLeast(rows, 1, row)
	k.ret()
}

// find writes the search among n elements from x on and returns the register of the index. It
// advances x and overwrites n.
func (k *writer) find(x, n gp, v vec) gp {
	L := k.lanes()
	at, i, end, t := k.int(), k.int(), k.int(), k.vec()
	found := k.fresh("found")
	k.clearInt(at)
	k.copyInt(end, n)
	search := func(nan bool) {
		loop, next, last, missing := k.fresh("loop"), k.fresh("next"), k.fresh("last"), k.fresh("missing")
		pair, hit := k.fresh("pair"), k.fresh("hit")
		// Test two vectors at a time until one contains v.
		k.label(pair)
		k.ifLess(n, 2*L, loop)
		k.ifAny(x, v, nan, hit)
		k.addConst(x, 8*L)
		k.addConst(at, 2*L)
		k.addConst(n, -2*L)
		k.jump(pair)
		k.label(hit)
		k.label(loop)
		k.ifLess(n, L, last)
		k.load(t, x, 0)
		k.first(i, t, v, nan, next)
		k.addInt(at, i)
		k.jump(found)
		k.label(next)
		k.addConst(x, 4*L)
		k.addConst(at, L)
		k.addConst(n, -L)
		k.jump(loop)
		k.label(last)
		k.ifNil(n, missing)
		k.part(n)
		k.loadPart(t, x, none)
		k.first(i, t, v, nan, missing)
		k.ifNotLess(i, n, missing)
		k.addInt(at, i)
		k.jump(found)
		k.partEnd()
		k.label(missing)
		k.copyInt(at, end)
		k.jump(found)
	}
	number := k.fresh("number")
	k.first(i, v, v, true, number)
	search(true)
	k.label(number)
	search(false)
	k.label(found)
	k.free(t)
	k.drop(i, end)
	return at
}
