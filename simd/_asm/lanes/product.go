package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A product is the state of the kernel that multiplies matrices of vectors.
type product struct {
	*gen
	a, b, c    reg.GPVirtual // addresses of the tile
	ar, ar3    reg.GPVirtual // strides of one row and of three rows of a
	ac, br, bc reg.GPVirtual
	rows       reg.GPVirtual // remaining rows
	cols       reg.GPVirtual
	pa, pb, k  reg.GPVirtual
	acc, bs    []reg.VecVirtual
	tmp        reg.VecVirtual
	spread     bool // a has numbers, which are broadcast, instead of vectors
}

// product writes the kernel: a loop over pairs of columns, then the last column; in each, a loop
// over tiles of rows. With spread, a has numbers instead of vectors.
func (g *gen) product(name string, spread bool) {
	of := "vectors"
	if spread {
		of = "numbers"
	}
	g.function(name, "func(c, a, b *float32, m, n, k, cr, cc, ar, ac, br, bc int, set bool)",
		name+" subtracts the product of m×k "+of+" of a and k×n vectors of b from m×n vectors of c. With set it sets c to the product. cr, ar and br are",
		"strides of rows, and cc, ac and bc strides of columns, in bytes. Extents are positive.")
	p := &product{gen: g, spread: spread, c: g.GP64(), a: g.GP64(), b: g.param("b")}
	p.ar, p.ac, p.br, p.bc, p.cols = g.param("ar"), g.param("ac"), g.param("br"), g.param("bc"), g.param("n")
	p.ar3, p.rows, p.pa, p.pb, p.k = g.GP64(), g.GP64(), g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(Mem{Base: p.ar, Index: p.ar, Scale: 2}, p.ar3)
	for range 8 {
		p.acc = append(p.acc, g.YMM())
	}
	p.bs, p.tmp = []reg.VecVirtual{g.YMM(), g.YMM()}, g.YMM()
	p.columns(2, 4, 1)
	p.columns(1, 8, 4, 1)
	g.Label("end")
	g.ret()
}

// columns writes the loop over groups of width columns. tiles lists the heights of the tiles.
func (p *product) columns(width int, tiles ...int) {
	next := fmt.Sprintf("columns%d", width)
	p.Label(next)
	p.SUBQ(U8(width), p.cols)
	p.JLT(LabelRef(next + "end"))
	p.Load(p.Param("a"), p.a)
	p.Load(p.Param("c"), p.c)
	p.Load(p.Param("m"), p.rows)
	for _, height := range tiles {
		p.tile(fmt.Sprintf("tile%dx%d", height, width), height, width)
	}
	// The next columns of b and c.
	cc := p.k
	p.Load(p.Param("cc"), cc)
	if width == 2 {
		p.ADDQ(cc, cc)
		p.LEAQ(Mem{Base: p.b, Index: p.bc, Scale: 2}, p.b)
	} else {
		p.ADDQ(p.bc, p.b)
	}
	addr, err := p.Param("c").Resolve()
	if err != nil {
		panic(err)
	}
	p.ADDQ(cc, addr.Addr)
	p.JMP(LabelRef(next))
	p.Label(next + "end")
	p.ADDQ(U8(width), p.cols)
}

// tile writes the loop over tiles of height rows.
func (p *product) tile(label string, height, width int) {
	p.Label(label)
	p.SUBQ(U8(height), p.rows)
	p.JLT(LabelRef(label + "end"))
	acc := p.acc[:height*width]
	for _, v := range acc {
		p.VXORPS(v, v, v)
	}
	p.MOVQ(p.a, p.pa)
	p.MOVQ(p.b, p.pb)
	p.Load(p.Param("k"), p.k)
	low := reg.GPVirtual(p.a) // rows 4 to 7, if the tile has them
	if height == 8 {
		p.LEAQ(Mem{Base: p.pa, Index: p.ar, Scale: 4}, low)
	}
	p.Label(label + "k")
	p.VMOVUPS(Mem{Base: p.pb}, p.bs[0])
	if width == 2 {
		p.VMOVUPS(Mem{Base: p.pb, Index: p.bc, Scale: 1}, p.bs[1])
	}
	for i := range height {
		base := p.pa
		if i >= 4 {
			base = low
		}
		row := []Mem{{Base: base}, {Base: base, Index: p.ar, Scale: 1}, {Base: base, Index: p.ar, Scale: 2}, {Base: base, Index: p.ar3, Scale: 1}}[i%4]
		if width == 1 && !p.spread {
			p.VFMADD231PS(row, p.bs[0], acc[i])
			continue
		}
		if p.spread {
			p.VBROADCASTSS(row, p.tmp)
		} else {
			p.VMOVUPS(row, p.tmp)
		}
		for v, b := range p.bs[:width] {
			p.VFMADD231PS(p.tmp, b, acc[width*i+v])
		}
	}
	p.ADDQ(p.ac, p.pa)
	if height == 8 {
		p.ADDQ(p.ac, low)
	}
	p.ADDQ(p.br, p.pb)
	p.DECQ(p.k)
	p.JNZ(LabelRef(label + "k"))
	p.finish(label, height, width)
	p.JMP(LabelRef(label))
	p.Label(label + "end")
	p.ADDQ(U8(height), p.rows)
}

// finish stores a tile and advances to the next rows.
func (p *product) finish(label string, height, width int) {
	set, cr, cc := p.k.As32(), p.pa, p.pb
	if height == 8 { // a points to a later row and a later column
		p.Load(p.Param("k"), p.k)
		p.IMULQ(p.ac, p.k)
		p.SUBQ(p.k, p.a)
		p.LEAQ(Mem{Base: p.a, Index: p.ar, Scale: 4}, p.a)
	} else if height == 4 {
		p.LEAQ(Mem{Base: p.a, Index: p.ar, Scale: 4}, p.a)
	} else {
		p.ADDQ(p.ar, p.a)
	}
	p.Load(p.Param("set"), p.k.As8())
	p.MOVBLZX(p.k.As8(), set)
	p.Load(p.Param("cr"), cr)
	p.Load(p.Param("cc"), cc)
	p.TESTL(set, set)
	p.JNZ(LabelRef(label + "set"))
	p.MOVQ(p.c, p.k)
	p.each(height, width, cr, cc, p.k, func(m Mem, v reg.VecVirtual) {
		p.VMOVUPS(m, p.tmp)
		p.VSUBPS(v, p.tmp, v)
	})
	p.Label(label + "set")
	p.each(height, width, cr, cc, p.c, func(m Mem, v reg.VecVirtual) { p.VMOVUPS(v, m) })
}

// each calls visit for the elements of a tile of c, and advances at past the rows of the tile.
func (p *product) each(height, width int, cr, cc, at reg.GPVirtual, visit func(m Mem, v reg.VecVirtual)) {
	for i := range height {
		visit(Mem{Base: at}, p.acc[i*width])
		if width == 2 {
			visit(Mem{Base: at, Index: cc, Scale: 1}, p.acc[i*width+1])
		}
		p.ADDQ(cr, at)
	}
}
