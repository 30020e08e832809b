package emu

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// mmaKernel multiplies 16 by 16 and 16 by 8 matrices of half floats from shared
// memory.
func mmaKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		a, b, c := ptx.GlobalParam[ptx.B32](k, "a"), ptx.GlobalParam[ptx.B32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
		as, bs := ptx.SharedArray[ptx.B32](k, "as", 16*8), ptx.SharedArray[ptx.B32](k, "bs", 16*4)
		lane := k.Special(ptx.LaneID)
		k.For(lane, ptx.U(128), ptx.U(32), func(i ptx.U32) { as.At(i).Store(a.At(i).Load()) })
		k.For(lane, ptx.U(64), ptx.U(32), func(i ptx.U32) { bs.At(i).Store(b.At(i).Load()) })
		if defect != "barrier" {
			k.SyncWarp(ptx.AllLanes)
		}
		row := lane.And(ptx.U(15)).Mul(ptx.U(8)).Add(lane.Shr(ptx.U(4)).Mul(ptx.U(4)))
		if defect == "misaligned" {
			row = lane.And(ptx.U(15)).Mul(ptx.U(8)).Add(lane.Shr(ptx.U(4)))
		}
		fa := ptx.LoadMatrix4(ptx.CastShared[ptx.F16x2](as).At(row), false)
		fb := ptx.LoadMatrix2(ptx.CastShared[ptx.F16x2](bs).At(lane.And(ptx.U(15)).Mul(ptx.U(4))), true)
		var acc [4]ptx.Var[ptx.F32]
		for i := range acc {
			acc[i] = ptx.NewVar(k, ptx.F(0))
		}
		if defect == "half" {
			k.If(lane.Lt(ptx.U(16)), func() { k.MmaF16(&acc, fa, fb) })
		} else {
			k.MmaF16(&acc, fa, fb)
		}
		out := c.At(lane.Shr(ptx.U(2)).MulAdd(ptx.U(8), lane.And(ptx.U(3)).Mul(ptx.U(2))))
		out.Store2([2]ptx.F32{acc[0].Get(), acc[1].Get()})
		out.Offset(64).Store2([2]ptx.F32{acc[2].Get(), acc[3].Get()})
	}
}

// halves rounds numbers in place by the function to, and returns them packed.
func halves(v []float32, to func(float64) uint16, from func(uint16) float64) []uint32 {
	w := make([]uint32, len(v)/2)
	for i := range v {
		h := to(float64(v[i]))
		v[i] = float32(from(h))
		w[i/2] |= uint32(h) << (16 * (i & 1))
	}
	return w
}

// product is a[m,k] times b: b[k,n], or b[n,k] if it is transposed.
func product(a, b []float32, m, n, k int, transposed bool) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				y := b[(l*n+j)%len(b)]
				if transposed {
					y = b[j*k+l]
				}
				c[i*n+j] += float64(a[i*k+l]) * float64(y)
			}
		}
	}
	return c
}

func runMma(d device, k *Kernel) ([]float32, []float64, error) {
	x, y := randoms(256, 1), randoms(128, 2)
	a, b := d.words("a", halves(x, toHalf, fromHalf)), d.words("b", halves(y, toHalf, fromHalf))
	c := d.empty("c", 512)
	err := d.Launch(background, k, Dim{}, Dim{X: 32}, 0, a, b, c)
	got, _ := d.ReadFloats(c, 128)
	return got, product(x, y, 16, 8, 16, false), err
}

func TestMma(t *testing.T) {
	k := build(t, mmaKernel(""))
	for _, c := range schedules {
		got, want, err := runMma(newDevice(t, c), k)
		if err != nil {
			t.Fatal(err)
		}
		near(t, got, want, 1e-6, 4)
	}
}

// TestMmaShapes multiplies, in registers, matrices of every type.
func TestMmaShapes(t *testing.T) {
	for _, s := range []struct {
		name    string
		k, bits int
		build   func(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32)
		encode  func(v float64) (bits uint32, is float64)
	}{
		{"bf16", 16, 16, func(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32) {
			k.MmaBF16(acc, [4]ptx.BF16x2{a[0].BF16x2(), a[1].BF16x2(), a[2].BF16x2(), a[3].BF16x2()}, [2]ptx.BF16x2{b[0].BF16x2(), b[1].BF16x2()})
		}, func(v float64) (uint32, float64) { return uint32(toBrain(v)), fromBrain(toBrain(v)) }},
		{"tf32", 8, 32, func(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32) { k.MmaTF32(acc, a, b) },
			func(v float64) (uint32, float64) {
				b := math.Float32bits(float32(v)) &^ 0x1fff
				return b, float64(math.Float32frombits(b))
			}},
		{"f16 k8", 8, 16, func(k *ptx.Kernel, acc *[4]ptx.Var[ptx.F32], a [4]ptx.B32, b [2]ptx.B32) {
			k.MmaF16K8(acc, [2]ptx.F16x2{a[0].F16x2(), a[1].F16x2()}, [1]ptx.F16x2{b[0].F16x2()})
		}, func(v float64) (uint32, float64) { return uint32(toHalf(v)), fromHalf(toHalf(v)) }},
	} {
		k := build(t, func(k *ptx.Kernel) {
			a, b, c := ptx.GlobalParam[ptx.B32](k, "a"), ptx.GlobalParam[ptx.B32](k, "b"), ptx.GlobalParam[ptx.F32](k, "c")
			lane := k.Special(ptx.LaneID)
			g, q := lane.Shr(ptx.U(2)), lane.And(ptx.U(3))
			pitch := s.k * s.bits / 32 // words of a row
			var fa [4]ptx.B32
			var fb [2]ptx.B32
			for i := range fa {
				if 4*(i/2) < pitch {
					fa[i] = a.At(g.Add(ptx.N(8*(i%2))).MulAdd(ptx.N(pitch), q.Add(ptx.N(4*(i/2))))).Load()
				}
			}
			for i := range fb {
				if 4*i < pitch {
					fb[i] = b.At(g.MulAdd(ptx.N(pitch), q.Add(ptx.N(4*i)))).Load()
				}
			}
			var acc [4]ptx.Var[ptx.F32]
			for i := range acc {
				acc[i] = ptx.NewVar(k, ptx.F(1))
			}
			s.build(k, &acc, fa, fb)
			for i := range acc {
				c.At(g.Add(ptx.N(8*(i/2))).MulAdd(ptx.U(8), q.Mul(ptx.U(2)).Add(ptx.N(i%2)))).Store(acc[i].Get())
			}
		})
		pack := func(v []float32) []uint32 {
			per := 32 / s.bits
			w := make([]uint32, len(v)/per)
			for i := range v {
				b, is := s.encode(float64(v[i]))
				w[i/per] |= b << (s.bits * (i % per))
				v[i] = float32(is)
			}
			return w
		}
		x, y := randoms(16*s.k, 3), randoms(8*s.k, 4)
		d := newDevice(t, Config{})
		a, b := d.words("a", pack(x)), d.words("b", pack(y))
		c := d.empty("c", 512)
		d.launch(k, Dim{}, Dim{X: 32}, 0, a, b, c)
		got, _ := d.ReadFloats(c, 128)
		want := product(x, y, 16, 8, s.k, true)
		for i := range want {
			want[i]++
		}
		near(t, got, want, 1e-6, 4)
	}
}

// TestMmaBytes multiplies bytes, exactly.
func TestMmaBytes(t *testing.T) {
	k := build(t, func(k *ptx.Kernel) {
		a, b, c := ptx.GlobalParam[ptx.B32](k, "a"), ptx.GlobalParam[ptx.B32](k, "b"), ptx.GlobalParam[ptx.S32](k, "c")
		lane := k.Special(ptx.LaneID)
		g, q := lane.Shr(ptx.U(2)), lane.And(ptx.U(3))
		var fa [4]ptx.B32
		var fb [2]ptx.B32
		for i := range fa {
			fa[i] = a.At(g.Add(ptx.N(8*(i%2))).MulAdd(ptx.U(8), q.Add(ptx.N(4*(i/2))))).Load()
		}
		for i := range fb {
			fb[i] = b.At(g.MulAdd(ptx.U(8), q.Add(ptx.N(4*i)))).Load()
		}
		var acc [4]ptx.Var[ptx.S32]
		for i := range acc {
			acc[i] = ptx.NewVar(k, ptx.S(-5))
		}
		k.MmaS8(&acc, fa, fb)
		for i := range acc {
			c.At(g.Add(ptx.N(8*(i/2))).MulAdd(ptx.U(8), q.Mul(ptx.U(2)).Add(ptx.N(i%2)))).Store(acc[i].Get())
		}
	})
	x, y := make([]byte, 16*32), make([]byte, 8*32)
	for i := range x {
		x[i] = byte(i*37 + i>>4)
	}
	for i := range y {
		y[i] = byte(i*91 + 3)
	}
	d := newDevice(t, Config{})
	a, b, c := d.empty("a", len(x)), d.empty("b", len(y)), d.empty("c", 512)
	d.must(d.Write(a, x))
	d.must(d.Write(b, y))
	d.launch(k, Dim{}, Dim{X: 32}, 0, a, b, c)
	got, _ := d.ReadWords(c, 128)
	for i := range 16 {
		for j := range 8 {
			want := int32(-5)
			for l := range 32 {
				want += int32(int8(x[i*32+l])) * int32(int8(y[j*32+l]))
			}
			if int32(got[i*8+j]) != want {
				t.Fatalf("element %d,%d is %d, not %d", i, j, int32(got[i*8+j]), want)
			}
		}
	}
}

// wgmmaKernel multiplies tiles of 64 by 32 bf16 elements. One warp copies tiles through tensor maps, two stages ahead. A
// warpgroup multiplies them and stores D through a tensor map.
func wgmmaKernel(defect string) func(k *ptx.Kernel) {
	return func(k *ptx.Kernel) {
		const stages, depth, cols = 2, 64, 32
		k.Block(256, 1, 1)
		k.Align(1024)
		ta, tb, tc := ptx.TensorMapParam(k, "a"), ptx.TensorMapParam(k, "b"), ptx.TensorMapParam(k, "c")
		steps := ptx.Param[ptx.U32](k, "steps")
		as := ptx.DynamicShared[ptx.BF16](k, stages*64*depth)
		bs := ptx.DynamicShared[ptx.BF16](k, stages*cols*depth)
		cs := ptx.DynamicShared[ptx.F32](k, 64*cols)
		full, empty := ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, stages)), ptx.MBarrierAt(ptx.DynamicShared[ptx.U64](k, stages))
		t := k.Special(ptx.TidX)
		row, col := k.Special(ptx.CtaidY).Mul(ptx.U(64)), k.Special(ptx.CtaidX).Mul(ptx.U(cols))
		k.If(t.Eq(ptx.U(0)), func() {
			for i := range stages {
				full.At(ptx.N(i)).Init(ptx.U(1))
				empty.At(ptx.N(i)).Init(ptx.U(1))
			}
			k.FenceMBarrierInit()
		})
		if defect != "init barrier" {
			k.Sync()
		}
		k.IfElse(t.Lt(ptx.U(128)), func() {
			k.If(t.Eq(ptx.U(0)), func() {
				k.Count(steps, func(i ptx.U32) {
					s, phase := i.And(ptx.U(stages-1)), i.Shr(ptx.U(1)).And(ptx.U(1))
					if defect != "empty" {
						empty.At(s).Wait(phase.Xor(ptx.U(1)))
					}
					bar, bytes := full.At(s), (64+cols)*depth*2
					if defect == "bytes" {
						bytes += 128
					}
					bar.ArriveExpect(ptx.N(bytes))
					x := i.Mul(ptx.U(depth)).S32()
					ptx.TensorLoad(as.At(s.Mul(ptx.U(64*depth))), ta, bar, x, row.S32())
					ptx.TensorLoad(bs.At(s.Mul(ptx.U(cols*depth))), tb, bar, x, col.S32())
				})
			})
		}, func() {
			acc := make([]ptx.Var[ptx.F32], cols/2)
			for i := range acc {
				acc[i] = ptx.NewVar(k, ptx.F(0))
			}
			k.Count(steps, func(i ptx.U32) {
				s, phase := i.And(ptx.U(stages-1)), i.Shr(ptx.U(1)).And(ptx.U(1))
				switch defect {
				case "full":
				case "parity":
					full.At(s).Wait(phase.Xor(ptx.U(1)))
				default:
					full.At(s).Wait(phase)
				}
				swizzle := ptx.Swizzle128
				if defect == "swizzle" {
					swizzle = ptx.Swizzle64
				}
				stride := 1024
				if defect == "stride" {
					stride = 512
				}
				a := ptx.NewTile(as.At(s.Mul(ptx.U(64*depth))), swizzle, 16, stride)
				b := ptx.NewTile(bs.At(s.Mul(ptx.U(cols*depth))), swizzle, 16, stride)
				if defect != "fence" {
					k.WgmmaFence()
				}
				for d := range depth / 16 {
					k.WgmmaBF16(acc, a.Advance(ptx.N(32*d)), b.Advance(ptx.N(32*d)), ptx.Wgmma{Add: i.Ne(ptx.U(0)).Or(ptx.Reg(k, ptx.Is(d > 0)))})
				}
				k.WgmmaCommit()
				if defect != "wait" {
					k.WgmmaWait(0)
				}
				k.If(t.Eq(ptx.U(128)), func() { empty.At(s).Arrive() })
			})
			lane, warp := t.And(ptx.U(31)), t.Shr(ptx.U(5)).And(ptx.U(3))
			out := cs.At(warp.MulAdd(ptx.U(16), lane.Shr(ptx.U(2))).MulAdd(ptx.U(cols), lane.And(ptx.U(3)).Mul(ptx.U(2))))
			for j := range cols / 8 {
				out.Offset(8 * j).Store2([2]ptx.F32{acc[4*j].Get(), acc[4*j+1].Get()})
				out.Offset(8*cols + 8*j).Store2([2]ptx.F32{acc[4*j+2].Get(), acc[4*j+3].Get()})
			}
			if defect != "proxy" {
				k.FenceAsyncShared()
			}
			if defect != "group barrier" {
				k.SyncSome(1, 128)
			}
			k.If(t.Eq(ptx.U(128)), func() {
				ptx.TensorStore(tc, cs, col.S32(), row.S32())
				k.BulkCommit()
				if defect != "bulk wait" {
					k.BulkWait(0)
				}
			})
		})
	}
}

const wgmmaM, wgmmaN, wgmmaK = 100, 80, 320

func runWgmma(d device, k *Kernel) ([]float32, []float64, error) {
	m, n, kk := wgmmaM, wgmmaN, wgmmaK
	x, y := randoms(m*kk, 5), randoms(n*kk, 6)
	a, b := d.words("a", halves(x, toBrain, fromBrain)), d.words("b", halves(y, toBrain, fromBrain))
	c := d.empty("c", 4*m*n)
	maps := []*TensorMap{
		{Base: a, Type: "bf16", Dims: []int{kk, m}, Strides: []int{2 * kk}, Box: []int{64, 64}, Swizzle: ptx.Swizzle128},
		{Base: b, Type: "bf16", Dims: []int{kk, n}, Strides: []int{2 * kk}, Box: []int{64, 32}, Swizzle: ptx.Swizzle128},
		{Base: c, Type: "f32", Dims: []int{n, m}, Strides: []int{4 * n}, Box: []int{32, 64}},
	}
	shared := 2*(64+32)*64*2 + 64*32*4 + 1024 + 16 // every array begins at a multiple of 1024
	err := d.Launch(context.Background(), k, Dim{X: ceil(n, 32), Y: ceil(m, 64)}, Dim{X: 256}, shared, maps[0], maps[1], maps[2], uint32(kk/64))
	got, _ := d.ReadFloats(c, m*n)
	return got, product(x, y, m, n, kk, true), err
}

func buildFor(t testing.TB, target ptx.Target, f func(k *ptx.Kernel)) *Kernel {
	t.Helper()
	k, err := Build(target, "kernel", f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWgmma(t *testing.T) {
	k := buildFor(t, ptx.SM90a, wgmmaKernel(""))
	for _, c := range schedules[:3] {
		got, want, err := runWgmma(newDevice(t, c), k)
		if err != nil {
			t.Fatal(c, err)
		}
		near(t, got, want, 1e-5, 10)
	}
}

// TestTransMatrix loads a matrix and stores its transpose.
func TestTransMatrix(t *testing.T) {
	k := buildFor(t, ptx.SM90, func(k *ptx.Kernel) {
		x, y := ptx.GlobalParam[ptx.B32](k, "x"), ptx.GlobalParam[ptx.B32](k, "y")
		s := ptx.SharedArray[ptx.B32](k, "s", 32)
		lane := k.Special(ptx.LaneID)
		s.At(lane).Store(x.At(lane).Load())
		k.SyncWarp(ptx.AllLanes)
		row := s.At(lane.And(ptx.U(7)).Mul(ptx.U(4)))
		v := ptx.LoadMatrix(row, false)
		k.SyncWarp(ptx.AllLanes)
		ptx.StoreMatrix(row, v, true)
		k.SyncWarp(ptx.AllLanes)
		y.At(lane).Store(s.At(lane).Load())
	})
	d := newDevice(t, Config{})
	x := make([]byte, 128)
	for i := range 64 {
		binary.LittleEndian.PutUint16(x[2*i:], uint16(i))
	}
	px, py := d.empty("x", 128), d.empty("y", 128)
	d.must(d.Write(px, x))
	d.launch(k, Dim{}, Dim{X: 32}, 0, px, py)
	d.must(d.Read(py, x))
	for i := range 64 {
		if got := int(binary.LittleEndian.Uint16(x[2*i:])); got != i%8*8+i/8 {
			t.Fatalf("element %d is %d", i, got)
		}
	}
}
