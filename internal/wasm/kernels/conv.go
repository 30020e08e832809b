package kernels

import "github.com/rayo-go/rayo/internal/wasm"

// convRow writes simd's convRowFunc: sixteen results at a time.
func (s *Set) convRow() {
	s.add("conv.row", func(k kernel) {
		y, x, offsets, weights, taps, n := k.pointer(0), k.pointer(1), k.pointer(2), k.pointer(3), k.int(0), k.int(1)
		start := k.splat(0)
		at, w, left, from := k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32)
		weight := k.Local(wasm.V128)
		var acc [4]wasm.Local
		for i := range acc {
			acc[i] = k.Local(wasm.V128)
		}
		sweep := func(vectors int, load wasm.Op, elements int, store func(i int)) {
			for _, l := range acc[:vectors] {
				k.Get(start)
				k.Set(l)
			}
			k.Get(offsets)
			k.Set(at)
			k.Get(weights)
			k.Set(w)
			k.Get(taps)
			k.Set(left)
			k.While(left, 1, func() {
				k.Get(x)
				k.Get(at)
				k.Load(wasm.I32Load, 0)
				k.Op(wasm.I32Add)
				k.Set(from)
				k.Get(w)
				k.Load(wasm.V128Load32Splat, 0)
				k.Set(weight)
				for i, l := range acc[:vectors] {
					k.Get(from)
					k.Load(load, 16*i)
					k.Get(weight)
					k.MulAdd(l)
					k.Set(l)
				}
				k.Add(at, 8)
				k.Add(w, 4)
				k.Add(left, -1)
			})
			for i := range vectors {
				store(i)
			}
			k.Add(x, 4*elements)
			k.Add(y, 4*elements)
			k.Add(n, -elements)
		}
		whole := func(i int) {
			k.Get(y)
			k.Get(acc[i])
			k.Store(wasm.V128Store, 16*i)
		}
		k.While(n, 16, func() { sweep(4, wasm.V128Load, 16, whole) })
		k.While(n, 4, func() { sweep(1, wasm.V128Load, 4, whole) })
		k.While(n, 1, func() {
			sweep(1, wasm.V128Load32Zero, 1, func(int) {
				k.Get(y)
				k.Get(acc[0])
				k.LoadLane(wasm.V128Store32Lane, 0, 0)
			})
		})
	})
}

// convGather writes simd's convGatherFunc.
func (s *Set) convGather() {
	s.add("conv.gather", func(k kernel) {
		dst, src, offsets, places, n := k.pointer(0), k.pointer(1), k.pointer(2), k.int(0), k.int(1)
		from, to, left := k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32)
		// sweep loops over the places; from is the address of each.
		sweep := func(piece func()) {
			k.While(places, 1, func() {
				k.Get(src)
				k.Get(offsets)
				k.Load(wasm.I32Load, 0)
				k.Op(wasm.I32Add)
				k.Set(from)
				piece()
				k.Add(offsets, 8)
				k.Add(dst, 4*TileCols)
				k.Add(places, -1)
			})
		}
		k.Get(n)
		k.Int(TileCols)
		k.Op(wasm.I32Eq)
		k.If(func() {
			sweep(func() {
				for i := range TileCols / 4 {
					k.Get(dst)
					k.Get(from)
					k.Load(wasm.V128Load, 16*i)
					k.Store(wasm.V128Store, 16*i)
				}
			})
		})
		sweep(func() {
			k.Get(dst)
			k.Set(to)
			k.Get(n)
			k.Set(left)
			k.While(left, 1, func() {
				k.Get(to)
				k.Get(from)
				k.Load(wasm.I32Load, 0)
				k.Store(wasm.I32Store, 0)
				k.Add(from, 4)
				k.Add(to, 4)
				k.Add(left, -1)
			})
		})
	})
}
