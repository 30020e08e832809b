package emu

import (
	"slices"
	"strings"
)

// variant returns an operation that is another one with subnormal numbers flushed (.ftz) or the
// result limited to [0, 1] (.sat), if the table lacks it.
func variant(name string) (operation, bool) {
	p := strings.Split(name, ".")
	typ := p[len(p)-1]
	var flush, limit bool
	if i := slices.Index(p, "ftz"); i > 0 && (p[0] == "cvt" || p[0] == "setp") {
		p, flush = slices.Delete(p, i, i+1), true
	}
	if i := slices.Index(p, "sat"); i > 0 {
		p, limit = slices.Delete(p, i, i+1), true
	}
	if !flush && !limit {
		return operation{}, false
	}
	to := typ
	if p[0] == "cvt" && len(p) > 2 {
		to = p[len(p)-2]
	}
	o, ok := operations()[strings.Join(p, ".")]
	if !ok && p[0] == "cvt" && len(p) == 3 && to == typ && formatOf[typ].n > 0 {
		n := formatOf[typ].n
		o, ok = operation{bytes: [4]uint8{n, n}, op: func(d, a, _, _ *plane) { *d = *a }}, true
	}
	if !ok {
		return o, false
	}
	if flush {
		o = o.flushing(typ == "f32", to == "f32")
	}
	if f, float := formatOf[to]; limit && float {
		o = o.limited(f)
	} else if limit && formatOf[typ].n == 0 {
		return o, false // for integers, whose limits are in the table
	}
	return o, true
}

// flushing returns the operation with subnormal numbers of 32 bits flushed.
func (o operation) flushing(operands, result bool) operation {
	flush := func(p plane) plane {
		if operands {
			for i, v := range p {
				p[i] = uint64(b32bits(flush32(f32(uint32(v))), uint32(v)))
			}
		}
		return p
	}
	if test := o.test; test != nil {
		o.test = func(a, b *plane) uint32 {
			x, y := flush(*a), flush(*b)
			return test(&x, &y)
		}
		return o
	}
	op := o.op
	o.op = func(d, a, b, c *plane) {
		x := flush(*a)
		op(d, &x, b, c)
		if result {
			for i, v := range d {
				d[i] = uint64(b32bits(flush32(f32(uint32(v))), uint32(v)))
			}
		}
	}
	return o
}

// b32bits returns the bits of x, or of before if it is a NaN, whose bits do not change.
func b32bits(x float32, before uint32) uint32 {
	if x != x {
		return before
	}
	return b32(x)
}

// limited returns the operation with its result limited to [0, 1]; a NaN becomes 0.
func (o operation) limited(f floatFormat) operation {
	op := o.op
	if op == nil {
		return o
	}
	o.op = func(d, a, b, c *plane) {
		op(d, a, b, c)
		for i, v := range d {
			x := f.from(v)
			switch {
			case x > 1:
				d[i] = f.to(1)
			case !(x > 0):
				d[i] = 0
			}
		}
	}
	return o
}
