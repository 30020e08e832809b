package interp

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
)

// specials are operands at which functions go wrong.
var specials = func() (bits []uint32) {
	for _, v := range []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 0x1p-149, -0x1p-149, 0x1p-126, math.MaxFloat32,
		-math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN(), 1 << 23, 1<<24 - 1, 1 << 31, -1 << 31, 1 << 32, 65504, 65520, 0x1p-24, 0x1p-25,
		89, -104, 128, -150, 0.35, 1e-4, 3, 16777216, 88.7, 0x1p-8, 10, -10, 65536, 1e10} {
		bits = append(bits, math.Float32bits(float32(v)))
	}
	return append(bits, 0, 1, 2, 31, 32, 33, 63, 64, 127, 128, 255, 256, 1<<31, 1<<31-1, 1<<31+1, 1<<32-1, 0x80808080, 0x7f7f7f7f)
}()

// operand returns random bits for a value of a type: half of them specials.
func operandBits(r *rand.Rand, t ir.Type) uint32 {
	var b uint32
	switch r.IntN(4) {
	case 0, 1:
		b = specials[r.IntN(len(specials))]
	case 2:
		b = math.Float32bits(float32(r.NormFloat64() * math.Exp(r.NormFloat64()*3)))
	default:
		b = r.Uint32()
	}
	switch t {
	case ir.Bool:
		return b & 1
	case ir.F16:
		return laneConvertF32F16(b, 0, 0, 0)
	}
	return b
}

// code is an instruction to test.
type code struct {
	c    ir.Code
	args []ir.Type
	out  ir.Type
	ulp  float64 // by which the result may differ
	want func(x [3]uint32) uint32
}

func (c *code) String() string { return fmt.Sprintf("%v/%v", c.c, c.args) }

func allCodes() (cs []code) {
	for _, c := range ir.Codes() {
		for _, t := range []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16} {
			plain := t
			if t == ir.F16 {
				plain = ir.F32
			}
			if elementwise[c][plain].lane == nil && c != ir.Select || c == ir.Shl || c == ir.Shr {
				continue
			}
			k := code{c: c, out: t}
			for range c.Arity() {
				k.args = append(k.args, t)
			}
			switch c {
			case ir.Eq, ir.Ne, ir.Lt, ir.Le:
				k.out = ir.Bool
			case ir.Select:
				k.args[0] = ir.Bool
			case ir.Ldexp:
				if t == ir.F16 {
					continue
				}
			}
			if c.Composite() && c != ir.Recip {
				k.ulp = 1
			}
			k.want = func(x [3]uint32) uint32 {
				v, _ := ir.Fold(c, k.out, t, x[0], x[1], x[2])
				f := math.Float32frombits
				if w := f(v); c == ir.Fma && w-w == 0 && w != 0 {
					// The result must be rounded only once, not to float64 first.
					s := exactFma(f(x[0]), f(x[1]), f(x[2]))
					if v = math.Float32bits(float32(s)); t == ir.F16 {
						v = math.Float32bits(ir.NearestHalf(s))
					}
				}
				return v
			}
			cs = append(cs, k)
		}
	}
	for _, t := range []ir.Type{ir.I32, ir.U32} {
		for _, c := range []ir.Code{ir.IDiv, ir.IMod, ir.CountOnes, ir.LeadingZeros, ir.TrailingZeros, ir.ReverseBits, ir.Shl, ir.Shr, ir.MulHigh} {
			k := code{c: c, args: []ir.Type{t, t}, out: t}
			switch c {
			case ir.CountOnes, ir.LeadingZeros, ir.TrailingZeros, ir.ReverseBits:
				k.args = k.args[:1]
			case ir.MulHigh:
				if t == ir.I32 {
					continue
				}
			}
			k.want = func(x [3]uint32) uint32 {
				if c == ir.Shl || c == ir.Shr {
					x[1] &= 31 // the count modulo 32, for any count
				}
				v, _ := ir.Fold(c, t, t, x[0], x[1], 0)
				return v
			}
			cs = append(cs, k)
		}
	}
	for _, from := range []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16} {
		for _, to := range []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16} {
			cs = append(cs, code{c: ir.Convert, args: []ir.Type{from}, out: to, want: func(x [3]uint32) uint32 {
				if from == to {
					return x[0]
				}
				v, _ := ir.Fold(ir.Convert, to, from, x[0], 0, 0)
				return v
			}})
		}
	}
	dot := func(x [3]uint32, signed bool) uint32 {
		s := int64(x[2])
		for k := range 4 {
			a, b := int64(uint8(x[0]>>(8*k))), int64(uint8(x[1]>>(8*k)))
			if signed {
				a, b = int64(int8(a)), int64(int8(b))
			}
			s += a * b
		}
		return uint32(s)
	}
	return append(cs,
		code{c: ir.Dot4I8, args: []ir.Type{ir.U32, ir.U32, ir.I32}, out: ir.I32, want: func(x [3]uint32) uint32 { return dot(x, true) }},
		code{c: ir.Dot4U8, args: []ir.Type{ir.U32, ir.U32, ir.U32}, out: ir.U32, want: func(x [3]uint32) uint32 { return dot(x, false) }})
}

// same reports whether got is as near to want as the code promises.
func (c *code) same(got, want uint32) bool {
	if got == want {
		return true
	}
	if c.out != ir.F32 && c.out != ir.F16 {
		return false
	}
	g, w := float64(math.Float32frombits(got)), float64(math.Float32frombits(want))
	if g != g || w != w {
		return g != g && w != w
	}
	if c.ulp == 0 {
		return false
	}
	_, e := math.Frexp(w)
	ulp := math.Ldexp(1, max(e-24, -149))
	if c.out == ir.F16 {
		ulp = math.Ldexp(1, max(e-11, -24))
	}
	if math.IsInf(w, 0) || math.IsInf(g, 0) {
		return false
	}
	return math.Abs(g-w) <= c.ulp*ulp && (g == 0 || w == 0 || (g > 0) == (w > 0))
}

// program returns a kernel that applies the code to elements of x, y and z; the
// operands in fixed are element 0 in all lanes.
func (c *code) program(fixed int) *asm {
	a := newAsm("code", 64, 1, 1)
	var bufs [3]uint32
	for i, n := range []string{"x", "y", "z"} {
		bufs[i] = a.buffer(n, ir.U32, 1, ir.ReadOnly)
	}
	out := a.buffer("out", ir.U32, 1, ir.WriteOnly)
	i := a.global()
	var args []ir.Value
	for k, t := range c.args {
		at := i
		if fixed>>k&1 != 0 {
			at = a.u(0)
		}
		v := a.load(bufs[k], at)
		switch t {
		case ir.Bool:
			v = a.opT(ir.Convert, ir.Bool, 1, v)
		case ir.F16:
			v = a.opT(ir.Convert, ir.F16, 1, a.opT(ir.Bitcast, ir.F32, 1, v))
		case ir.U32:
		default:
			v = a.opT(ir.Bitcast, t, 1, v)
		}
		args = append(args, v)
	}
	v := a.opT(c.c, c.out, 1, args...)
	switch c.out {
	case ir.Bool:
		v = a.opT(ir.Convert, ir.U32, 1, v)
	case ir.F16:
		v = a.opT(ir.Bitcast, ir.U32, 1, a.opT(ir.Convert, ir.F32, 1, v))
	case ir.U32:
	default:
		v = a.opT(ir.Bitcast, ir.U32, 1, v)
	}
	a.store(out, i, v)
	return a
}

func TestCodes(t *testing.T) {
	const n = 64 * 20
	r := testutil.Rand(t)
	for _, c := range allCodes() {
		t.Run(c.String(), func(t *testing.T) {
			for fixed := range 1 << len(c.args) {
				var in [3][]uint32
				for k := range in {
					in[k] = make([]uint32, n)
					for i := range in[k] {
						if k < len(c.args) {
							in[k][i] = operandBits(r, c.args[k])
						}
						if k == 1 && c.c == ir.Ldexp {
							in[k][i] = math.Float32bits(float32(r.IntN(601) - 300))
						}
					}
				}
				kernel := c.program(fixed).compile(t)
				for _, checked := range []bool{false, true} {
					got := make([]uint32, n)
					l := Launch{Grid: [3]uint32{n / 64, 1, 1}, Buffers: [][]byte{bytesOf(in[0]), bytesOf(in[1]), bytesOf(in[2]), bytesOf(got)}}
					if !checked {
						if err := kernel.Run(context.Background(), l); err != nil {
							t.Fatal(err)
						}
					} else if fs, err := kernel.Check(context.Background(), l, Checks{Subgroups: []int{32}, Schedules: []Schedule{Ascending}}); err != nil || len(fs) > 0 {
						t.Fatal(err, fs)
					}
					bad := 0
					for i := range got {
						var x [3]uint32
						for k := range c.args {
							x[k] = in[k][i]
							if fixed>>k&1 != 0 {
								x[k] = in[k][0]
							}
						}
						if want := c.want(x); !c.same(got[i], want) && bad < 3 {
							bad++
							t.Errorf("checked %v, fixed %b: %v(%#x %#x %#x) = %#x (%v), want %#x (%v)", checked, fixed, c.c, x[0], x[1], x[2],
								got[i], math.Float32frombits(got[i]), want, math.Float32frombits(want))
						}
					}
				}
			}
		})
	}
}

// exactFma returns a*b + c rounded to odd with 53 bits: the last bit is set if the result is inexact. Rounding
// it to fewer bits gives the same result as rounding the exact number.
func exactFma(a, b, c float32) float64 {
	x := new(big.Float).SetPrec(2000).SetFloat64(float64(a))
	x.Mul(x, new(big.Float).SetFloat64(float64(b)))
	x.Add(x, new(big.Float).SetFloat64(float64(c)))
	y := new(big.Float).SetMode(big.ToZero).SetPrec(53).Set(x)
	v, _ := y.Float64()
	if y.Cmp(x) != 0 {
		v = math.Float64frombits(math.Float64bits(v) | 1)
	}
	return v
}

// TestFma compares with exact arithmetic: rounding through float64 would be
// off in one of some hundred million random cases, so the cases are made to end
// halfway between two float32.
func TestFma(t *testing.T) {
	f := math.Float32frombits
	hard := 0
	for range 200000 {
		// a·b is tiny beside c, or ends near half of c's last place.
		c := f(rand.Uint32()&0x007fffff | uint32(100+rand.IntN(60))<<23)
		a := f(rand.Uint32()&0x00000fff<<11 | uint32(80+rand.IntN(60))<<23)
		_, e := math.Frexp(float64(c))
		half := math.Ldexp(1, e-25)
		b := float32(half / float64(a) * (1 + float64(rand.IntN(3)-1)*0x1p-22))
		if rand.IntN(4) == 0 {
			a, b, c = f(1<<23), f(uint32(110+rand.IntN(20))<<23|rand.Uint32()&0x7fffff), f(rand.Uint32()&0xffffff)
		}
		if rand.IntN(2) == 0 {
			c = -c
		}
		got, want := fma(a, b, c), float32(exactFma(a, b, c))
		if got != want {
			t.Fatalf("fma(%b, %b, %b) = %b, want %b", a, b, c, got, want)
		}
		if _, flag := sumOf(float64(a), float64(b), float64(c)); flag>>63 != 0 {
			hard++
		}
	}
	if hard < 1000 {
		t.Errorf("only %d hard cases", hard)
	}
}

func TestHalf(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		v := fromHalf(h)
		if v != v {
			if back := toHalf(v); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("NaN %#x came back as %#x", h, back)
			}
			continue
		}
		if back := toHalf(v); back != h {
			t.Fatalf("%#x is %v, which is %#x", h, v, back)
		}
		if r := roundHalf(v); r != v {
			t.Fatalf("%v is a half float and was rounded to %v", v, r)
		}
	}
}

// TestVectors runs the codes that combine and extract components of vectors.
func TestVectors(t *testing.T) {
	a := newAsm("vectors", 8, 1, 1)
	x := a.buffer("x", ir.F32, 4, ir.ReadOnly)
	y := a.buffer("y", ir.F32, 2, ir.WriteOnly)
	u := a.buffer("u", ir.U32, 1, ir.WriteOnly)
	h := a.buffer("h", ir.F16, 2, ir.ReadWrite)
	i := a.builtIn(ir.BuiltInLane)
	v := a.load(x, i)
	part := func(v ir.Value, k uint8) ir.Value {
		return a.add(ir.Instr{Code: ir.Extract, Type: a.p.Code[v].Type, Width: 1, Flag: k, Args: [3]ir.Value{v}})
	}
	swapped := a.opT(ir.Compose, ir.F32, 4, part(v, 3), part(v, 2), part(v, 1), part(v, 0))
	d := a.opT(ir.Dot, ir.F32, 1, v, swapped)
	s := a.opT(ir.Splat, ir.F32, 4, d)
	w := a.opT(ir.Mul, ir.F32, 4, s, swapped)
	pair := a.opT(ir.Compose, ir.F32, 2, part(w, 0), part(w, 3))
	a.store(y, i, pair)
	packed := a.opT(ir.PackHalf, ir.U32, 1, pair)
	a.store(u, i, packed)
	a.store(h, i, a.opT(ir.Convert, ir.F16, 2, a.opT(ir.UnpackHalf, ir.F32, 2, packed)))
	again := a.load(h, i)
	a.store(h, i, a.opT(ir.Add, ir.F16, 2, again, again))
	ints := a.opT(ir.Convert, ir.I32, 4, v)
	bytes := a.opT(ir.PackI8, ir.U32, 1, ints)
	back := a.opT(ir.UnpackI8, ir.I32, 4, bytes)
	low := a.opT(ir.UnpackU8, ir.U32, 4, bytes)
	sum := a.op(ir.Add, a.opT(ir.Bitcast, ir.U32, 1, part(back, 1)), part(low, 1))
	a.store(u, a.op(ir.Add, i, a.u(8)), sum)
	k := a.compile(t)

	in, out := make([]float32, 32), make([]float32, 16)
	for i := range in {
		in[i] = float32(rand.IntN(200) - 100)
	}
	words, halves := make([]uint32, 16), make([]uint16, 16)
	for _, checked := range []bool{false, true} {
		l := Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{bytesOf(in), bytesOf(out), bytesOf(words), bytesOf(halves)}}
		if !checked {
			if err := k.Run(context.Background(), l); err != nil {
				t.Fatal(err)
			}
		} else if fs, err := k.Check(context.Background(), l, Checks{}); err != nil || len(fs) > 0 {
			t.Fatal(err, fs)
		}
		for i := range 8 {
			v := in[4*i:][:4]
			d := v[0]*v[3] + v[1]*v[2] + v[2]*v[1] + v[3]*v[0]
			y0, y1 := d*v[3], d*v[0]
			if out[2*i] != y0 || out[2*i+1] != y1 {
				t.Fatalf("lane %d: %v, want %v %v", i, out[2*i:][:2], y0, y1)
			}
			if want := uint32(toHalf(y0)) | uint32(toHalf(y1))<<16; words[i] != want {
				t.Fatalf("lane %d: packed %#x, want %#x", i, words[i], want)
			}
			if want := toHalf(2 * fromHalf(toHalf(y0))); halves[2*i] != want {
				t.Fatalf("lane %d: half %#x, want %#x", i, halves[2*i], want)
			}
			b := uint8(int8(v[1]))
			if want := uint32(int32(int8(b))) + uint32(b); words[8+i] != want {
				t.Fatalf("lane %d: bytes %#x, want %#x", i, words[8+i], want)
			}
		}
	}
}

// TestEveryCode checks that the interpreter has a function for every code and types that package ir accepts.
func TestEveryCode(t *testing.T) {
	types := []ir.Type{ir.F32, ir.I32, ir.U32, ir.Bool, ir.F16}
	legal := 0
	for c := range 256 {
		for _, from := range types {
			for _, to := range types {
				for n := 1; n <= 3; n++ {
					a := newAsm("code", 1, 1, 1)
					v := a.bits(from, 0)
					in := ir.Instr{Code: ir.Code(c), Type: to, Width: 1}
					for k := range n {
						in.Args[k] = v
					}
					if in.Code == ir.Select {
						in.Args[0] = a.bits(ir.Bool, 0)
					}
					x := a.add(in)
					if _, k := in.Operands(); k != n || ir.Verify(&a.p) != nil {
						continue
					}
					a.set(a.sink(x), x)
					legal++
					a.compile(t)
					if in.Code.Pure() && !renames(&a.p, &in) && in.Code != ir.PackHalf {
						if f, _ := function(&a.p, x); f.lane == nil || f.plane == nil {
							t.Errorf("%v of %v to %v has no function", in.Code, from, to)
						}
					}
				}
			}
		}
	}
	if legal < 150 {
		t.Errorf("only %d combinations are legal", legal)
	}
}

// TestMulAdd runs a product and a sum, which share a loop and are rounded separately.
func TestMulAdd(t *testing.T) {
	a := newAsm("muladd", 64, 1, 1)
	x, y := a.buffer("x", ir.F32, 1, ir.ReadOnly), a.buffer("y", ir.F32, 1, ir.ReadWrite)
	i := a.global()
	v, w := a.load(x, i), a.load(y, i)
	a.store(y, i, a.op(ir.Add, w, a.op(ir.Mul, v, w)))
	in, out := random(640), random(640)
	want := make([]float32, len(in))
	for i := range want {
		p := in[i] * out[i]
		want[i] = out[i] + float32(p)
	}
	both(t, a.compile(t), Launch{Grid: [3]uint32{10, 1, 1}, Buffers: [][]byte{bytesOf(in), bytesOf(out)}}, func(mode string) {
		for i := range want {
			if out[i] != want[i] {
				t.Fatalf("%s: %v, want %v", mode, out[i], want[i])
			}
		}
	})
}
