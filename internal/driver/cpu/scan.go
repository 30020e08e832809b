package cpu

import (
	"context"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A scanTask scans rows with a fold of package op. If there are many rows, each row has a lane, in
// transposed tiles. A single row is scanned in blocks, by log2(n) merges of a block with itself,
// shifted by powers of two.
type scanTask struct {
	d          *processor
	typ        op.DType
	f          *ir.Reducer
	programs   *foldPrograms
	rows, cols int
	integers   bool // sums of integers, which wrap around and do not depend on the order

	x, dst  unsafe.Pointer
	group   int // number of rows in a part; 1 for rows in blocks
	ctx     context.Context
	stopped atomic.Bool
}

const (
	scanRows  = 64   // rows of a tile
	scanTile  = 64   // columns of a tile
	scanBlock = 1024 // elements of a block of a row
)

// choose implements [chooser].
func (t *scanTask) choose(o *opStep) core { return o.columnScan() }

// operands implements typed.
func (t *scanTask) operands(types []op.DType) { t.typ = types[0] }

// configure implements core.
func (t *scanTask) configure(o *op.Operation, _ *op.Attrs, dims []op.Shape) (err error) {
	if t.typ == op.InvalidType {
		t.typ = op.F32
	}
	if t.f = irhook.Reducer(o, uint8(t.typ)); t.f == nil {
		return fmt.Errorf("%s of %v: %w", o.Name(), t.typ, driver.ErrUnsupported)
	}
	t.rows, t.cols = dims[0].Rows()
	t.integers = o == op.Cumsum && (t.typ == op.I32 || t.typ == op.U32)
	t.programs, err = t.d.foldPrograms(o, t.typ, t.f)
	t.group = 1
	if t.rows >= 8 {
		t.group = min(t.rows, scanRows)
	}
	if t.integers {
		t.group = max(1, min(t.rows, addedPart/max(1, t.cols)))
	}
	return err
}

// compute implements core.
func (t *scanTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	if t.rows*t.cols == 0 {
		return nil
	}
	t.x, t.dst, t.ctx = in[0], out[0], ctx
	t.stopped.Store(false)
	defer func() { t.x, t.dst, t.ctx = nil, nil, nil }()
	n := (t.rows + t.group - 1) / t.group
	if ns := float64(t.rows*t.cols) * float64(t.programs.step.cost.seed+0.5); n > 1 && t.d.pool.Worth(ns) {
		t.d.pool.Spread(n, false, t)
	} else {
		for i := range n {
			t.Part(i)
		}
	}
	if t.stopped.Load() {
		return ctx.Err()
	}
	return nil
}

// Part implements workers.Task.
func (t *scanTask) Part(i int) {
	if t.integers && t.group*t.cols <= addedAtOnce {
		lo := i * t.group
		n := (min(lo+t.group, t.rows) - lo) * t.cols
		if !t.cancelled() {
			simd.CumsumWordRows(unsigned(t.at(t.dst, lo, 0), n), unsigned(t.at(t.x, lo, 0), n), t.cols)
		}
		return
	}
	if t.integers {
		for r := i * t.group; r < min((i+1)*t.group, t.rows); r++ {
			t.addRow(r)
		}
		return
	}
	l := lanes.Get().(*lane)
	defer func() {
		if l.begun != nil {
			l.end()
		}
		lanes.Put(l)
	}()
	if t.group == 1 {
		t.row(l, i)
	} else {
		t.tiles(l, i*t.group, min((i+1)*t.group, t.rows))
	}
}

// cancelled reports whether the context has ended.
func (t *scanTask) cancelled() bool {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
	}
	return t.stopped.Load()
}

// addedAtOnce is the number of integers that are added between two looks at the context.
const addedAtOnce = 1 << 16

// addedPart is the number of integers in a part of many rows. A smaller part takes little more time than its distribution to a thread.
const addedPart = 1 << 13

// addRow computes the running sums of row r of integers.
func (t *scanTask) addRow(r int) {
	sum := uint32(0)
	for from := 0; from < t.cols && !t.cancelled(); from += addedAtOnce {
		n := min(addedAtOnce, t.cols-from)
		sum = simd.CumsumWords(unsigned(t.at(t.dst, r, from), n), unsigned(t.at(t.x, r, from), n), sum)
	}
}

// at returns the address of column j of row r in an array.
func (t *scanTask) at(p unsafe.Pointer, r, j int) unsafe.Pointer {
	return unsafe.Add(p, 4*(r*t.cols+j))
}

// tiles scans rows lo to hi, with a lane for each row.
func (t *scanTask) tiles(l *lane, lo, hi int) {
	g := hi - lo
	const held = scanRows * scanTile
	s := newStates(l, t.f, 2*held, g)
	rows, turned := l.extra[:held], l.extra[held:2*held]
	s.begin(t.f, g)
	for from := 0; from < t.cols && !t.cancelled(); from += scanTile {
		c := min(scanTile, t.cols-from)
		for r := range g {
			copy(rows[r*c:][:c], slice(t.at(t.x, lo+r, from), c))
		}
		simd.Transpose(nil, turned[:g*c], rows[:g*c], g, c)
		for j := range c {
			at := unsafe.Pointer(&turned[j*g])
			l.fold(t.programs.step, s, g, at)
			finishStates(l, t.programs.finish, s, g, from+j+1, at)
		}
		simd.Transpose(nil, rows[:g*c], turned[:g*c], c, g)
		for r := range g {
			copy(slice(t.at(t.dst, lo+r, from), c), rows[r*c:][:c])
		}
	}
}

// row scans one row in blocks.
func (t *scanTask) row(l *lane, r int) {
	k := t.f.States()
	s := newStates(l, t.f, k, scanBlock)
	var carry [4]unsafe.Pointer
	for i := range k {
		carry[i] = unsafe.Pointer(&l.extra[i])
		words((*float32)(carry[i]), 1)[0] = bitsOf(t.f.Identity[i].Value, t.f.Identity[i].Type)
	}
	for from := 0; from < t.cols && !t.cancelled(); from += scanBlock {
		n := min(scanBlock, t.cols-from)
		at := append(s.from[:0], place{base: t.at(t.x, r, from)})
		for _, a := range s.at[s.now] {
			at = append(at, place{base: a})
		}
		l.over(t.programs.lift, at, n)
		at = at[:0]
		for i := range k { // merge the result of the previous block into the first element
			at = append(at, place{base: carry[i]})
		}
		for range 2 {
			for _, a := range s.at[s.now] {
				at = append(at, place{base: a})
			}
		}
		// The program writes to the other copy of the state; copy it back to this one.
		for i, a := range s.at[s.now^1] {
			at[2*k+i].base = a
		}
		l.over(t.programs.merge, at, 1)
		for i := range k {
			copy(slice(s.at[s.now][i], 1), slice(s.at[s.now^1][i], 1))
		}
		t.spread(l, s, n)
		for i := range k {
			copy(slice(carry[i], 1), slice(unsafe.Add(s.at[s.now][i], 4*(n-1)), 1))
		}
		finishStates(l, t.programs.finish, s, n, 1, t.at(t.dst, r, from))
	}
}

// spread merges each of n states with all previous states.
func (t *scanTask) spread(l *lane, s *states, n int) {
	k := t.f.States()
	var at [12]place
	for d := 1; d < n; d *= 2 {
		now, next := s.at[s.now], s.at[s.now^1]
		for i := range k {
			at[i].base, at[k+i].base, at[2*k+i].base = now[i], unsafe.Add(now[i], 4*d), unsafe.Add(next[i], 4*d)
			copy(slice(next[i], d), slice(now[i], d))
		}
		l.over(t.programs.merge, at[:3*k], n-d)
		s.now ^= 1
	}
}
