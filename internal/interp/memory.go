package interp

import (
	"sync/atomic"
)

// words returns the buffer of 32-bit elements that an op accesses, and its number of elements, where a vector counts
// as one.
func (m *machine) words(a *access) ([]uint32, uint32) {
	if a.shared {
		s := m.shared[a.slot]
		return s, uint32(len(s) / a.width)
	}
	v := &m.views[a.slot]
	return v.words, v.len
}

// load reads an element for each lane. It returns the first lane with an index out of bounds, and
// false, if there is one.
func (m *machine) load(o *op) (int, bool) {
	a := o.mem
	index := m.plane(o.arg[0])
	if a.half {
		return m.loadHalf(o, index)
	}
	src, n := m.words(a)
	if !m.full {
		for i, w := range m.active {
			for ; w != 0; w &= w - 1 {
				lane := i*64 + trailing(w)
				x := index[lane]
				if x >= n {
					return lane, false
				}
				for k, v := range src[int(x)*a.width:][:a.width] {
					m.regs[int(a.comp[k]/4)+lane] = v
				}
			}
		}
		return 0, true
	}
	d := m.plane(a.comp[0])[:len(index)]
	switch a.width {
	case 1:
		for i, x := range index {
			if uint64(x) >= uint64(len(src)) {
				return i, false
			}
			d[i] = src[x]
		}
	case 2:
		e := m.plane(a.comp[1])[:len(index)]
		for i, x := range index {
			if x >= n {
				return i, false
			}
			s := src[int(x)*2:][:2]
			d[i], e[i] = s[0], s[1]
		}
	default:
		e, f, g := m.plane(a.comp[1])[:len(index)], m.plane(a.comp[2])[:len(index)], m.plane(a.comp[3])[:len(index)]
		for i, x := range index {
			if x >= n {
				return i, false
			}
			s := src[int(x)*4:][:4]
			d[i], e[i], f[i], g[i] = s[0], s[1], s[2], s[3]
		}
	}
	return 0, true
}

func (m *machine) loadHalf(o *op, index []uint32) (int, bool) {
	a := o.mem
	v := &m.views[a.slot]
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			lane := i*64 + trailing(w)
			x := index[lane]
			if x >= v.len {
				return lane, false
			}
			for k, h := range v.halves[int(x)*a.width:][:a.width] {
				m.regs[int(a.comp[k]/4)+lane] = laneUnpackHalf(uint32(h), 0, 0, 0)
			}
		}
	}
	return 0, true
}

// loadOne reads one element for all lanes.
func (m *machine) loadOne(o *op) (int, bool) {
	a := o.mem
	x := m.regs[o.arg[0]/4]
	if a.half {
		v := &m.views[a.slot]
		if x >= v.len {
			return 0, false
		}
		for k, h := range v.halves[int(x)*a.width:][:a.width] {
			m.fill(int(a.comp[k]/4), laneUnpackHalf(uint32(h), 0, 0, 0))
		}
		return 0, true
	}
	src, n := m.words(a)
	if x >= n {
		return 0, false
	}
	for k, v := range src[int(x)*a.width:][:a.width] {
		m.fill(int(a.comp[k]/4), v)
	}
	return 0, true
}

// row returns the first of consecutive indices, and whether all are in bounds without wrapping.
func (m *machine) row(o *op, n uint32) (int, bool) {
	x := m.regs[o.arg[0]/4]
	return int(x), uint64(x)+uint64(m.k.lanes) <= uint64(n)
}

// loadRow reads consecutive elements. It returns false if some are out of
// bounds.
func (m *machine) loadRow(o *op) bool {
	a := o.mem
	lanes := m.k.lanes
	if a.half {
		v := &m.views[a.slot]
		x, ok := m.row(o, v.len)
		if !ok {
			return false
		}
		src := v.halves[x*a.width:][:lanes*a.width]
		for k := range a.width {
			d := m.plane(a.comp[k])
			for i := range d {
				d[i] = laneUnpackHalf(uint32(src[i*a.width+k]), 0, 0, 0)
			}
		}
		return true
	}
	src, n := m.words(a)
	x, ok := m.row(o, n)
	if !ok {
		return false
	}
	src = src[x*a.width:][:lanes*a.width]
	d := m.plane(a.comp[0])
	switch a.width {
	case 1:
		copy(d, src)
	case 2:
		e := m.plane(a.comp[1])[:len(d)]
		for i := range d {
			s := src[2*i:][:2]
			d[i], e[i] = s[0], s[1]
		}
	default:
		e, f, g := m.plane(a.comp[1])[:len(d)], m.plane(a.comp[2])[:len(d)], m.plane(a.comp[3])[:len(d)]
		for i := range d {
			s := src[4*i:][:4]
			d[i], e[i], f[i], g[i] = s[0], s[1], s[2], s[3]
		}
	}
	return true
}

// store writes an element a lane, in the order of the lanes.
func (m *machine) store(o *op) (int, bool) {
	a := o.mem
	index := m.plane(o.arg[0])
	if a.half {
		return m.storeHalf(o, index)
	}
	dst, n := m.words(a)
	if m.full && a.width == 1 {
		s := m.plane(a.comp[0])[:len(index)]
		for i, x := range index {
			if uint64(x) >= uint64(len(dst)) {
				return i, false
			}
			dst[x] = s[i]
		}
		return 0, true
	}
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			lane := i*64 + trailing(w)
			x := index[lane]
			if x >= n {
				return lane, false
			}
			e := dst[int(x)*a.width:][:a.width]
			for k := range e {
				e[k] = m.regs[int(a.comp[k]/4)+lane]
			}
		}
	}
	return 0, true
}

func (m *machine) storeHalf(o *op, index []uint32) (int, bool) {
	a := o.mem
	v := &m.views[a.slot]
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			lane := i*64 + trailing(w)
			x := index[lane]
			if x >= v.len {
				return lane, false
			}
			e := v.halves[int(x)*a.width:][:a.width]
			for k := range e {
				e[k] = uint16(lanePackHalf(m.regs[int(a.comp[k]/4)+lane], 0, 0, 0))
			}
		}
	}
	return 0, true
}

// storeRow writes consecutive elements. It returns false if some are out of
// bounds.
func (m *machine) storeRow(o *op) bool {
	a := o.mem
	if a.half {
		return false
	}
	dst, n := m.words(a)
	x, ok := m.row(o, n)
	if !ok {
		return false
	}
	dst = dst[x*a.width:][:m.k.lanes*a.width]
	if a.width == 1 {
		copy(dst, m.plane(a.comp[0]))
		return true
	}
	for k := range a.width {
		s := m.plane(a.comp[k])
		for i := range s {
			dst[i*a.width+k] = s[i]
		}
	}
	return true
}

// atomic applies an atomic operation lane by lane.
func (m *machine) atomic(o *op) (int, bool) {
	a := o.mem
	index, x, y := m.plane(o.arg[0]), m.plane(o.arg[1]), m.plane(o.arg[2])
	d := m.plane(o.d)
	words, n := m.words(a)
	for i, w := range m.active {
		for ; w != 0; w &= w - 1 {
			lane := i*64 + trailing(w)
			at := index[lane]
			if at >= n {
				return lane, false
			}
			var old uint32
			if p := &words[at]; a.shared {
				old = *p
				*p = atomicResult(a.op, a.signed, old, x[lane], y[lane])
			} else {
				old = atomically(p, a.op, a.signed, x[lane], y[lane])
			}
			if a.result {
				d[lane] = old
			}
		}
	}
	return 0, true
}

// atomically applies an operation to memory that workgroups on other
// goroutines use too.
func atomically(p *uint32, op uint8, signed bool, x, y uint32) (old uint32) {
	switch op {
	case atomicLoad:
		return atomic.LoadUint32(p)
	case atomicAdd:
		return atomic.AddUint32(p, x) - x
	}
	for {
		old = atomic.LoadUint32(p)
		v := atomicResult(op, signed, old, x, y)
		if v == old && op != atomicStore || atomic.CompareAndSwapUint32(p, old, v) {
			return old
		}
	}
}
