package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// A tile multiplies a few rows of integers by sixteen rows of decoded blocks, which are interleaved
// four elements at a time. It keeps its sums in registers.
type tile struct {
	*gen
	name  string
	rows  int
	group int // elements with the same scale
	// multiply writes the products of one step of four elements, and finish widens the sums of a
	// group to 32 bits.
	multiply func(t *tile, sums *[2]reg.VecVirtual, w, size [2]reg.VecVirtual, x reg.VecVirtual, first bool)
	finish   func(t *tile, sum reg.VecVirtual, correction Mem)
	signed   bool // multiply needs the absolute values of w
	start    bool // sums begin with the corrections
}

// tiles returns the tiles of AVX2.
func (g *gen) tiles() []tile {
	var all []tile
	put := func(t tile, most int) {
		for rows := 1; rows <= most; rows++ {
			one := t
			one.gen, one.rows = g, rows
			all = append(all, one)
		}
	}
	// For codes up to 16, or up to 32 if half as many products are added as 16 bits. The sums are
	// at most 2·127·8·16 = 2·127·4·32 = 32512.
	for _, group := range []int{32, 16} {
		put(tile{name: fmt.Sprintf("Small%d", group), group: group, multiply: multiplySmall,
			finish: func(t *tile, sum reg.VecVirtual, correction Mem) {
				c := t.YMM()
				t.VPMADDWD(t.constant(words(1)), sum, sum)
				t.VPBROADCASTD(correction, c)
				t.VPADDD(c, sum, sum)
			}}, 3)
	}
	// For codes up to 129: a sum of two products is at most 2·127·129 = 32766.
	for _, group := range []int{32, 16} {
		put(tile{name: fmt.Sprintf("Medium%d", group), group: group, start: true, finish: func(*tile, reg.VecVirtual, Mem) {},
			multiply: func(t *tile, sums *[2]reg.VecVirtual, w, _ [2]reg.VecVirtual, x reg.VecVirtual, _ bool) {
				for i := range sums {
					p := t.YMM()
					t.VPMADDUBSW(x, w[i], p)
					t.VPMADDWD(t.constant(words(1)), p, p)
					t.VPADDD(p, sums[i], sums[i])
				}
			}}, 3)
	}
	put(tile{name: "Signed32", group: 32, signed: true, finish: func(*tile, reg.VecVirtual, Mem) {},
		multiply: func(t *tile, sums *[2]reg.VecVirtual, w, size [2]reg.VecVirtual, x reg.VecVirtual, first bool) {
			for i := range sums {
				p := t.YMM()
				t.VPSIGNB(w[i], x, p)
				t.VPMADDUBSW(p, size[i], p)
				if first {
					t.VPMADDWD(t.constant(words(1)), p, sums[i])
					continue
				}
				t.VPMADDWD(t.constant(words(1)), p, p)
				t.VPADDD(p, sums[i], sums[i])
			}
		}}, 2)
	return all
}

func multiplySmall(t *tile, sums *[2]reg.VecVirtual, w, _ [2]reg.VecVirtual, x reg.VecVirtual, first bool) {
	for i := range sums {
		if first {
			t.VPMADDUBSW(x, w[i], sums[i])
			continue
		}
		p := t.YMM()
		t.VPMADDUBSW(x, w[i], p)
		t.VPADDW(p, sums[i], sums[i])
	}
}

// write writes the function.
func (t *tile) write() {
	name := fmt.Sprintf("int8Tile%d%s%s", t.rows, t.name, t.gen.name)
	t.function(name, "func(c *float32, cRow int, x *int8, scales, sums *float32, corrections *int32, stride int, w *byte, ws, wb *float32, groups int)",
		fmt.Sprintf("%s is an int8TileFunc for %d rows.", name, t.rows))
	load := func(p string) reg.GPVirtual { return t.Load(t.Param(p), t.GP64()).(reg.GPVirtual) }
	x, scales, sums, corrections := load("x"), load("scales"), load("sums"), load("corrections")
	stride, eighth := load("stride"), t.GP64()
	w, ws, wb, left := load("w"), load("ws"), load("wb"), load("groups")
	t.MOVQ(stride, eighth)
	t.SHRQ(U8(3), eighth)
	ahead := t.GP64() // the next rows, which the hardware prefetcher does not load
	t.IMUL3Q(U8(uint8(t.rows)), stride, ahead)
	t.ADDQ(x, ahead)
	c, row := load("c"), load("cRow")
	at := func(base reg.GPVirtual, row, disp int, step reg.GPVirtual, times int) Mem {
		m := Mem{Base: base, Disp: disp}
		if row > 0 {
			m.Index, m.Scale = step, uint8(row*times)
		}
		return m
	}
	var acc [][2]reg.VecVirtual
	for range t.rows {
		acc = append(acc, [2]reg.VecVirtual{t.zeros(), t.zeros()})
	}
	for r := range t.rows {
		t.PREFETCHT0(at(c, r, 0, row, 1))
	}
	parts := run / t.group
	t.held = nil
	if t.signed {
		ones := t.YMM()
		t.VMOVDQU(t.constant(words(1)), ones)
		t.held = map[[32]byte]reg.VecVirtual{words(1): ones}
	}
	t.Label("next")
	for r := range t.rows {
		t.PREFETCHT0(at(ahead, r, 0, stride, 1))
	}
	for part := range parts {
		factor := func(base reg.GPVirtual, r int) Mem { return at(base, r, 4*part, eighth, parts) }
		sum := t.partSums(part, w, func(r, k int) Mem { return at(x, r, k, stride, 1) }, func(r int) Mem { return factor(corrections, r) })
		for r := range t.rows {
			d := t.YMM()
			t.VBROADCASTSS(at(scales, r, 0, eighth, 1), d)
			for i, s := range sum[r] {
				t.finish(t, s, factor(corrections, r))
				t.VCVTDQ2PS(s, s)
				p := t.YMM()
				t.VMULPS(Mem{Base: ws, Disp: 64*part + 32*i}, d, p)
				t.VFMADD231PS(p, s, acc[r][i])
			}
		}
	}
	t.TESTQ(wb, wb)
	t.JEQ(LabelRef("unbiased"))
	for part := range parts {
		for r := range t.rows {
			s := t.YMM()
			t.VBROADCASTSS(at(sums, r, 4*part, eighth, parts), s)
			for i := range acc[r] {
				t.VFMADD231PS(Mem{Base: wb, Disp: 64*part + 32*i}, s, acc[r][i])
			}
		}
	}
	t.ADDQ(I32(int32(64*parts)), wb)
	t.ADDQ(I32(int32(4*parts)), sums)
	t.Label("unbiased")
	t.ADDQ(U8(run), x)
	t.ADDQ(U8(run), ahead)
	t.ADDQ(U8(4), scales)
	t.ADDQ(I32(int32(4*parts)), corrections)
	t.ADDQ(I32(16*run), w)
	t.ADDQ(I32(int32(64*parts)), ws)
	t.DECQ(left)
	t.JNE(LabelRef("next"))
	t.held = nil
	for r := range t.rows {
		for i, v := range acc[r] {
			m := Mem{Base: c, Disp: 32 * i}
			t.VADDPS(m, v, v)
			t.VMOVUPS(v, m)
		}
		if r+1 < t.rows {
			t.ADDQ(row, c)
		}
	}
	t.VZEROUPPER()
	t.RET()
}

// partSums writes the sums of products of one group.
func (t *tile) partSums(part int, w reg.GPVirtual, x func(r, k int) Mem, correction func(r int) Mem) [][2]reg.VecVirtual {
	sum := make([][2]reg.VecVirtual, t.rows)
	for r := range sum {
		for i := range sum[r] {
			sum[r][i] = t.YMM()
			if t.start {
				t.VPBROADCASTD(correction(r), sum[r][i])
			}
		}
	}
	for k := 0; k < t.group; k += 4 {
		var v, size [2]reg.VecVirtual
		for i := range v {
			v[i] = t.YMM()
			t.VMOVDQU(Mem{Base: w, Disp: 16*(part*t.group+k) + 32*i}, v[i])
			if t.signed {
				size[i] = t.YMM()
				t.VPABSB(v[i], size[i])
			}
		}
		for r := range sum {
			a := t.YMM()
			t.VPBROADCASTD(x(r, part*t.group+k), a)
			t.multiply(t, &sum[r], v, size, a, k == 0)
		}
	}
	return sum
}

// int8Pack writes the function that interleaves sixteen rows, four elements at a time.
func (g *gen) int8Pack() {
	name := "int8Pack" + g.name
	g.function(name, "func(dst *byte, levels *int8, stride int, zero uint32, groups int)", name+" is an int8PackFunc.")
	load := func(p string) reg.GPVirtual { return g.Load(g.Param(p), g.GP64()).(reg.GPVirtual) }
	dst, stride, left := load("dst"), load("stride"), load("groups")
	rows := []reg.GPVirtual{load("levels")}
	stride3 := g.GP64()
	g.LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, stride3)
	for range 3 {
		p := g.GP64()
		g.LEAQ(Mem{Base: rows[len(rows)-1], Index: stride, Scale: 4}, p)
		rows = append(rows, p)
	}
	zero := g.YMM()
	zeroX := g.XMM()
	g.VMOVD(g.Load(g.Param("zero"), g.GP32()), zeroX)
	g.VPBROADCASTB(zeroX, zero)
	row := func(i, disp int) Mem {
		m := Mem{Base: rows[i/4], Disp: disp}
		switch i % 4 {
		case 1, 2:
			m.Index, m.Scale = stride, uint8(i%4)
		case 3:
			m.Index, m.Scale = stride3, 1
		}
		return m
	}
	g.Label("next")
	for half := range 2 {
		for v := range 2 {
			var y [4]reg.VecVirtual
			for i := range y {
				y[i] = g.YMM()
				g.VBROADCASTI128(row(8*v+i, 16*half), y[i])
				g.VINSERTI128(U8(1), row(8*v+i+4, 16*half), y[i], y[i])
				g.VPADDB(zero, y[i], y[i])
			}
			var pair [4]reg.VecVirtual
			for i := range pair {
				pair[i] = g.YMM()
				if i%2 == 0 {
					g.VPUNPCKLDQ(y[i+1], y[i], pair[i])
				} else {
					g.VPUNPCKHDQ(y[i], y[i-1], pair[i])
				}
			}
			for k := range 4 {
				o := g.YMM()
				if k%2 == 0 {
					g.VPUNPCKLQDQ(pair[2+k/2], pair[k/2], o)
				} else {
					g.VPUNPCKHQDQ(pair[2+k/2], pair[k/2], o)
				}
				g.VMOVDQU(o, Mem{Base: dst, Disp: 64*(4*half+k) + 32*v})
			}
		}
	}
	for _, p := range rows {
		g.ADDQ(U8(run), p)
	}
	g.ADDQ(I32(16*run), dst)
	g.DECQ(left)
	g.JNE(LabelRef("next"))
	g.VZEROUPPER()
	g.RET()
}
