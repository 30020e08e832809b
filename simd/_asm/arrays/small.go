package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// smallTiles writes the kernels that transpose tiles of elements of one, two and eight bytes.
func (g *gen) smallTiles() {
	for _, size := range []int{1, 2} {
		g.smallTile(size, true)
		g.smallTile(size, false)
	}
	g.smallTile(8, false)
}

// smallTile writes the kernel for elements of size bytes. It reads 16 bytes of each row, or 32 if an element has eight. With two, the vectors have two rows each.
func (g *gen) smallTile(size int, two bool) {
	cols := 16 / size
	if size == 8 {
		cols = 4
	}
	rows := cols
	if two {
		rows *= 2
	}
	name := fmt.Sprintf("turnTile%dx%dAVX2", size, rows)
	g.function(name, "func(dst, x *byte, ds, ss, cols int)",
		fmt.Sprintf("%s transposes %d rows of elements of %d bytes, which are ss bytes apart in x, to columns ds bytes apart in dst. cols is at least %d.", name, rows, size, cols))
	dst, x, ds, ss, n := reg.RAX, reg.RCX, reg.RDX, reg.RBX, reg.RSI
	for i, r := range []reg.GPPhysical{dst, x, ds, ss, n} {
		g.Load(g.ParamIndex(i), r)
	}
	p, q := reg.RDI, reg.R8
	g.Label("tile")
	g.MOVQ(x, p)
	if two {
		g.IMUL3Q(U32(uint32(rows/2)), ss, q)
		g.ADDQ(x, q)
	}
	g.turnSmall(size, two, cols)
	g.SUBQ(U8(uint8(cols)), n)
	g.JEQ(LabelRef("done"))
	g.ADDQ(I32(cols*size), x)
	g.MOVQ(p, dst) // behind the columns
	g.CMPQ(n, U8(uint8(cols)))
	g.JGE(LabelRef("tile"))
	g.SUBQ(U8(uint8(cols)), n) // the last columns overlap
	g.LEAQ(Mem{Base: x, Index: n, Scale: uint8(size)}, x)
	g.IMULQ(ds, n)
	g.ADDQ(n, dst)
	g.MOVQ(U32(uint32(cols)), n)
	g.JMP(LabelRef("tile"))
	g.Label("done")
	g.ret()
}

// turnSmall writes the code for one tile.
func (g *gen) turnSmall(size int, two bool, cols int) {
	l := &list{g: g}
	p, q := reg.RDI, reg.R8
	var v []value
	for range cols {
		v = append(v, l.add(func(to reg.VecPhysical, _ []reg.VecPhysical) {
			switch {
			case size == 8:
				g.VMOVDQU(Mem{Base: p}, to)
			default:
				g.VMOVDQU(Mem{Base: p}, to.AsX())
			}
			if two {
				g.VINSERTI128(U8(1), Mem{Base: q}, to, to)
				g.ADDQ(reg.RBX, q)
			}
			g.ADDQ(reg.RBX, p)
		}))
	}
	if size == 8 {
		a, b, c, d := l.unpack(true, false, v[0], v[1]), l.unpack(true, true, v[0], v[1]), l.unpack(true, false, v[2], v[3]), l.unpack(true, true, v[2], v[3])
		v = []value{l.halves(false, a, c), l.halves(false, b, d), l.halves(true, a, c), l.halves(true, b, d)}
	} else {
		for width := cols; width > 1; width /= 2 { // each step moves the highest bit of the number of a row to the lowest of a column
			var w []value
			for i := range cols / 2 {
				w = append(w, l.interleave(size, false, v[i], v[i+cols/2]), l.interleave(size, true, v[i], v[i+cols/2]))
			}
			v = w
		}
	}
	for i, w := range v {
		l.code = append(l.code, instruction{from: []value{w}, do: func(_ reg.VecPhysical, from []reg.VecPhysical) {
			if i == 0 {
				g.MOVQ(reg.RAX, p)
			}
			if two || size == 8 {
				g.VMOVDQU(from[0], Mem{Base: p})
			} else {
				g.VMOVDQU(from[0].AsX(), Mem{Base: p})
			}
			g.ADDQ(reg.RDX, p)
		}, dst: -1})
	}
	l.emit()
}

// interleave interleaves the low or the high elements, of one or two bytes, of the halves of a and b.
func (l *list) interleave(size int, high bool, a, b value) value {
	return l.add(func(dst reg.VecPhysical, from []reg.VecPhysical) {
		switch {
		case size == 1 && high:
			l.g.VPUNPCKHBW(from[1], from[0], dst)
		case size == 1:
			l.g.VPUNPCKLBW(from[1], from[0], dst)
		case high:
			l.g.VPUNPCKHWD(from[1], from[0], dst)
		default:
			l.g.VPUNPCKLWD(from[1], from[0], dst)
		}
	}, a, b)
}
