package main

import "fmt"

// tileRows returns the largest number of rows of a tile that fits into the registers.
func (g *neon) tileRows() int {
	if g.dotProduct {
		return 3
	}
	return 2
}

// A neonTile multiplies a few rows of integers by sixteen rows of blocks that int8PackNEON has
// packed.
type neonTile struct {
	*neon
	rows, group int
	x           []string
	w           string
	acc, sum    [][]vec // indexed by row and four columns
}

// int8Tile writes the tile with the given number of rows, and scales for groups of group elements.
func (g *neon) int8Tile(group, rows int) {
	name := fmt.Sprintf("int8Tile%dRows%d%s", rows, group, g.family())
	g.function(name, fmt.Sprintf("is an int8TileFunc for %d rows.", rows), "c *float32", "cRow int", "x *int8", "scales *float32", "sums *float32",
		"corrections *int32", "stride int", "w *byte", "ws *float32", "wb *float32", "groups int")
	t := &neonTile{neon: g, rows: rows, group: group}
	step := g.load("stride")
	t.x = g.rows("x", rows, step)
	g.op("LSR $3, %s", step)
	scales := g.rows("scales", rows, step)
	parts := run / group
	if parts == 2 {
		g.op("LSL $1, %s", step)
	}
	sums := g.rows("sums", rows, step)
	t.w = g.load("w")
	ws, wb, left := g.load("ws"), g.load("wb"), g.load("groups")
	for range rows {
		t.acc = append(t.acc, g.vs(4))
		t.sum = append(t.sum, g.vs(4))
	}
	for _, four := range t.acc {
		for _, v := range four {
			g.zero(v)
		}
	}
	next, unbiased := g.label("next"), g.label("unbiased")
	g.printf("%s:", next)
	for part := range parts {
		for half := range group / 16 {
			t.multiply(16*(part+half), half == 0)
		}
		t.scale(ws, scales)
	}
	g.op("CBZ %s, %s", wb, unbiased)
	for part := range parts {
		t.addBiases(wb, sums, part)
	}
	for _, s := range sums {
		g.add(4*parts, s)
	}
	g.printf("%s:", unbiased)
	for r := range rows {
		g.add(run, t.x[r])
		g.add(4, scales[r])
	}
	g.op("SUBS $1, %s", left)
	g.op("BNE %s", next)
	g.op("MOVD c+0(FP), %s", t.w)
	g.op("MOVD cRow+8(FP), %s", ws)
	for r := range rows {
		for j, v := range t.acc[r] {
			g.read(t.sum[r][j], t.w, 16*j)
			g.fadd(v, v, t.sum[r][j])
			g.write(v, t.w, 16*j)
		}
		if r+1 < rows {
			g.op("ADD %s, %s", ws, t.w)
		}
	}
	g.op("RET")
}

// multiply writes the products of sixteen elements.
func (t *neonTile) multiply(at int, first bool) {
	x := t.vs(t.rows)
	for r, v := range x {
		t.read(v, t.x[r], at)
	}
	if !t.dotProduct {
		t.multiplyWide(x, first)
		t.free(x...)
		return
	}
	for j := range 4 {
		w := t.vs(4)
		t.op("VLD1.P 64(%s), %s", t.w, list(w))
		for r := range x {
			if first {
				t.zero(t.sum[r][j])
			}
		}
		for k, v := range w {
			for r := range x {
				t.sdotLane(t.sum[r][j], v, x[r], k)
			}
		}
		t.free(w...)
	}
	t.free(x...)
}

// multiplyWide is multiply without SDOT. It adds four products (of two steps of four elements) as
// 16 bits, and then adjacent sums.
func (t *neonTile) multiplyWide(x []vec, first bool) {
	low, high, p, steps := t.v(), t.v(), t.v(), t.vs(2)
	for j := range 4 {
		w := t.vs(4)
		t.op("VLD1.P 64(%s), %s", t.w, list(w))
		for r, v := range x {
			for pair := range 2 {
				for i, s := range steps {
					t.op("VDUP V%d.S[%d], V%d.S4", v, 2*pair+i, s)
				}
				for i, half := range []vec{low, high} {
					codes := []uint32{0x0E20C000, 0x0E208000} // SMULL, SMLAL
					if i > 0 {
						codes = []uint32{0x4E20C000, 0x4E208000}
					}
					for k, s := range steps {
						t.word3(codes[k], "smull, smlal.8h", p, w[2*pair+k], s)
					}
					if pair == 0 {
						t.saddlpH(half, p)
					} else {
						t.word2(0x4E606800, "sadalp.4s", half, p)
					}
				}
			}
			if first {
				t.addp(t.sum[r][j], low, high)
			} else {
				t.addp(low, low, high)
				t.addS(t.sum[r][j], t.sum[r][j], low)
			}
		}
		t.free(w...)
	}
	t.free(low, high, p)
	t.free(steps...)
}

// scale adds the sums of a group, times their scales.
func (t *neonTile) scale(ws string, scales []string) {
	w, d := t.vs(4), t.v()
	t.op("VLD1.P 64(%s), %s", ws, list(w))
	for r := range t.rows {
		t.readFloat(d, scales[r], 0)
		for j, v := range w {
			p := t.v()
			t.scvtf(t.sum[r][j], t.sum[r][j])
			t.fmulLane(p, v, d, 0)
			t.fmla(t.acc[r][j], t.sum[r][j], p)
			t.free(p)
		}
	}
	t.free(w...)
	t.free(d)
}

// addBiases adds the biases of a group, times the sums of the integers.
func (t *neonTile) addBiases(wb string, sums []string, part int) {
	w, d := t.vs(4), t.v()
	t.op("VLD1.P 64(%s), %s", wb, list(w))
	for r := range t.rows {
		t.readFloat(d, sums[r], 4*part)
		for j, v := range w {
			t.fmlaLane(t.acc[r][j], v, d, 0)
		}
	}
	t.free(w...)
	t.free(d)
}

// int8Pack writes the function that interleaves four rows, four elements at a time. Sixteen
// elements of four rows are 64 bytes.
func (g *neon) int8Pack() {
	g.function("int8PackNEON", "is an int8PackFunc that stores levels in the order in which the tiles of this level read them.", "dst *byte", "levels *int8", "stride int", "zero uint32", "groups int")
	dst, stride, left, spare, row := g.load("dst"), g.load("stride"), g.load("groups"), g.gp(), g.gp()
	levels := g.load("levels")
	zero, v := g.v(), g.vs(4)
	g.op("MOVWU zero+%d(FP), %s", g.offsets["zero"], spare)
	g.op("VDUP %s, V%d.B16", spare, zero)
	next := g.label("next")
	g.printf("%s:", next)
	for half := range 2 {
		g.op("ADD $%d, %s, %s", 16*half, levels, row)
		for range 4 {
			for _, r := range v {
				g.read(r, row, 0)
				g.op("ADD %s, %s", stride, row)
				g.op("VADD V%d.B16, V%d.B16, V%d.B16", zero, r, r)
			}
			g.op("VST4.P %s, 64(%s)", list(v), dst)
		}
	}
	g.add(run, levels)
	g.op("SUBS $1, %s", left)
	g.op("BNE %s", next)
	g.op("RET")
}

// int8Round writes the function that quantises floats to integers with a scale for each 32. It also
// adds each four integers and multiplies the sums by a number.
func (g *neon) int8Round() {
	g.function("int8RoundNEON", "is an int8RoundFunc.", "q *int8", "scales *float32", "quads *int32", "times int32", "x *float32", "groups int")
	q, scales, quads, x, left, m := g.load("q"), g.load("scales"), g.load("quads"), g.load("x"), g.load("groups"), g.gp()
	times, size, most127, zeros := g.v(), g.v(), g.v(), g.v()
	g.op("MOVW times+%d(FP), %s", g.offsets["times"], m)
	g.op("VDUP %s, V%d.S4", m, times)
	g.op("MOVD $0x7fffffff, %s", m)
	g.op("VDUP %s, V%d.S4", m, size)
	g.op("MOVD $0x42fe0000, %s", m)
	g.op("FMOVS %s, F%d", m, most127)
	g.zero(zeros)
	next, infinite, zero, none, advance := g.label("next"), g.label("infinite"), g.label("zero"), g.label("none"), g.label("advance")
	g.printf("%s:", next)
	v, most, t := g.vs(8), g.v(), g.v()
	for i, w := range v {
		g.read(w, x, 16*i)
		if i == 0 {
			g.and(most, w, size)
			continue
		}
		g.and(t, w, size)
		g.smaxS(most, most, t) // nonnegative floats have the order of their bits, and NaN is above infinity
	}
	g.word2(0x4EB0A800, "smaxv.s", most, most)
	g.op("FMOVS F%d, %s", most, m)
	limit := g.gp()
	g.op("MOVD $0x7f800000, %s", limit)
	g.op("CMPW %s, %s", limit, m)
	g.op("BHS %s", infinite)
	g.op("MOVD $%d, %s", (127-100)<<23, limit)
	g.op("CMPW %s, %s", limit, m)
	g.op("BLO %s", zero)
	g.op("FDIVS F%d, F%d, F%d", most127, most, t)
	g.op("FMOVS F%d, (%s)", t, scales)
	g.op("FDIVS F%d, F%d, F%d", most, most127, t)
	for _, w := range v {
		g.fmulLane(w, w, t, 0)
		g.word2(0x4E21A800, "fcvtns.4s", w, w)
	}
	for i := range 4 {
		g.word2(0x0E614800, "sqxtn.4h", v[2*i], v[2*i])
		g.word2(0x4E614800, "sqxtn2.8h", v[2*i], v[2*i+1])
	}
	for i := range 2 {
		w := v[4*i]
		g.word2(0x0E214800, "sqxtn.8b", w, w)
		g.word2(0x4E214800, "sqxtn2.16b", w, v[4*i+2])
		g.write(w, q, 16*i)
		g.saddlpB(w, w)
		g.saddlpH(w, w)
		g.mulS(w, w, times)
		g.write(w, quads, 16*i)
	}
	g.printf("%s:", advance)
	g.add(32, q)
	g.add(4, scales)
	g.add(32, quads)
	g.add(128, x)
	g.op("SUBS $1, %s", left)
	g.op("BNE %s", next)
	g.op("RET")
	g.printf("%s:", infinite)
	g.op("MOVD $0x7fc00000, %s", m)
	g.op("B %s", none)
	g.printf("%s:", zero)
	g.op("MOVD $0, %s", m)
	g.printf("%s:", none)
	g.op("MOVW %s, (%s)", m, scales)
	for i := range 2 {
		g.write(zeros, q, 16*i)
		g.write(zeros, quads, 16*i)
	}
	g.op("B %s", advance)
}
