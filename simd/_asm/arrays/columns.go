package main

import (
	"strings"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// columnRows is the number of rows that a kernel over columns combines in one pass over its results.
const columnRows = 4

// A columnFold is a kernel that combines the rows of an array with its results.
type columnFold struct {
	name string
	next func(acc, v reg.VecVirtual) // combines a vector with an accumulator; v may be overwritten
}

// columns writes the kernels over columns.
func (g *gen) columns() {
	plain := func(f func(ops ...Op)) func(acc, v reg.VecVirtual) {
		return func(acc, v reg.VecVirtual) { f(v, acc, acc) }
	}
	// VMAXPS returns its second source, here the accumulator, if either source is NaN; a NaN in v is blended in.
	extreme := func(f func(ops ...Op)) func(acc, v reg.VecVirtual) {
		return func(acc, v reg.VecVirtual) {
			nan := g.YMM()
			f(acc, v, acc)
			g.VCMPPS(U8(3), v, v, nan)
			g.VBLENDVPS(nan, v, acc, acc)
		}
	}
	zeros := func(floats bool) func(acc, v reg.VecVirtual) {
		return func(acc, v reg.VecVirtual) {
			zero := g.YMM()
			g.VPXOR(zero, zero, zero)
			if floats {
				g.VPADDD(v, v, v)
			}
			g.VPCMPEQD(zero, v, v)
			g.VPADDD(v, acc, acc)
		}
	}
	// truth converts elements to 0 or 1, which join combines.
	truth := func(floats bool, join func(ops ...Op)) func(acc, v reg.VecVirtual) {
		return func(acc, v reg.VecVirtual) {
			if floats {
				g.VPADDD(v, v, v)
			}
			g.VPMINUD(g.ones, v, v)
			join(v, acc, acc)
		}
	}
	for _, f := range []columnFold{
		{"columnsAddF32AVX2", plain(g.VADDPS)},
		{"columnsMulF32AVX2", plain(g.VMULPS)},
		{"columnsMaxF32AVX2", extreme(g.VMAXPS)},
		{"columnsMinF32AVX2", extreme(g.VMINPS)},
		{"columnsSquaresF32AVX2", func(acc, v reg.VecVirtual) { g.VFMADD231PS(v, v, acc) }},
		{"columnsAddAVX2", plain(g.VPADDD)},
		{"columnsMulAVX2", plain(g.VPMULLD)},
		{"columnsMaxI32AVX2", plain(g.VPMAXSD)},
		{"columnsMinI32AVX2", plain(g.VPMINSD)},
		{"columnsMaxU32AVX2", plain(g.VPMAXUD)},
		{"columnsMinU32AVX2", plain(g.VPMINUD)},
		{"columnsZerosAVX2", zeros(false)},
		{"columnsFloatZerosAVX2", zeros(true)},
		{"columnsAnyAVX2", truth(false, g.VPMAXUD)},
		{"columnsFloatAnyAVX2", truth(true, g.VPMAXUD)},
		{"columnsAllAVX2", truth(false, g.VPMINUD)},
		{"columnsFloatAllAVX2", truth(true, g.VPMINUD)},
	} {
		g.columnFold(f)
		g.arrayFold(f)
	}
	g.columnDeviations()
	g.columnProducts()
}

// pass writes a loop over the columns of some rows. block writes the code for one vector of
// columns; it must load and store with the functions that it receives, which mask the tail.
func (g *gen) pass(label string, n, i reg.GPVirtual, mask reg.VecVirtual, block func(load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem))) {
	full := g.GP64()
	g.MOVQ(n, full)
	g.ANDQ(I8(-lanes), full)
	g.XORQ(i, i)
	g.CMPQ(i, full)
	g.JGE(LabelRef(label + "tail"))
	g.Label(label + "vector")
	block(func(m Mem, v reg.VecVirtual) { g.VMOVUPS(m, v) }, func(v reg.VecVirtual, m Mem) { g.VMOVUPS(v, m) })
	g.ADDQ(I8(lanes), i)
	g.CMPQ(i, full)
	g.JLT(LabelRef(label + "vector"))
	g.Label(label + "tail")
	g.CMPQ(i, n)
	g.JGE(LabelRef(label + "done"))
	block(func(m Mem, v reg.VecVirtual) { g.VMASKMOVPS(m, mask, v) }, func(v reg.VecVirtual, m Mem) { g.VMASKMOVPS(v, mask, m) })
	g.Label(label + "done")
}

// tailMask returns the mask of the lanes in the tail, after the last whole vector.
func (g *gen) tailMask(n reg.GPVirtual) reg.VecVirtual {
	mask, count, lane := g.YMM(), g.YMM(), g.GP64()
	g.MOVQ(n, lane)
	g.ANDQ(I8(lanes-1), lane)
	g.VMOVD(lane.As32(), count.AsX())
	g.VPBROADCASTD(count.AsX(), count)
	if g.laneNumbers.Symbol.Name == "" {
		g.laneNumbers = g.global("columnLanes", 1<<32, 3<<32|2, 5<<32|4, 7<<32|6)
	}
	g.VPCMPGTD(g.laneNumbers, count, mask)
	return mask
}

// columnFold writes a kernel.
func (g *gen) columnFold(f columnFold) {
	g.function(f.name, "func(dst, x *uint32, n, rows, stride int)",
		f.name+" combines each of n elements of dst with the elements of its column in x. x has rows rows, stride apart. n is positive.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	dst, x, n, rows, stride := load("dst"), load("x"), load("n"), load("rows"), load("stride")
	g.SHLQ(U8(2), stride)
	i, mask := g.GP64(), g.tailMask(n)
	g.ones = g.splat(1)
	row := [columnRows]reg.GPVirtual{x, g.GP64(), g.GP64(), g.GP64()}
	acc := g.YMM()
	v := [columnRows]reg.VecVirtual{g.YMM(), g.YMM(), g.YMM(), g.YMM()}
	block := func(count int) func(load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem)) {
		return func(load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem)) {
			at := Mem{Base: dst, Index: i, Scale: 4}
			load(at, acc)
			for k := range count {
				load(Mem{Base: row[k], Index: i, Scale: 4}, v[k])
			}
			for k := range count {
				f.next(acc, v[k])
			}
			store(acc, at)
		}
	}
	pass := func(label string, count int) { g.pass(label, n, i, mask, block(count)) }
	g.Label("rows")
	g.SUBQ(I8(columnRows), rows)
	g.JLT(LabelRef("rest"))
	for k := 1; k < columnRows; k++ {
		g.LEAQ(Mem{Base: row[k-1], Index: stride, Scale: 1}, row[k])
	}
	pass("many", columnRows)
	g.LEAQ(Mem{Base: row[columnRows-1], Index: stride, Scale: 1}, x)
	g.JMP(LabelRef("rows"))
	g.Label("rest")
	g.ADDQ(I8(columnRows), rows)
	g.JEQ(LabelRef("end"))
	g.LEAQ(Mem{Base: x, Index: stride, Scale: 1}, row[1])
	g.LEAQ(Mem{Base: row[1], Index: stride, Scale: 1}, row[2])
	g.CMPQ(rows, U8(2))
	g.JEQ(LabelRef("two"))
	g.JGT(LabelRef("three"))
	for count, label := range []string{1: "one", 2: "two", 3: "three"} {
		if count > 0 {
			g.Label(label)
			pass("pass"+label, count)
			g.JMP(LabelRef("end"))
		}
	}
	g.Label("end")
	g.ret()
}

// arrayFold writes the kernel for many arrays with few rows. The last two vectors of columns overlap.
func (g *gen) arrayFold(f columnFold) {
	name := "arrays" + strings.TrimPrefix(f.name, "columns")
	g.function(name, "func(dst, x *uint32, n, rows, arrays int, start uint32)",
		name+" combines start with the elements of each column of n elements, in each of the arrays of rows rows in x. n is at least 8,",
		"and rows and arrays are positive.")
	dst, x, n, rows, arrays := g.param("dst"), g.param("x"), g.param("n"), g.param("rows"), g.param("arrays")
	first, acc, v := g.YMM(), g.YMM(), g.YMM()
	a, err := g.Param("start").Resolve()
	if err != nil {
		panic(err)
	}
	g.VBROADCASTSS(a.Addr, first)
	g.ones = g.splat(1)
	end, p, left := g.GP64(), g.GP64(), g.GP64()
	g.SHLQ(U8(2), n)
	g.Label("array")
	g.MOVQ(U32(4*lanes), end) // where the vector ends in its row
	g.Label("columns")
	g.LEAQ(Mem{Base: x, Index: end, Scale: 1, Disp: -4 * lanes}, p)
	g.MOVQ(rows, left)
	g.VMOVAPS(first, acc)
	g.Label("row")
	g.VMOVUPS(Mem{Base: p}, v)
	f.next(acc, v)
	g.ADDQ(n, p)
	g.DECQ(left)
	g.JNE(LabelRef("row"))
	g.VMOVUPS(acc, Mem{Base: dst, Index: end, Scale: 1, Disp: -4 * lanes})
	g.CMPQ(end, n)
	g.JEQ(LabelRef("next"))
	g.ADDQ(U8(4*lanes), end)
	g.CMPQ(end, n)
	g.CMOVQGT(n, end)
	g.JMP(LabelRef("columns"))
	g.Label("next")
	g.ADDQ(n, dst)
	g.LEAQ(Mem{Base: p, Disp: 4 * lanes}, x) // the last vector ends where the array ends
	g.SUBQ(n, x)
	g.DECQ(arrays)
	g.JNE(LabelRef("array"))
	g.ret()
}

// columnDeviations writes the kernel of variances.
func (g *gen) columnDeviations() {
	const name = "columnsDeviationsAVX2"
	g.function(name, "func(sum, squares, x, mean *float32, n, rows, stride int)",
		name+" adds, for each of n columns of x, the distances of its elements from the mean of the column",
		"to sum, and the squares of the distances to squares. x has rows rows, stride apart. n is positive.")
	load := func(name string) reg.GPVirtual { return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual) }
	sum, squares, x, mean := load("sum"), load("squares"), load("x"), load("mean")
	n, rows, stride := load("n"), load("rows"), load("stride")
	g.SHLQ(U8(2), stride)
	i, mask := g.GP64(), g.tailMask(n)
	s, q, m, v := g.YMM(), g.YMM(), g.YMM(), g.YMM()
	g.Label("rows")
	g.DECQ(rows)
	g.JLT(LabelRef("end"))
	g.pass("one", n, i, mask, func(load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem)) {
		at := func(p reg.GPVirtual) Mem { return Mem{Base: p, Index: i, Scale: 4} }
		load(at(x), v)
		load(at(mean), m)
		load(at(sum), s)
		load(at(squares), q)
		g.VSUBPS(m, v, v)
		g.VADDPS(v, s, s)
		g.VFMADD231PS(v, v, q)
		store(s, at(sum))
		store(q, at(squares))
	})
	g.ADDQ(stride, x)
	g.JMP(LabelRef("rows"))
	g.Label("end")
	g.ret()
}

// columnProducts writes the kernel of sums of products, which combines two rows in one pass over its results.
func (g *gen) columnProducts() {
	const name = "columnsProductsAVX2"
	g.function(name, "func(dst, x, y *float32, n, rows, stride int)",
		name+" adds, for each of n columns of x and y, the products of their elements to dst. x and y have rows rows, stride apart. n is positive.")
	dst, x, y, n, rows, stride := g.param("dst"), g.param("x"), g.param("y"), g.param("n"), g.param("rows"), g.param("stride")
	g.SHLQ(U8(2), stride)
	i, mask, acc, v, w := g.GP64(), g.tailMask(n), g.YMM(), g.YMM(), g.YMM()
	nextX, nextY := g.GP64(), g.GP64()
	pass := func(label string, pairs ...[2]reg.GPVirtual) {
		g.pass(label, n, i, mask, func(load func(m Mem, v reg.VecVirtual), store func(v reg.VecVirtual, m Mem)) {
			at := func(p reg.GPVirtual) Mem { return Mem{Base: p, Index: i, Scale: 4} }
			load(at(dst), acc)
			for _, p := range pairs {
				load(at(p[0]), v)
				load(at(p[1]), w)
				g.VFMADD231PS(v, w, acc)
			}
			store(acc, at(dst))
		})
	}
	g.Label("rows")
	g.SUBQ(U8(2), rows)
	g.JLT(LabelRef("rest"))
	g.LEAQ(Mem{Base: x, Index: stride, Scale: 1}, nextX)
	g.LEAQ(Mem{Base: y, Index: stride, Scale: 1}, nextY)
	pass("two", [2]reg.GPVirtual{x, y}, [2]reg.GPVirtual{nextX, nextY})
	g.LEAQ(Mem{Base: nextX, Index: stride, Scale: 1}, x)
	g.LEAQ(Mem{Base: nextY, Index: stride, Scale: 1}, y)
	g.JMP(LabelRef("rows"))
	g.Label("rest")
	g.ADDQ(U8(2), rows)
	g.JEQ(LabelRef("end"))
	pass("one", [2]reg.GPVirtual{x, y})
	g.Label("end")
	g.ret()
}

// byteColumns writes the kernel that combines the bytes of rows with its results. The last two vectors of a row overlap, which
// changes nothing if a byte is combined twice.
func (g *gen) byteColumns(name, does string, join func(ops ...Op)) {
	g.function(name, "func(dst, x *uint8, n, rows, stride int)",
		name+" sets each of n bytes of dst to "+does+" of it and of the bytes in the same column of rows rows of x, which",
		"are stride bytes apart. n is at least 32 and rows at least 1.")
	dst, x, n, rows, stride := g.param("dst"), g.param("x"), g.param("n"), g.param("rows"), g.param("stride")
	i, p, left, acc := g.GP64(), g.GP64(), g.GP64(), g.YMM()
	g.SUBQ(U8(32), n) // the last position of a vector
	g.XORQ(i, i)
	g.Label("columns")
	g.VMOVDQU(Mem{Base: dst, Index: i, Scale: 1}, acc)
	g.LEAQ(Mem{Base: x, Index: i, Scale: 1}, p)
	g.MOVQ(rows, left)
	g.Label("row")
	join(Mem{Base: p}, acc, acc)
	g.ADDQ(stride, p)
	g.DECQ(left)
	g.JNE(LabelRef("row"))
	g.VMOVDQU(acc, Mem{Base: dst, Index: i, Scale: 1})
	g.CMPQ(i, n)
	g.JEQ(LabelRef("end"))
	g.ADDQ(U8(32), i)
	g.CMPQ(i, n)
	g.CMOVQGT(n, i)
	g.JMP(LabelRef("columns"))
	g.Label("end")
	g.ret()
}
