package kernels

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// TileRows and TileCols are the extents of the largest tile of a product of matrices. Its
// sums, a row of B and an element of A fit into 16 registers.
const (
	TileRows = 4
	TileCols = 8
)

func (s *Set) products() {
	for rows := 1; rows <= TileRows; rows++ {
		s.tile(rows)
	}
	s.copyPanels()
	s.transpose()
	s.scaledRows()
	s.dots()
	s.convRow()
	s.convGather()
}

// tile writes simd's tileFunc for the given number of rows. The last panel of B is whole.
func (s *Set) tile(rows int) {
	s.add(fmt.Sprintf("gemm.tile%d", rows), func(k kernel) {
		a, b, c, bias := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3)
		as, bs, bp, cs, depth, n, add := k.int(0), k.int(1), k.int(2), k.int(3), k.int(4), k.int(5), k.int(6)
		t := &tile{kernel: k, cs: cs, add: add, bs: bs}
		for range rows {
			t.acc = append(t.acc, [2]wasm.Local{k.Local(wasm.V128), k.Local(wasm.V128)})
			t.a = append(t.a, k.Local(wasm.I32))
		}
		t.row = k.Local(wasm.I32)
		t.b = k.Local(wasm.I32)
		t.p = k.Local(wasm.I32)
		k.While(n, 1, func() {
			t.start(bias, n)
			for i, l := range t.a {
				from := a
				if i > 0 {
					from = t.a[i-1]
				}
				k.Get(from)
				if i > 0 {
					k.Get(as)
					k.Op(wasm.I32Add)
				}
				k.Set(l)
			}
			k.Get(b)
			k.Set(t.b)
			k.Get(depth)
			k.Set(t.p)
			k.While(t.p, 4, func() { t.steps(4) })
			k.While(t.p, 1, func() { t.steps(1) })
			k.Get(c)
			k.Set(t.row)
			k.Get(n)
			k.Int(TileCols)
			k.Op(wasm.I32GeS)
			k.If(t.storeWhole)
			k.Get(n)
			k.Int(TileCols)
			k.Op(wasm.I32LtS)
			k.If(func() { t.storePart(n) })
			k.AddLocal(b, bp)
			k.Add(c, 4*TileCols)
			k.Get(bias)
			k.If(func() { k.Add(bias, 4*TileCols) })
			k.Add(n, -TileCols)
		})
	})
}

// tile is a tile whose kernel is being written.
type tile struct {
	kernel
	acc         [][2]wasm.Local
	a           []wasm.Local // the addresses of the rows of A
	b, p        wasm.Local   // the address of the row of B, and the number of remaining rows
	row         wasm.Local   // the address of the row of C
	bs, cs, add wasm.Local
}

// start sets the sums of all rows to the bias, or to 0.
func (t *tile) start(bias, n wasm.Local) {
	for _, acc := range t.acc {
		for _, l := range acc {
			t.Splat(0)
			t.Set(l)
		}
	}
	t.Get(bias)
	t.If(func() {
		t.Get(n)
		t.Int(TileCols)
		t.Op(wasm.I32GeS)
		t.If(func() {
			for j := range 2 {
				t.Get(bias)
				t.Load(wasm.V128Load, 16*j)
				t.Set(t.acc[0][j])
			}
		})
		t.Get(n)
		t.Int(TileCols)
		t.Op(wasm.I32LtS)
		t.If(func() {
			for lane := range TileCols - 1 {
				t.Get(n)
				t.Int(int32(lane))
				t.Op(wasm.I32GtS)
				t.If(func() {
					l := t.acc[0][lane/4]
					t.Get(bias)
					t.Get(l)
					t.LoadLane(wasm.V128Load32Lane, 4*lane, lane%4)
					t.Set(l)
				})
			}
		})
		for _, acc := range t.acc[1:] {
			for j, l := range acc {
				t.Get(t.acc[0][j])
				t.Set(l)
			}
		}
	})
}

// steps adds the products of count elements of each row of A.
func (t *tile) steps(count int) {
	b, x := [2]wasm.Local{t.Local(wasm.V128), t.Local(wasm.V128)}, t.Local(wasm.V128)
	if count > 1 { // The largest offset comes first, as in Map.
		for _, a := range t.a {
			t.Get(a)
			t.Load(wasm.F32Load, 4*(count-1))
			t.Op(wasm.Drop)
		}
	}
	for s := range count {
		for j := 1; j >= 0; j-- {
			t.Get(t.b)
			t.Load(wasm.V128Load, 16*j)
			t.Set(b[j])
		}
		t.AddLocal(t.b, t.bs)
		for i, acc := range t.acc {
			t.Get(t.a[i])
			t.Load(wasm.V128Load32Splat, 4*s)
			t.Set(x)
			for j, l := range b {
				t.Get(x)
				t.Get(l)
				t.MulAdd(acc[j])
				t.Set(acc[j])
			}
		}
	}
	for _, a := range t.a {
		t.Add(a, 4*count)
	}
	t.Add(t.p, -count)
}

// storeWhole stores whole rows, or adds them to C.
func (t *tile) storeWhole() {
	for _, acc := range t.acc {
		t.Get(t.add)
		t.If(func() {
			for j, l := range acc {
				t.Get(t.row)
				t.Load(wasm.V128Load, 16*j)
				t.Get(l)
				t.Op(wasm.F32x4Add)
				t.Set(l)
			}
		})
		for j, l := range acc {
			t.Get(t.row)
			t.Get(l)
			t.Store(wasm.V128Store, 16*j)
		}
		t.AddLocal(t.row, t.cs)
	}
}

// storePart stores the first n columns of a panel, which are not all.
func (t *tile) storePart(n wasm.Local) {
	left, from, to := t.Local(wasm.I32), t.Local(wasm.I32), t.Local(wasm.I32)
	for _, acc := range t.acc {
		for j, l := range acc {
			t.Get(t.Param(0))
			t.Get(l)
			t.Store(wasm.V128Store, frame.Scratch+16*j)
		}
		t.Get(n)
		t.Set(left)
		t.Get(t.Param(0))
		t.Set(from)
		t.Get(t.row)
		t.Set(to)
		t.While(left, 1, func() {
			sum := t.Local(wasm.F32)
			t.Get(from)
			t.Load(wasm.F32Load, frame.Scratch)
			t.Set(sum)
			t.Get(t.add)
			t.If(func() {
				t.Get(sum)
				t.Get(to)
				t.Load(wasm.F32Load, 0)
				t.Op(wasm.F32Add)
				t.Set(sum)
			})
			t.Get(to)
			t.Get(sum)
			t.Store(wasm.F32Store, 0)
			t.Add(from, 4)
			t.Add(to, 4)
			t.Add(left, -1)
		})
		t.AddLocal(t.row, t.cs)
	}
}

// copyPanels writes simd's copyPanelsFunc.
func (s *Set) copyPanels() {
	s.add("gemm.copypanels", func(k kernel) {
		dst, src, ss, dp, depth, panels := k.pointer(0), k.pointer(1), k.int(0), k.int(1), k.int(2), k.int(3)
		from, to, left := k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32)
		v := [2]wasm.Local{k.Local(wasm.V128), k.Local(wasm.V128)}
		k.While(depth, 1, func() {
			for _, l := range [][2]wasm.Local{{from, src}, {to, dst}, {left, panels}} {
				k.Get(l[1])
				k.Set(l[0])
			}
			k.While(left, 1, func() {
				for j, l := range v {
					k.Get(from)
					k.Load(wasm.V128Load, 16*j)
					k.Set(l)
				}
				for j, l := range v {
					k.Get(to)
					k.Get(l)
					k.Store(wasm.V128Store, 16*j)
				}
				k.Add(from, 4*TileCols)
				k.AddLocal(to, dp)
				k.Add(left, -1)
			})
			k.AddLocal(src, ss)
			k.Add(dst, 4*TileCols)
			k.Add(depth, -1)
		})
	})
}

// transpose writes simd's transposeFunc of at most four rows.
func (s *Set) transpose() {
	s.add("gemm.transpose", func(k kernel) {
		dst, src, ds, ss, rows, cols := k.pointer(0), k.pointer(1), k.int(0), k.int(1), k.int(2), k.int(3)
		k.Get(rows)
		k.Int(4)
		k.Op(wasm.I32Eq)
		k.If(func() {
			var p [4]wasm.Local
			var v, w [4]wasm.Local
			for i := range p {
				p[i], v[i], w[i] = k.Local(wasm.I32), k.Local(wasm.V128), k.Local(wasm.V128)
				if i == 0 {
					k.Get(src)
				} else {
					k.Get(p[i-1])
					k.Get(ss)
					k.Op(wasm.I32Add)
				}
				k.Set(p[i])
			}
			mix := func(dst, a, b wasm.Local, words [4]byte) {
				k.Get(a)
				k.Get(b)
				k.ShuffleWords(words[0], words[1], words[2], words[3])
				k.Set(dst)
			}
			k.While(cols, 4, func() {
				for i := range p {
					k.Get(p[i])
					k.Load(wasm.V128Load, 0)
					k.Set(v[i])
					k.Add(p[i], 16)
				}
				low, high := [4]byte{0, 4, 1, 5}, [4]byte{2, 6, 3, 7}
				mix(w[0], v[0], v[1], low)
				mix(w[1], v[2], v[3], low)
				mix(w[2], v[0], v[1], high)
				mix(w[3], v[2], v[3], high)
				mix(v[0], w[0], w[1], [4]byte{0, 1, 4, 5})
				mix(v[1], w[0], w[1], [4]byte{2, 3, 6, 7})
				mix(v[2], w[2], w[3], [4]byte{0, 1, 4, 5})
				mix(v[3], w[2], w[3], [4]byte{2, 3, 6, 7})
				for i := range v {
					k.Get(dst)
					k.Get(v[i])
					k.Store(wasm.V128Store, 0)
					k.AddLocal(dst, ds)
				}
				k.Add(src, 16)
				k.Add(cols, -4)
			})
		})
		from, to, left := k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32)
		k.While(cols, 1, func() {
			k.Get(src)
			k.Set(from)
			k.Get(dst)
			k.Set(to)
			k.Get(rows)
			k.Set(left)
			k.While(left, 1, func() {
				k.Get(to)
				k.Get(from)
				k.Load(wasm.I32Load, 0)
				k.Store(wasm.I32Store, 0)
				k.AddLocal(from, ss)
				k.Add(to, 4)
				k.Add(left, -1)
			})
			k.Add(src, 4)
			k.AddLocal(dst, ds)
			k.Add(cols, -1)
		})
	})
}

// scaledRows writes simd's rowsFunc of one row: four rows of B at a time.
func (s *Set) scaledRows() {
	s.add("gemm.rows1", func(k kernel) {
		a, b, c, bs, depth, n := k.pointer(0), k.pointer(1), k.pointer(2), k.int(0), k.int(1), k.int(2)
		to, left := k.Local(wasm.I32), k.Local(wasm.I32)
		sweep := func(rows int) {
			var p, x []wasm.Local
			for i := range rows {
				p, x = append(p, k.Local(wasm.I32)), append(x, k.Local(wasm.V128))
				if i == 0 {
					k.Get(b)
				} else {
					k.Get(p[i-1])
					k.Get(bs)
					k.Op(wasm.I32Add)
				}
				k.Set(p[i])
				k.Get(a)
				k.Load(wasm.V128Load32Splat, 4*i)
				k.Set(x[i])
			}
			k.Get(c)
			k.Set(to)
			k.Get(n)
			k.Set(left)
			sum := k.Local(wasm.V128)
			step := func(load wasm.Op, at int) {
				k.Get(to)
				k.Load(load, at)
				k.Set(sum)
				for i := range rows {
					k.Get(p[i])
					k.Load(load, at)
					k.Get(x[i])
					k.MulAdd(sum)
					k.Set(sum)
				}
			}
			advance := func(elements int) {
				k.Add(to, 4*elements)
				for _, l := range p {
					k.Add(l, 4*elements)
				}
				k.Add(left, -elements)
			}
			k.While(left, 8, func() {
				for at := range 2 {
					step(wasm.V128Load, 16*at)
					k.Get(to)
					k.Get(sum)
					k.Store(wasm.V128Store, 16*at)
				}
				advance(8)
			})
			k.While(left, 1, func() {
				step(wasm.V128Load32Zero, 0)
				k.Get(to)
				k.Get(sum)
				k.LoadLane(wasm.V128Store32Lane, 0, 0)
				advance(1)
			})
			k.Add(a, 4*rows)
			for range rows {
				k.AddLocal(b, bs)
			}
			k.Add(depth, -rows)
		}
		k.While(depth, 4, func() { sweep(4) })
		k.While(depth, 1, func() { sweep(1) })
	})
}

// dots writes simd's dotsFunc of one vector, which is padded with zeros. The
// rows are not padded: their last elements are multiplied one by one.
func (s *Set) dots() {
	dot := s.reduce(reductions[3])
	s.add("gemm.dots1", func(k kernel) {
		x, p, c, ss, cr, depth, rows := k.pointer(0), k.pointer(1), k.pointer(2), k.int(0), k.int(1), k.int(2), k.int(3)
		k.While(rows, 1, func() {
			k.Get(c)
			k.Get(c)
			k.Load(wasm.F32Load, 0)
			k.Get(x)
			k.Get(p)
			k.Get(depth)
			k.Call(dot)
			k.Op(wasm.F32Add)
			k.Store(wasm.F32Store, 0)
			k.AddLocal(x, ss)
			k.AddLocal(c, cr)
			k.Add(rows, -1)
		})
	})
}
