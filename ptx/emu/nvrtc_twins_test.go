package emu

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// This file has Go versions of the longer kernels of testdata/nvrtc/kernels.cu.

func (r *rig) tolerance(exact, fast float64) float64 {
	if r.fast {
		return fast
	}
	return exact
}

// unary runs a kernel that applies a function to each element.
func (r *rig) unary(kernel string, x []float32, exact, fast, least float64, f func(x float64) float64) {
	r.Helper()
	if r.fast {
		least = max(least, 0x1p-125)
	}
	y := r.empty(4 * len(x))
	r.launch(kernel, blocks, threads, 0, y, r.array(x), int32(len(x)))
	closeTo(r, results[float32](r, y, len(x)), r.tolerance(exact, fast), least, func(i int) float64 {
		return float64(float32(f(float64(x[i]))))
	})
}

func (r *rig) moreFloats() {
	x := random(items, func(i int) float32 { return float32(r.rand.NormFloat64() * 3) })
	y := r.empty(4 * items)
	r.launch("more_f32", blocks, threads, 0, y, r.array(x), int32(items))
	closeTo(r, results[float32](r, y, items), r.tolerance(1e-6, 3e-5), 1e-6, func(i int) float64 {
		v := float64(x[i])
		switch i % 8 {
		case 0:
			return math.Tanh(v)
		case 1:
			return math.Erf(v)
		case 2:
			return math.Log1p(math.Abs(v))
		case 3:
			return math.Cbrt(v)
		case 4:
			return math.Atan2(v, 2)
		case 5:
			return math.Hypot(v, 3)
		case 6:
			return math.Mod(v, 0.75)
		}
		return math.RoundToEven(v) + math.Trunc(v) + math.Floor(v) + math.Ceil(v) + max(min(v, 1), 0)
	})
}

func (r *rig) doubles() {
	x := random(items, func(i int) float64 { return (r.rand.Float64() - 0.5) * math.Pow(10, float64(i%4)) })
	y := r.empty(32 * items)
	r.launch("math_f64", blocks, threads, 0, y, r.array(x), int32(items))
	closeTo(r, results[float64](r, y, 4*items), 1e-14, 1e-13, func(i int) float64 {
		v := x[i/4]
		switch i % 4 {
		case 0:
			return math.Exp(v)
		case 1:
			return math.Log(math.Abs(v)+1) / math.Sqrt(v*v+0.5)
		case 2:
			s, _ := new(big.Float).SetFloat64(v * 1e6).Float64()
			return math.Sin(s) + math.Atan2(v, 3)
		}
		return math.Mod(v, 0.3) + math.Pow(math.Abs(v), 1.7)
	})
}

// divisors returns dividends and divisors that are not 0, of all magnitudes.
func divisors[T int32 | int64](r *rig) (a, b []T) {
	one := func(int) T {
		return T(r.rand.Uint64()) >> r.rand.IntN(int(8*sizeOf[T]()))
	}
	a, b = random(items, one), random(items, one)
	for i := range b {
		if b[i] == 0 {
			b[i] = 1
		}
	}
	least, _ := bounds[T]()
	a[0], b[0] = least, -1
	return a, b
}

func sizeOf[T int32 | int64]() int {
	if _, most := bounds[T](); most == T(math.MaxInt32) {
		return 4
	}
	return 8
}

func (r *rig) multiply128() {
	a := random(items, func(int) uint64 { return r.rand.Uint64() })
	b := random(items, func(int) uint64 { return r.rand.Uint64() >> r.rand.IntN(64) })
	y := r.empty(16 * items)
	r.launch("multiply128", blocks, threads, 0, y, r.array(a), r.array(b), int32(items))
	u := func(v uint64) *big.Int { return new(big.Int).SetUint64(v) }
	same(r, results[uint64](r, y, 2*items), func(i int) uint64 {
		a, b := u(a[i/2]), u(b[i/2])
		v := new(big.Int).Mul(a, b)
		v.Add(v, a).Sub(v, b).Add(v, new(big.Int).Lsh(b, 40))
		v.And(v, new(big.Int).Sub(new(big.Int).Lsh(u(1), 128), u(1)))
		if i%2 == 1 {
			v.Rsh(v, 64)
		}
		return v.And(v, u(math.MaxUint64)).Uint64()
	})
}

func (r *rig) bits() {
	a := random(items, func(int) uint32 { return r.rand.Uint32() >> r.rand.IntN(33) })
	b := random(items, func(int) uint32 { return r.rand.Uint32() >> r.rand.IntN(33) })
	y := r.empty(32 * items)
	r.launch("bits", blocks, threads, 0, y, r.array(a), r.array(b), int32(items))
	first := func(x uint64) uint32 {
		if x == 0 {
			return 0
		}
		return uint32(bits.TrailingZeros64(x)) + 1
	}
	same(r, results[uint32](r, y, 8*items), func(i int) uint32 {
		x, z := a[i/8], b[i/8]
		switch i % 8 {
		case 0:
			return uint32(bits.OnesCount32(x)+100*bits.LeadingZeros32(x)) + 10000*first(uint64(x))
		case 1:
			both := uint64(z)<<32 | uint64(x)
			var p uint32
			for j, from := range []int{6, 0, 5, 3} {
				p |= uint32(both>>(8*from)&0xff) << (8 * j)
			}
			return bits.Reverse32(x) ^ p
		case 2:
			both := uint64(z)<<32 | uint64(x)
			return uint32(both<<(z&31)>>32) + uint32(both>>(x&31))
		case 3:
			return uint32(uint64(x)*uint64(z)>>32) + uint32(int64(int32(x))*int64(int32(z))>>32)
		case 4:
			return x<<(z&31) | uint32(int32(x)>>(z>>27))
		case 5:
			return uint32(bits.OnesCount64(uint64(x)<<32|uint64(z))+bits.LeadingZeros64(uint64(x&15)<<32|uint64(z))) + first(uint64(z)<<20)
		case 6:
			var s uint32
			for j := 0; j < 32; j += 8 {
				s |= (x>>j + z>>j) & 0xff << j
			}
			return s ^ (max(x, z) - min(x, z) + 7)
		}
		return math.Float32bits(float32(x)) ^ uint32(int64(math.Floor(float64(int32(z))/3)))
	})
}

func (r *rig) smallTypes() {
	a := random(items, func(int) int8 { return int8(r.rand.Uint32()) })
	b := random(items, func(int) uint16 { return uint16(r.rand.Uint32()) })
	c, s := r.empty(items), r.empty(2*items)
	r.launch("small_types", blocks, threads, 0, c, s, r.array(a), r.array(b), int32(items))
	same(r, results[int8](r, c, items), func(i int) int8 {
		x, v := int32(a[i]), int32(b[i])
		if x < 0 {
			return int8(x*3 + v>>5 - v/7)
		}
		return int8(x*3 + v>>5 - v%5)
	})
	same(r, results[uint16](r, s, items), func(i int) uint16 {
		x, w := int32(a[i]), int32(int16(b[i]))
		v := w * x
		if w > x {
			v = w - x
		}
		return uint16(v ^ w>>3 ^ max(w, -100))
	})
}

// tree adds numbers in the order of the kernels.
func tree[T float32 | float64 | int32](v []T) T {
	for s := len(v) / 2; s > 0; s /= 2 {
		for i := range s {
			v[i] += v[i+s]
		}
	}
	return v[0]
}

func sums[T float32 | float64 | int32](r *rig, kernel string, block int, f func(i int) T) {
	r.Helper()
	x := random(items, f)
	n := (items + block - 1) / block
	y := r.empty(8 * n)
	r.launch(kernel, Dim{X: n}, Dim{X: block}, 0, y, r.array(x), int32(items))
	x = append(x, make([]T, n*block-items)...)
	same(r, results[T](r, y, n), func(i int) T { return tree(x[i*block : (i+1)*block]) })
}

func (r *rig) votes() {
	x := random(items, func(int) int32 { return r.rand.Int32N(100) - r.rand.Int32N(2) })
	y := r.empty(4 * items)
	r.launch("votes", blocks, threads, 0, y, r.array(x), int32(items))
	all := append(slices.Clone(x), make([]int32, blocks.X*threads.X-items)...)
	same(r, results[uint32](r, y, items), func(i int) uint32 {
		warp := all[i/32*32 : i/32*32+32]
		var odd, equal, some, sum uint32
		every := uint32(1)
		for j, v := range warp {
			odd |= uint32(v&1) << j
			if v&3 == all[i]&3 {
				equal |= 1 << j
			}
			if v > 90 {
				some = 1
			}
			if v < 0 {
				every = 0
			}
			sum += uint32(v)
		}
		return odd ^ equal*3 ^ some<<7 ^ every<<9 ^ sum<<16 ^ uint32(warp[5])<<4
	})
}

func (r *rig) histogram() {
	x := random(items, func(int) int32 { return r.rand.Int32N(1000) })
	counts, most, sum, total := r.array(make([]uint32, 64)), r.array([]int32{-1}), r.array([]uint64{1 << 40}), r.array([]float32{0})
	r.launch("histogram", Dim{X: 3}, Dim{X: 64}, 256, counts, most, sum, total, r.array(x), int32(items))
	var bins [64]uint32
	all, thirds := uint64(1<<40), float32(0)
	for _, v := range x {
		bins[v&63]++
		all += uint64(v)
		thirds += float32(v & 3)
	}
	same(r, results[uint32](r, counts, 64), func(i int) uint32 { return bins[i] })
	same(r, results[int32](r, most, 1), func(int) int32 { return slices.Max(x) })
	same(r, results[uint64](r, sum, 1), func(int) uint64 { return all })
	same(r, results[float32](r, total, 1), func(int) float32 { return thirds })
}

func (r *rig) lastBlock() {
	const grid = 6
	for range 2 { // the first launch resets the module's counter to 0
		x := random(2000, func(int) float32 { return r.rand.Float32() })
		y := r.empty(4)
		r.launch("last_block", Dim{X: grid}, Dim{X: 64}, 0, y, r.array(x), int32(len(x)))
		sum := float32(0)
		for b := range grid {
			var part [64]float32
			for i := range part {
				for j := b*64 + i; j < len(x); j += grid * 64 {
					part[i] += x[j]
				}
			}
			sum += tree(part[:])
		}
		same(r, results[float32](r, y, 1), func(int) float32 { return sum })
	}
}

func (r *rig) structures() {
	x := random(3*items, func(int) float32 { return float32(r.rand.NormFloat64()) })
	y := r.empty(12 * items)
	r.launch("structures", blocks, threads, 0, y, r.array(x), int32(items))
	type vec struct {
		v   [3]float64
		tag int
	}
	cross := func(a, b vec) (c vec) {
		for i := range 3 {
			j, k := (i+1)%3, (i+2)%3
			c.v[i] = a.v[j]*b.v[k] - a.v[k]*b.v[j]
		}
		c.tag = a.tag + b.tag
		return c
	}
	closeTo(r, results[float32](r, y, 3*items), 1e-5, 1e-5, func(i int) float64 {
		n := i / 3
		a, b := vec{[3]float64{float64(x[3*n]), float64(x[3*n+1]), float64(x[3*n+2])}, n}, vec{[3]float64{1, -2, 0.5}, 7}
		if n%2 == 1 {
			b = cross(b, a)
		}
		c := cross(a, b)
		return []float64{math.Sqrt(c.v[0]*c.v[0] + c.v[1]*c.v[1] + c.v[2]*c.v[2]),
			max(math.Abs(c.v[0]), math.Abs(c.v[1]), math.Abs(c.v[2])), float64(c.tag)}[i%3]
	})
}

func ackermann(m, n int) int {
	switch {
	case m == 0:
		return n + 1
	case n == 0:
		return ackermann(m-1, 1)
	}
	return ackermann(m-1, ackermann(m, n-1))
}

func hanoi(n uint32, from, to int, seed uint32) uint32 {
	if n == 0 {
		return seed
	}
	by := 3 - from - to
	seed = hanoi(n-1, from, by, seed)
	return hanoi(n-1, by, to, seed*31+uint32(from*3+to))
}

func pick(x, y float32) float32 {
	if x < y {
		return x
	}
	return y * 2
}

func (r *rig) pointers() {
	y := r.empty(4 * items)
	r.launch("pointers", blocks, threads, 0, y, int32(items))
	same(r, results[int32](r, y, items), func(i int) int32 {
		s, local, at := i, [4]int{1, 2, 3, 4}, 5*i
		switch i % 3 {
		case 0:
			s += 100
		case 1:
			local[i%4] += 100
		default:
			at += 100
		}
		local[i&3] += i
		return int32(at + s + 10*local[0] + 20*local[1] + 30*local[2] + 40*local[3])
	})
}

func (r *rig) tables() {
	given := []int32{5, -7, 11, 13}
	p, n, err := r.m.Variable(r.mod, "given")
	if err != nil || n != 16 {
		r.Fatal(n, err)
	}
	b := make([]byte, 0, n)
	for _, v := range given {
		b = append(b, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	if err := r.m.Write(p, b); err != nil {
		r.Fatal(err)
	}
	x := random(items, func(int) float32 { return r.rand.Float32()*2 - 1 })
	y := r.empty(4 * items)
	r.launch("tables", blocks, threads, 0, y, r.array(x), int32(items))
	table := [3][5]float64{{1, 2, 3, 4, 5}, {-1, -2, -3}, {1000, 2000, 3000, 4000, -32768}}
	kinds, values, names := "abc", []float64{10, -20, 30}, []string{"first", "second", "third"}
	closeTo(r, results[float32](r, y, items), 1e-6, 1e-3, func(i int) float64 {
		v := 0.0
		for _, c := range []float64{-2, 1e-3, 0, 0, 3, 0.25, -0.5, 1} {
			v = v*float64(x[i]) + c
		}
		v += table[i%3][i%5] + table[2][1+i%4]*0.125 + float64(given[i&3])
		return v + float64(kinds[i%3])*values[i%3] + float64(names[i%3][i%5])
	})
}

func (r *rig) jumps() {
	x := random(items, func(int) int32 { return r.rand.Int32N(2000) })
	was := random(items, func(int) int32 { return r.rand.Int32N(2000) })
	y := r.array(was)
	r.launch("jumps", blocks, threads, 0, y, r.array(x), int32(items))
	same(r, results[int32](r, y, items), func(i int) int32 {
		v, a := x[i], int32(0)
		for step := int32(0); step < 40 && v >= 0; step++ {
			switch v % 11 {
			case 0:
				a += v
				v = v/2 - 1
			case 1:
				a ^= v << 3
				v -= 7
			case 2:
				a = a*3 + 1
				v -= 2
			case 3:
				a -= was[i]
				v -= 5
				fallthrough
			case 4:
				a += 17
				v -= 3
			case 5:
				a = int32(bits.Reverse32(uint32(a)))
				v--
			case 6:
				v -= 9
				continue
			case 7:
				a = ^a
				v -= 4
			case 8:
				a |= 64
				v /= 3
			case 9:
				a /= 5
				v -= 11
			default:
				a ^= 0x5555
				v -= 6
			}
			a += step
		}
		return a
	})
}

func (r *rig) halves() {
	x := random(items, func(int) uint16 { return toHalf(r.rand.NormFloat64() * 4) })
	y := r.empty(2 * items)
	r.launch("halves", blocks, threads, 0, y, r.array(x), int32(items))
	round := func(v float64) float64 { return fromHalf(toHalf(v)) }
	want := func(i int) (a, b float64) {
		part := func(v, c float64) float64 { return round(round(v*1.5+c) + round(v*v)) }
		a, b = part(fromHalf(x[i]), -0.25), max(part(fromHalf(x[i+1]), 2), 0.5)
		if a > b {
			a = round(a - round(b/3))
		}
		return a, b
	}
	same(r, results[uint16](r, y, items), func(i int) uint16 {
		a, b := want(i &^ 1)
		if i%2 == 0 {
			return toHalf(-a)
		}
		if a < 0 {
			b++
		}
		return toHalf(b + math.RoundToEven(a))
	})
}
