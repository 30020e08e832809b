package emu

// loadParam compiles a load from a named parameter of the kernel.
func (c *compiler) loadParam(in *inst, x *extra, o *operand) {
	i, ok := c.params[o.list[0].name]
	if !ok || !c.f.kernel {
		c.fail("no parameter is called %s", o.list[0].name)
	}
	p := &c.k.params[i]
	if o.off < 0 || o.off > int64(p.bytes)-int64(x.n*x.bytes) {
		c.fail("parameter %s has %d bytes, but the load reads %d at offset %d", p.name, p.bytes, x.n*x.bytes, o.off)
	}
	x.off = int64(c.k.offsets[i]) + o.off
	in.run = func(w *warp, in *inst, mask uint32) bool {
		x := in.x
		for i, r := range x.regs {
			if r < 0 {
				continue
			}
			v := x.extend(load(w.b.run.params[int(x.off)+i*x.bytes:], x.bytes))
			d := &w.regs[r]
			for m := mask; m != 0; m &= m - 1 {
				d[lowest(m)] = v
			}
			w.def[r] |= mask
		}
		return true
	}
}

// loadParam loads from the parameters of the kernel at any address.
func (w *warp) loadParam(in *inst, mask uint32) bool {
	x, pc := in.x, w.pcOf(in)
	w.need(in, in.a, mask, "the address was not computed in this thread")
	base, n := w.regs[in.a], uint64(x.n*x.bytes)
	for m := mask; m != 0; m &= m - 1 {
		lane := lowest(m)
		at, params := base[lane]+uint64(x.off)-paramBase, w.b.run.params
		if at > uint64(len(params)) || uint64(len(params))-at < n || at%n != 0 {
			w.find(OutOfBounds, pc, lane, "the parameters of the kernel", nil)
			w.zero(x, lane)
			continue
		}
		for i, r := range x.regs {
			if r >= 0 {
				w.set(r, lane, x.extend(load(params[int(at)+i*x.bytes:], x.bytes)))
			}
		}
	}
	return true
}
