package main

import (
	"fmt"

	"github.com/rayo-go/rayo/gguf/block"
)

// A neonCoder is a coder for NEON: it writes the code that reads the blocks of a format, one super
// at a time.
type neonCoder struct {
	*neon
	f     block.Format
	l     *block.Layout
	src   string // the block
	spare string // a general register
	runs  int
	group int // elements with the same scale, 32 or 16
}

// neonIntegers are the formats that have kernels for products of integers.
var neonIntegers = []block.Format{
	block.Q4_0, block.Q8_0, block.Q4_K, block.Q6_K, block.Q5_K, block.Q4_1, block.Q5_0, block.Q5_1,
	block.IQ4_NL, block.IQ4_XS, block.Q2_K, block.Q3_K, block.MXFP4,
}

func (g *neon) coder(f block.Format, src, spare string, runs int) *neonCoder {
	return &neonCoder{neon: g, f: f, l: f.Layout(), src: src, spare: spare, runs: runs, group: min(run, f.Group())}
}

// superRuns returns the number of runs in a super, which is one block or four short blocks.
func superRuns(f block.Format) int {
	if f.Elements() == run {
		return 4
	}
	return f.Elements() / run
}

func (c *neonCoder) short() bool { return c.l.Elements == run }

// levels returns the levels of sixteen elements, the first or second half of run r, as signed bytes.
func (c *neonCoder) levels(r, half int) vec {
	var v vec
	for i := range c.l.Level.Number {
		f := c.field(&c.l.Level.Number[i], r, half)
		if i == 0 {
			v = f
			continue
		}
		c.or(v, v, f)
		c.free(f)
	}
	switch t := c.l.Level.Table; {
	case t != nil:
		table := c.constant(bytes16(func(i int) byte { return byte(t[i]) }))
		c.tbl(v, table, v)
		c.drop(table)
	case c.l.Level.Offset != 0:
		z := c.constant(allBytes(byte(-c.l.Level.Offset)))
		c.subB(v, v, z)
		c.drop(z)
	}
	return v
}

// field returns the items of a field for half a run, shifted as the field says.
func (c *neonCoder) field(f *block.Field, r, half int) vec {
	at, first := 0, r*run
	if c.short() {
		at, first = r*c.l.Bytes, 0
	}
	first += 16 * half
	start, stride := bit(f, first)+8*at, bit(f, first+1)-bit(f, first)
	for i := range 16 {
		if bit(f, first+i)+8*at != start+i*stride {
			panic(fmt.Sprintf("%v: no code for a field of levels", c.f))
		}
	}
	v := c.v()
	switch {
	case stride == 8:
		c.read(v, c.src, start/8)
		if f.Bits == 8 {
			return v
		}
		if left := f.Shift - start%8; left != 0 {
			c.shift(v, v, left, "B16")
		}
		if start%8+f.Bits == 8 && f.Shift == 0 {
			return v // the shift has dropped the other bits
		}
	case stride == 1 && f.Bits == 1 && start%8 == 0:
		c.op("MOVHU %d(%s), %s", start/8, c.src, c.spare)
		c.op("VDUP %s, V%d.H8", c.spare, v)
		spread := c.constant(bytes16(func(i int) byte { return byte(i / 8) }))
		c.tbl(v, v, spread)
		c.drop(spread)
		one := c.constant(bytes16(func(i int) byte { return 1 << (i % 8) }))
		c.op("VCMTST V%d.B16, V%d.B16, V%d.B16", one, v, v)
		c.drop(one)
	default:
		panic(fmt.Sprintf("%v: no code for a field of levels", c.f))
	}
	mask := c.constant(allBytes(byte((1<<f.Bits - 1) << f.Shift)))
	c.and(v, v, mask)
	c.drop(mask)
	return v
}

// scales returns the scales of the groups of the super, four in a vector, and biases returns the biases.
func (c *neonCoder) scales() []vec { return c.factors(&c.l.Scale, &c.l.Sub) }

func (c *neonCoder) biases() []vec {
	if !c.f.Biased() {
		return nil
	}
	return c.factors(&c.l.Bias, &c.l.SubBias)
}

func (c *neonCoder) factors(f *block.Float, sub *block.Integer) []vec {
	d := c.floats(f)
	if sub.Number == nil && c.short() {
		return []vec{d}
	}
	var all []vec
	for first := 0; first < sub.Number.Items(); first += 4 {
		v := c.small(sub, first)
		c.fmul(v, v, d)
		all = append(all, v)
	}
	c.free(d)
	return all
}

// floats returns the scale of each short block, or the scale of the single block in all lanes.
func (c *neonCoder) floats(f *block.Float) vec {
	if len(f.Number) != 1 || f.Number.Items() != 1 {
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	v := c.v()
	at := f.Number[0].At / 8
	switch {
	case f.Encoding == block.Binary16 && !c.short():
		c.op("MOVHU %d(%s), %s", at, c.src, c.spare)
		c.op("VDUP %s, V%d.H8", c.spare, v)
		c.fcvtl(v, v)
	case f.Encoding == block.Binary16:
		c.zero(v)
		for r := range c.runs {
			c.op("MOVHU %d(%s), %s", r*c.l.Bytes+at, c.src, c.spare)
			c.op("VMOV %s, V%d.H[%d]", c.spare, v, r)
		}
		c.fcvtl(v, v)
	case f.Encoding == block.E8M0 && c.short():
		e := c.v()
		c.zero(e)
		for r := range c.runs {
			c.op("MOVBU %d(%s), %s", r*c.l.Bytes+at, c.src, c.spare)
			c.op("VMOV %s, V%d.S[%d]", c.spare, e, r)
		}
		c.powers(v, e)
		if c.runs == 1 {
			c.op("FMOVS F%d, F%d", v, v) // zeros in the other lanes
		}
		c.free(e)
	default:
		panic(fmt.Sprintf("%v: no code for its scales", c.f))
	}
	return v
}

// powers converts E8M0 numbers e to powers of two. The exponent is e-1, except for e = 0 and 1,
// which are subnormal.
func (c *neonCoder) powers(v, e vec) {
	less, none := c.constant(allWords(-1)), c.constant(allWords(0))
	c.addS(v, e, less)
	c.smaxS(v, v, none)
	c.drop(less)
	c.drop(none)
	c.shift(v, v, 23, "S4")
	for i := range 2 {
		is, bits, least := c.constant(allWords(i)), c.constant(allWords(0x200000<<i)), c.v()
		c.equalS(least, e, is)
		c.and(least, least, bits)
		c.or(v, v, least)
		c.drop(is)
		c.drop(bits)
		c.free(least)
	}
}

// small returns four of the small factors as floats.
func (c *neonCoder) small(n *block.Integer, first int) vec {
	var v vec
	bits := 0
	for i := range n.Number {
		f := &n.Number[i]
		w := c.items(f, first)
		if i == 0 {
			v = w
		} else {
			c.or(v, v, w)
			c.free(w)
		}
		bits = max(bits, f.Bits+f.Shift)
	}
	if n.Signed {
		c.shift(v, v, 32-bits, "S4")
		c.word2(0x4F000400|uint32(32+bits)<<16, fmt.Sprintf("sshr.4s %d", 32-bits), v, v)
	}
	add := n.Add
	if n.Mul < 0 {
		add = -add
	}
	if add != float32(int(add)) || n.Mul != 1 && n.Mul != -1 {
		panic(fmt.Sprintf("%v: no code for its small scales", c.f))
	}
	if add != 0 {
		a := c.constant(allWords(int(add)))
		c.addS(v, v, a)
		c.drop(a)
	}
	c.scvtf(v, v)
	if n.Mul < 0 {
		c.word2(0x6EA0F800, "fneg.4s", v, v)
	}
	return v
}

// items returns four items of a field as integers.
func (c *neonCoder) items(f *block.Field, first int) vec {
	const window = 16
	var at, shifts [4]int
	least, most := bit(f, first)/8, 0
	for i := range at {
		b := bit(f, first+i)
		at[i], shifts[i] = b/8, -(b % 8)
		if b%8+f.Bits > 8 {
			panic("a small scale in two bytes")
		}
		least, most = min(least, at[i]), max(most, at[i])
	}
	base := min(least, c.l.Bytes-window) // does not read after the block
	if base < 0 || most >= base+window {
		panic(fmt.Sprintf("%v: its small scales are far apart", c.f))
	}
	index := c.constant(bytes16(func(i int) byte {
		if i%4 != 0 {
			return 0xff
		}
		return byte(at[i/4] - base)
	}))
	v := c.v()
	c.read(v, c.src, base)
	c.tbl(v, v, index)
	c.drop(index)
	if shifts != [4]int{} {
		s := c.constant(words4(shifts))
		c.ushlS(v, v, s)
		c.drop(s)
	}
	if f.Bits < 8 {
		mask := c.constant(allWords(1<<f.Bits - 1))
		c.and(v, v, mask)
		c.drop(mask)
	}
	if f.Shift > 0 {
		c.shift(v, v, f.Shift, "S4")
	}
	return v
}

// levels8 writes the function that decodes blocks to levels and one factor for each 16 levels.
func (g *neon) levels8(f block.Format) {
	name := fmt.Sprintf("int8Levels%vNEON", f)
	g.function(name, fmt.Sprintf("is an int8LevelsFunc of %v.", f), "levels *int8", "scales *float32", "biases *float32", "src *byte", "blocks int")
	levels, scales, src, left, spare := g.load("levels"), g.load("scales"), g.load("src"), g.load("blocks"), g.gp()
	runs := f.Elements() / run
	c := g.coder(f, src, spare, runs)
	var biases string
	if f.Biased() {
		biases = g.load("biases")
	}
	next := g.label("next")
	g.printf("%s:", next)
	c.putFactors(c.scales(), scales)
	if f.Biased() {
		c.putFactors(c.biases(), biases)
	}
	for n := range 2 * runs {
		v := c.levels(n/2, n%2)
		c.write(v, levels, 16*n)
		c.free(v)
	}
	g.add(runs*run, levels)
	g.add(f.Bytes(), src)
	g.op("SUBS $1, %s", left)
	g.op("BNE %s", next)
	g.op("RET")
}

// putFactors stores the factors of a block, one for each 16 elements, and advances the pointer.
func (c *neonCoder) putFactors(all []vec, to string) {
	each := 16
	for _, v := range all {
		switch {
		case c.runs == 1:
			c.op("VDUP V%d.S[0], V%d.S2", v, v)
			c.op("FMOVD F%d, (%s)", v, to)
			each = 8
		case c.group == run:
			w := c.v()
			c.op("VZIP1 V%d.S4, V%d.S4, V%d.S4", v, v, w)
			c.op("VZIP2 V%d.S4, V%d.S4, V%d.S4", v, v, v)
			c.write(w, to, 0)
			c.write(v, to, 16)
			c.free(w)
			each = 32
		default:
			c.write(v, to, 0)
		}
		c.free(v)
		c.add(each, to)
	}
}
