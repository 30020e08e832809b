package kernels

import (
	"github.com/rayo-go/rayo/kernel/lib"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// The ways below are those that were the fastest of many on an H200. What counts
// is how many bytes a multiprocessor has under way: enough blocks of it at the same
// time, or one that reads the next row while it has this one.

// planRows plans an operation on rows.
func planRows(r *lib.Request, d *Device) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	if err := rowRequest(r, d); err != nil {
		return nil, err
	}
	t := r.In[0].Type
	n := rowVectors(cols, rowVector(t))
	norm := r.Op == op.LayerNorm || r.Op == op.RMSNorm
	weights := 0
	for _, x := range r.In[1:] {
		if x.Shape != nil {
			weights++
		}
	}
	switch {
	case n <= mostVectors:
	case t == op.F32 && d.Target >= ptx.SM90 && n <= maxClusterVectors && 4*rows >= d.Multiprocessors:
		return planClusteredRows(r, n)
	case n > 2*mostVectors, rows < d.Multiprocessors/2, t == op.F32 && n > 3*mostVectors/2 && !norm:
		return planLongRows(r, rows, n, d)
	}
	w := chooseRowWay(t, cols, weights, norm, d)
	if w.Registers == 1 && w.Width > 1 && rows >= 16*w.Teams*d.Multiprocessors {
		w.Rows = 4 // to begin a block takes as long as a row of so few
	}
	w.Laid = (w.Laid || t != op.F32) && weights > 0 && cols%w.Width != 0 && rows >= fewestLaid/cols
	if w.Ring > 0 && w.Ring <= w.Shared { // the device has not as much shared memory
		return planLongRows(r, rows, n, d)
	}
	return planRowsBy(r, w, d)
}

// fewestLaid is how many elements there are at least for it to pay that a kernel lays
// out the weights before.
const fewestLaid = 1 << 22

// mostVectors is of how many vectors rows are at most that have a block each.
const mostVectors = 8192

// chooseRowWay returns the way for rows of so many elements, of which one
// multiprocessor holds each; norm says that they are normalised, and each element has
// so many weights.
func chooseRowWay(t op.DType, cols, weights int, norm bool, d *Device) rowWay {
	v := rowVector(t)
	w := rowWay{Lanes: 1, Teams: 1, Rows: 1, Width: v, Load: ptx.Once, Save: ptx.Once}
	if cols%v != 0 {
		// What rows share with their neighbours is read twice.
		w.Load, w.Save = ptx.Cached, ptx.Cached
		if t == op.F32 && cols <= 256 || t != op.F32 && cols < 33 {
			return w.singles(t, cols)
		}
		if t != op.F32 {
			if n, ok := w.narrow(cols, weights > 0); ok {
				return n
			}
		}
	}
	n := rowVectors(cols, v)
	if weights > 0 && cols%v != 0 && t == op.F32 {
		if n <= 256*9 {
			return w.shifted(n)
		}
		w.Save = ptx.Once // the weights shall stay in L1
		if weights > 1 && n > 512*8 && n <= 256*20 {
			w.Lanes, w.Blocks, w.Registers, w.Laid = 256, 2, (n-1)/256+1, true
			return w
		}
	}
	held := 32 / v // vectors that make 32 registers
	if t != op.F32 {
		return w.halves(n, held, weights, norm, d)
	}
	switch {
	case n <= 32:
		for w.Lanes < n {
			w.Lanes *= 2
		}
		w.Teams = 128 / w.Lanes
	case n <= 32*held+1:
		w.Lanes, w.Teams = 32, 4
	case n <= 128*5:
		w.Lanes = 128
	case n <= 256*8+1:
		w.Lanes = 256
	case n <= 512*8:
		w.Lanes, w.Blocks = 512, 2
	case n <= 512*10 && weights == 0: // two blocks again, if some of the row is in shared memory
		w.Lanes, w.Blocks = 512, 2
		w.Registers = 8
		w.Shared = (n-1)/w.Lanes + 1 - w.Registers
		return w
	case n <= 512*16:
		w.Lanes = 512
	default:
		w.Lanes = 1024
		w.stream(n, held, d)
		return w
	}
	w.Registers = (n-1)/w.Lanes + 1
	return w
}

// halves returns the way for rows of n vectors of 16-bit elements, so many of which
// make 32 registers. As in memory they need half of these, and to make float32 of them
// twice or three times costs less than to have fewer blocks, but for exponentials.
func (w rowWay) halves(n, held, weights int, norm bool, d *Device) rowWay {
	anywhere := w.Load == ptx.Cached
	shift := anywhere && weights > 0
	if shift && n > 16*9 {
		w.Save = ptx.Once
	}
	switch {
	case n <= 32 && !shift:
		for w.Lanes < n {
			w.Lanes *= 2
		}
		w.Teams = 128 / w.Lanes
	case shift && n <= 16*9:
		w.Lanes, w.Teams, w.Blocks = 16, 8, 4
	case shift && n <= 32*13:
		w.Lanes, w.Teams, w.Blocks = 32, 4, 4
		if n <= 32*9 {
			w.Blocks = 5
		}
	case n <= 32*9:
		w.Lanes, w.Teams = 32, 4
	case n <= 128*7, weights > 0 && n <= 128*8:
		w.Lanes = 128
		if weights > 0 && n > 128*4 {
			w.Packed, w.Blocks = true, 8
		}
	case shift && n <= 128*13:
		w.Lanes, w.Packed, w.Blocks = 128, true, 6
	case shift && weights > 1 && n <= 128*18:
		w.Lanes, w.Packed, w.Blocks = 128, true, 5
	case shift && n > 256*10 && n <= 128*33:
		w.Lanes, w.Packed, w.Blocks = 128, true, 3
		if n <= 128*24 {
			w.Blocks = 4
		}
	case n > 256*8 && n <= 256*20 && norm && !anywhere:
		w.Lanes, w.Packed, w.Blocks = 256, true, 2
	case n <= 256*10 && norm:
		w.Lanes = 256
		if n > 256*5 {
			w.Packed, w.Blocks = true, 3
		} else if n > 256*4 {
			w.Packed, w.Blocks = true, 4
		}
	case n <= 256*6:
		w.Lanes = 256
	case n <= 256*9:
		w.Lanes, w.Blocks, w.Packed = 256, 3, true
	case n <= 512*8+1:
		w.Lanes, w.Blocks, w.Packed = 512, 2, true
	case n <= 256*20 && !norm:
		w.Lanes, w.Blocks, w.Packed = 256, 2, true
	case n <= 512*16 && norm && !anywhere:
		w.Lanes, w.Packed = 512, true
	case n <= 512*16+1 && d.Shared >= 2*(9<<13+1<<10): // half of the row in shared memory, so that there are two blocks
		w.Lanes, w.Blocks, w.Packed, w.Registers = 512, 2, true, 8
		if anywhere {
			w.Lanes, w.Registers = 256, 16
		}
		w.Shared = (n-1)/w.Lanes + 1 - w.Registers
		return w
	default:
		w.Lanes = 1024
		w.stream(n, held, d)
		return w
	}
	w.Registers = (n-1)/w.Lanes + 1
	w.Packed = w.Packed || shift && w.Registers > 4
	return w
}

// stream makes w the way of blocks that go from row to row: of n vectors a thread
// has so many in registers, and as many slots as there is room for beside what
// reductions need.
func (w *rowWay) stream(n, held int, d *Device) {
	each := (n-1)/w.Lanes + 1
	w.Registers = min(each, held)
	w.Shared = each - w.Registers
	room := (d.Shared/max(w.Blocks, 1) - 2<<10) / (16 * w.Lanes)
	w.Ring = min(room, each)
}

// shifted returns the way for rows of n vectors that begin anywhere, with weights
// that do not: choosing these takes registers, of which there shall be few enough
// for many blocks.
func (w rowWay) shifted(n int) rowWay {
	for _, s := range []struct{ lanes, registers, blocks int }{{32, 8, 0}, {32, 9, 6}, {128, 5, 10}, {128, 9, 7}, {256, 5, 5}, {256, 7, 4}, {256, 9, 0}} {
		if n <= s.lanes*s.registers {
			w.Lanes, w.Blocks, w.Registers = s.lanes, s.blocks, (n-1)/s.lanes+1
			break
		}
	}
	w.Teams = max(1, 128/w.Lanes)
	return w
}

// singles returns the way for short rows that are moved by single elements, some
// each thread: neighbours then move neighbours, by and by whole lines of the cache.
// The shortest come through shared memory.
func (w rowWay) singles(t op.DType, cols int) rowWay {
	w.Width = 1
	most, staged := 5, 16
	if t != op.F32 {
		most, staged = 9, 64 // there is more to compute for as many bytes
	}
	if cols <= staged {
		w.Staged, w.Rows = true, 2
		most = 9
	}
	for w.Lanes < 32 && cols > most*w.Lanes {
		w.Lanes *= 2
	}
	w.Teams = 128 / w.Lanes
	w.Registers = (cols-1)/w.Lanes + 1
	if w.Registers <= 3 {
		w.Rows = 4
	}
	return w
}

// narrow returns the way for short rows of 16-bit elements that do not begin with
// vectors of 16 bytes: by four where these do, else by two, of which only the first
// and the last may have an element of another row.
func (w rowWay) narrow(cols int, weights bool) (rowWay, bool) {
	w.Width = 2
	if cols%4 == 0 {
		w.Width = 4
	}
	n := rowVectors(cols, w.Width)
	if w.Width == 2 && n < 25 { // neighbours would read the same lines too often
		return w.singles(op.BF16, cols), true
	}
	ways := []struct{ lanes, registers int }{{4, 4}, {8, 5}, {16, 8}, {32, 11}}
	if weights && w.Width == 2 {
		ways[1].registers = 7
	}
	for _, s := range ways {
		if n <= s.lanes*s.registers {
			w.Lanes, w.Teams, w.Registers = s.lanes, 128/s.lanes, (n-1)/s.lanes+1
			if weights && w.Width == 2 && w.Lanes*w.Registers <= 16*6 {
				w.Rows = 2
			}
			return w, true
		}
	}
	return w, false
}

// maxClusterVectors is of how many vectors rows are at most that clusters have.
const maxClusterVectors = 512 * 8 * maxRowCluster

// clusterVectors is how many vectors a block of a cluster has of a row at most: half
// of them in registers and half in shared memory, so that a multiprocessor has two
// such blocks. With as many as heldVectors it has them in the registers of half as many
// threads, which is faster.
const (
	clusterVectors = 2 * 512 * 8
	heldVectors    = 256 * 25
)

// planClusteredRows plans an operation on rows of n vectors that clusters have.
// Some lengths with two weights are faster with one block a multiprocessor.
func planClusteredRows(r *lib.Request, n int) (*Plan, error) {
	rows, cols := r.In[0].Shape.Rows()
	w := rowWay{Lanes: 512, Teams: 1, Rows: 1, Width: rowVector(r.In[0].Type), Blocks: 2, Load: ptx.Once, Save: ptx.Once}
	parts := 2
	for parts*clusterVectors < n {
		parts *= 2
	}
	two := len(r.In) > 2 && r.In[1].Shape != nil && r.In[2].Shape != nil
	shift := cols%w.Width != 0
	if shift {
		w.Load, w.Save = ptx.Cached, ptx.Cached
		w.Laid = two && rows >= fewestLaid/cols
	}
	if n <= parts*heldVectors {
		w.Lanes = 256
	}
	w.Registers = ((n-1)/parts)/w.Lanes + 1
	if two && !shift && w.Lanes == 512 && n <= 15000 {
		w.Blocks = 0
	} else if most := 8; w.Lanes == 512 && w.Registers > most {
		w.Registers, w.Shared = most, w.Registers-most
	}
	return planRowCluster(r, w, parts)
}

// planLongRows plans an operation on rows of n vectors that several blocks share,
// since they are few or long.
func planLongRows(r *lib.Request, rows, n int, d *Device) (*Plan, error) {
	v := rowVector(r.In[0].Type)
	w := rowWay{Lanes: 256, Teams: 1, Rows: 1, Width: v, Registers: 32 / v, Blocks: 4, Load: ptx.Once, Save: ptx.Once}
	parts := (n-1)/(w.Lanes*w.Registers) + 1
	// With less to do for each block, if that gives work to more multiprocessors.
	for 2*rows*parts <= d.Multiprocessors && w.Registers > 1 {
		w.Registers /= 2
		parts = (n-1)/(w.Lanes*w.Registers) + 1
	}
	return planRowParts(r, w, parts, parts > maxRowParts)
}
