package main

import (
	"fmt"

	"github.com/rayo-go/rayo/gguf/block"
)

// neonOperands holds the operands of a product of rows of integers and one row of blocks, indexed by row.
type neonOperands struct {
	x, scales, sums []string
	acc             []vec
	partial         [][]vec // partial sums of products
}

// int8Dot writes the function that multiplies rows of integers by one row of blocks.
func (g *neon) int8Dot(f block.Format, rows int) {
	name := fmt.Sprintf("int8Dot%d%v%s", rows, f, g.family())
	g.function(name, fmt.Sprintf("is an int8DotFunc of %v for %d rows.", f, rows),
		"dst *float32", "x *int8", "scales *float32", "sums *float32", "quads *int32", "stride int", "src *byte", "blocks int")
	o := &neonOperands{partial: make([][]vec, rows)}
	src, left, step, spare := g.load("src"), g.load("blocks"), g.load("stride"), g.gp()
	o.x = g.rows("x", rows, step)
	g.op("LSR $3, %s", step)
	o.scales = g.rows("scales", rows, step)
	whole, one := g.coder(f, src, spare, superRuns(f)), g.coder(f, src, spare, 1)
	if f.Biased() {
		if whole.group == 16 {
			g.op("LSL $1, %s", step)
		}
		o.sums = g.rows("sums", rows, step)
	}
	o.acc = g.vs(rows)
	for _, v := range o.acc {
		g.zero(v)
	}
	g.hold(6, func(d *neon) {
		draft := *o
		draft.partial = make([][]vec, rows)
		d.coder(f, src, spare, superRuns(f)).int8Super(&draft)
	})
	next, short, nextShort, end := g.label("next"), g.label("short"), g.label("nextShort"), g.label("end")
	if whole.short() {
		g.op("SUBS $4, %s", left)
		g.op("BLT %s", short)
	}
	g.printf("%s:", next)
	whole.int8Super(o)
	if whole.short() {
		g.op("SUBS $4, %s", left)
		g.op("BGE %s", next)
		g.printf("%s:", short)
		g.op("ADDS $4, %s", left)
		g.op("BEQ %s", end)
		g.printf("%s:", nextShort)
		one.int8Super(o)
		next = nextShort
	}
	g.op("SUBS $1, %s", left)
	g.op("BNE %s", next)
	g.printf("%s:", end)
	g.op("MOVD dst+0(FP), %s", spare)
	for r, v := range o.acc {
		g.faddp(v, v, v)
		g.faddp(v, v, v)
		g.op("FMOVS F%d, %d(%s)", v, 4*r, spare)
	}
	g.op("RET")
}

// rows loads a pointer to a row and computes those of the other rows. The register step holds the
// row stride in bytes.
func (g *neon) rows(param string, rows int, step string) []string {
	all := []string{g.load(param)}
	for r := 1; r < rows; r++ {
		all = append(all, g.fresh(all[r-1], step))
	}
	return all
}

// int8Super writes the products of a super.
func (c *neonCoder) int8Super(o *neonOperands) {
	for i, b := range c.biases() {
		for r, sums := range o.sums {
			v := c.v()
			c.someFloats(v, sums, 16*i)
			c.fmla(o.acc[r], b, v)
			c.free(v)
		}
		c.free(b)
	}
	scales := c.scales()
	done := 0
	for n := range c.runs {
		low, high := c.levels(n, 0), c.levels(n, 1)
		for r, x := range o.x {
			c.runSums(o, r, low, high, x, n)
			if len(o.partial[r]) == 1 && (c.runs == 1 || (n+1)*run/c.group == 4*(done+1)) {
				c.addScaled(o, r, done, scales[done])
			}
		}
		c.free(low, high)
		if (n+1)*run/c.group >= 4*(done+1) {
			done++
		}
	}
	c.free(scales...)
	c.advance(o)
}

// someFloats loads four floats, or one if the super is a single short block.
func (c *neonCoder) someFloats(v vec, base string, at int) {
	if c.runs == 1 {
		c.readFloat(v, base, at)
	} else {
		c.read(v, base, at)
	}
}

// runSums multiplies a run. Pairwise additions reduce the sums of four groups to one vector, with a
// lane for each group; partial holds the intermediate vectors of one group and of two groups.
func (c *neonCoder) runSums(o *neonOperands, r int, low, high vec, x string, n int) {
	t := c.v()
	c.products(t, low, x, run*n, true)
	groups := []vec{t}
	if c.group == run {
		c.products(t, high, x, run*n+16, false)
	} else {
		groups = append(groups, c.v())
		c.products(groups[1], high, x, run*n+16, true)
	}
	p := &o.partial[r]
	if c.runs == 1 {
		*p = groups
		c.addp(t, t, t)
		c.addp(t, t, t)
		return
	}
	for i, v := range groups {
		*p = append(*p, v)
		for done := (n*len(groups) + i) % 4; done%2 == 1; done /= 2 {
			last := len(*p) - 1
			c.addp((*p)[last-1], (*p)[last-1], (*p)[last])
			c.free((*p)[last])
			*p = (*p)[:last]
		}
	}
}

// products adds the products of sixteen levels and integers to t. If first, it overwrites t.
func (c *neonCoder) products(t, levels vec, x string, at int, first bool) {
	v := c.v()
	c.read(v, x, at)
	if c.dotProduct {
		if first {
			c.zero(t)
		}
		c.word3(0x4E809400, "sdot.4s", t, levels, v)
		c.free(v)
		return
	}
	p := c.v()
	c.multiply16(p, levels, v)
	if first {
		c.saddlpH(t, p)
	} else {
		c.word2(0x4E606800, "sadalp.4s", t, p)
	}
	c.free(p, v)
}

// multiply16 writes the sums of each two products as 16 bits. They are at most 2·127·128 = 32512.
func (g *neon) multiply16(p, a, b vec) {
	g.word3(0x0E20C000, "smull.8h", p, a, b)
	g.word3(0x4E208000, "smlal2.8h", p, a, b)
}

// addScaled adds the sums of four groups, times their scales.
func (c *neonCoder) addScaled(o *neonOperands, r, i int, scale vec) {
	sum, d := o.partial[r][0], c.v()
	o.partial[r] = nil
	c.scvtf(sum, sum)
	switch {
	case c.runs == 1:
		c.readFloat(d, o.scales[r], 0)
	case c.group == run:
		c.read(d, o.scales[r], 16*i)
	default: // each scale is for two groups
		c.op("FMOVD %d(%s), F%d", 8*i, o.scales[r], d)
		c.op("VZIP1 V%d.S4, V%d.S4, V%d.S4", d, d, d)
	}
	c.fmul(d, d, scale)
	c.fmla(o.acc[r], sum, d)
	c.free(sum, d)
}

// advance advances the pointers past the super.
func (c *neonCoder) advance(o *neonOperands) {
	n := c.runs * run
	for r := range o.x {
		c.add(n, o.x[r])
		c.add(n/8, o.scales[r])
		if o.sums != nil {
			c.add(4*n/c.group, o.sums[r])
		}
	}
	c.add((n+c.l.Elements-1)/c.l.Elements*c.l.Bytes, c.src)
}
