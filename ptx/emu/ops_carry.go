package emu

import (
	"math/bits"
	"strings"
)

// carry compiles arithmetic on numbers of several words. Instructions with .cc write the carry flag, and
// addc, subc and madc read it.
func (c *compiler) carry(in *inst) {
	p := c.parts()
	op, _, _ := strings.Cut(c.st.name, ".")
	takes := strings.HasSuffix(op, "c") // addc, subc and madc
	base := strings.TrimSuffix(op, "c")
	product := ""
	if base == "mad" && len(p) > 0 {
		product, p = p[0], p[1:]
	}
	leaves := len(p) > 0 && p[0] == "cc"
	if leaves {
		p = p[1:]
	}
	n := map[string]uint8{"u32": 4, "s32": 4, "u64": 8, "s64": 8}[strings.Join(p, ".")]
	if n == 0 || !takes && !leaves || base == "mad" && product != "lo" && product != "hi" {
		c.fail(unsupported)
	}
	want := 3
	if base == "mad" {
		want = 4
	}
	args := c.args(want, want)
	in.kind, in.d, in.a, in.b = kindRun, c.dest(&args[0], n), c.value(&args[1], n), c.value(&args[2], n)
	if in.c = in.a; base == "mad" {
		in.c = c.value(&args[3], n)
	}
	f := wide(base, product, 8*int(n), p[0][0] == 's')
	in.run = func(w *warp, in *inst, mask uint32) bool {
		def := w.def[in.a] & w.def[in.b] & w.def[in.c]
		if takes {
			def &= w.carryDef
		}
		var out uint32
		for m := mask; m != 0; m &= m - 1 {
			i, had := lowest(m), uint64(0)
			if takes {
				had = uint64(w.carry >> i & 1)
			}
			r, over := f(w.regs[in.a][i], w.regs[in.b][i], w.regs[in.c][i], had)
			w.tmp[i], out = r, out|uint32(over)<<i
		}
		w.regs[in.d].blend(&w.tmp, mask)
		w.def[in.d] = w.def[in.d]&^mask | def&mask
		if leaves {
			w.carry = w.carry&^mask | out
			w.carryDef = w.carryDef&^mask | def&mask
		}
		return true
	}
}

// wide returns the function of an instruction with a carry. It gives the result and the carry out.
func wide(op, product string, width int, signed bool) func(x, y, z, carry uint64) (r, out uint64) {
	add := func(x, y, carry uint64) (uint64, uint64) {
		if width == 64 {
			return bits.Add64(x, y, carry)
		}
		s := x + y + carry
		return s & (1<<32 - 1), s >> 32
	}
	switch op {
	case "add":
		return func(x, y, _, carry uint64) (uint64, uint64) { return add(x, y, carry) }
	case "sub":
		return func(x, y, _, borrow uint64) (uint64, uint64) {
			d, out := bits.Sub64(x, y, borrow)
			if width == 32 {
				d &= 1<<32 - 1
			}
			return d, out
		}
	}
	return func(x, y, z, carry uint64) (uint64, uint64) {
		high, low := bits.Mul64(x, y)
		if width == 32 {
			low, high = x*y&(1<<32-1), x*y>>32
		}
		if product == "lo" {
			return add(low, z, carry)
		}
		if signed {
			top := width - 1
			high -= y*(x>>top&1) + x*(y>>top&1)
			if width == 32 {
				high &= 1<<32 - 1
			}
		}
		return add(high, z, carry)
	}
}
