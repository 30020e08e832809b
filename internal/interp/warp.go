package interp

import "github.com/rayo-go/rayo/internal/ir"

// warp is a set of lanes that the checker runs in lockstep: one subgroup or several.
type warp struct {
	from, n int   // its lanes in the workgroup
	order   []int // in which its lanes do one instruction
	pc      int
	state   warpState
	active  lanes
	all     lanes
	nest    []nested
	trace   []ir.Value // subgroup operations since it last met the others
}

type warpState uint8

const (
	running warpState = iota
	waiting           // at pc, for the other subgroups
	done
)

// lanes is a mask of a warp of up to 128.
type lanes [2]uint64

func (m *lanes) has(i int) bool      { return m[i>>6]>>(i&63)&1 != 0 }
func (m *lanes) set(i int)           { m[i>>6] |= 1 << (i & 63) }
func (m *lanes) empty() bool         { return m[0]|m[1] == 0 }
func (m lanes) or(n lanes) lanes     { return lanes{m[0] | n[0], m[1] | n[1]} }
func (m lanes) andNot(n lanes) lanes { return lanes{m[0] &^ n[0], m[1] &^ n[1]} }

// nested is the state of an open block.
type nested struct {
	head       ir.Value
	close      int // where its Else or End is
	other      lanes
	left, next lanes
	turns      uint32
	free       bool // of the budget
}

func newWarp(from, n int, s Schedule) warp {
	w := warp{from: from, n: n}
	for i := range n {
		lane := i
		if s == Descending {
			lane = n - 1 - i
		}
		w.order = append(w.order, lane)
		w.all.set(i)
	}
	return w
}

func (w *warp) reset() {
	w.pc, w.state, w.active = 1, running, w.all
	w.nest, w.trace = w.nest[:0], w.trace[:0]
}

// leave goes to the end of the innermost block, because no lane is active.
func (w *warp) leave() {
	if len(w.nest) == 0 {
		w.state = done
		return
	}
	w.pc = w.nest[len(w.nest)-1].close
}

// lowest returns the first active lane.
func (w *warp) lowest() int {
	for i := range w.n {
		if w.active.has(i) {
			return i
		}
	}
	return 0
}
