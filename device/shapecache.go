package device

import (
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/op"
)

// A shapeEntry is a valid request: its parameters and shapes, and the shapes of its results.
// Programs repeat requests. Comparing with an entry is faster than validating again, and allocates
// nothing.
type shapeEntry struct {
	a       op.Attrs
	nin     int // 0 for an empty entry
	in      [op.MaxInputs]engine.Host
	out     [2]engine.Host
	inSize  [op.MaxInputs]int // sizes in bytes
	outSize [2]int
}

// shapeCache holds the last requests of one operation, enough for a program with layers of
// several shapes.
type shapeCache struct {
	last int // index of the last entry found
	each [4]shapeEntry
}

// lookup reports whether the cache has r, and sets the shapes of its results if so.
func (vs *shapeCache) lookup(r *request) bool {
	for i := range vs.each {
		k := (vs.last + i) % len(vs.each)
		if vs.each[k].covers(r) {
			vs.last = k
			for j := range r.out[:r.nout] {
				r.out[j].Reshape(vs.each[k].out[j].Shape())
			}
			return true
		}
	}
	return false
}

func (v *shapeEntry) covers(r *request) bool {
	if v.nin != r.nin || v.a != r.a {
		return false
	}
	for i := range r.in[:r.nin] {
		h, w := &r.in[i], &v.in[i]
		if h.Type != w.Type || len(h.Data) != v.inSize[i] || !h.Shape().Equal(w.Shape()) {
			return false
		}
	}
	for i := range r.out[:r.nout] {
		if r.out[i].Type != v.out[i].Type || len(r.out[i].Data) != v.outSize[i] {
			return false
		}
	}
	return true
}

// note stores r, which is valid, in place of the oldest entry.
func (vs *shapeCache) note(r *request) {
	vs.last = (vs.last + 1) % len(vs.each)
	v := &vs.each[vs.last]
	v.a, v.nin = r.a, r.nin
	for i := range r.in[:r.nin] {
		h := &r.in[i]
		v.in[i].Set(nil, h.Type, h.Shape())
		v.inSize[i] = len(h.Data)
	}
	for i := range r.out[:r.nout] {
		h := &r.out[i]
		v.out[i].Set(nil, h.Type, h.Shape())
		v.outSize[i] = len(h.Data)
	}
}
