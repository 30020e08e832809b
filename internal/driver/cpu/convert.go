package cpu

import (
	"math"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// The kernels below move and convert elements between streams and registers.

func floats(p *float32, n int) []float32 { return unsafe.Slice(p, n) }

// halves returns the n 16-bit elements at p.
func halves(p *float32, n int) []uint16 { return unsafe.Slice((*uint16)(unsafe.Pointer(p)), n) }

// fill sets dst to the number at p.
func fill(dst, _, _, _ *float32, n int, p *float32) {
	d, v := words(dst, n), words(p, 1)[0]
	for i := range d {
		d[i] = v
	}
}

// move copies x to dst.
func move(dst, x, _, _ *float32, n int, _ *float32) { copy(floats(dst, n), floats(x, n)) }

// tile repeats the elements of x, as many as the bits at p say, over dst: n
// elements and one period more.
func tile(dst, x, _, _ *float32, n int, p *float32) {
	period := int(math.Float32bits(*p))
	d := floats(dst, n+period)
	copy(d, floats(x, period))
	for have := period; have < len(d); have *= 2 {
		copy(d[have:], d[:have])
	}
}

// stretch writes each element of x as often as the bits at p say.
func stretch(dst, x, _, _ *float32, n int, p *float32) {
	run := int(math.Float32bits(*p))
	d, k := words(dst, n), 0
	s := words(x, (n+run-1)/run)
	for len(d) >= run {
		v := s[k]
		k++
		for i := range d[:run] {
			d[i] = v
		}
		d = d[run:]
	}
	for i := range d {
		d[i] = s[k]
	}
}

// widen returns the kernel that reads elements of type t into a register.
func widen(t op.DType) kernel {
	if t == op.F16 {
		return widenF16
	}
	return widenBF16
}

// narrow returns the kernel that rounds a register to elements of type t.
func narrow(t op.DType) kernel {
	if t == op.F16 {
		return narrowF16
	}
	return narrowBF16
}

func widenF16(dst, x, _, _ *float32, n int, _ *float32) {
	d := floats(dst, n)
	for i, v := range halves(x, n) {
		d[i] = fromF16(v)
	}
}

func widenBF16(dst, x, _, _ *float32, n int, _ *float32) {
	d := floats(dst, n)
	for i, v := range halves(x, n) {
		d[i] = op.BF16ToFloat32(v)
	}
}

func narrowF16(dst, x, _, _ *float32, n int, _ *float32) {
	d := halves(dst, n)
	for i, v := range floats(x, n) {
		d[i] = toF16(v)
	}
}

func narrowBF16(dst, x, _, _ *float32, n int, _ *float32) {
	d := halves(dst, n)
	for i, v := range floats(x, n) {
		d[i] = op.BF16FromFloat32(v)
	}
}

// fromF16 returns the value of binary16 bits: as op.F16ToFloat32, but the
// multiplication that moves the exponent normalises subnormals as well.
func fromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	w := uint32(h&0x7fff) << 13
	if h&0x7c00 == 0x7c00 {
		return math.Float32frombits(sign | w | 0x7f800000)
	}
	return math.Float32frombits(sign | math.Float32bits(math.Float32frombits(w)*0x1p112))
}

// toF16 returns the bits of the binary16 nearest to v, the even one of two: as
// op.F16FromFloat32.
func toF16(v float32) uint16 {
	b := math.Float32bits(v)
	sign, a := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case a > 0x7f800000: // NaN
		return sign | 0x7e00 | uint16(a>>13)&0x3ff
	case a >= 0x47800000: // 2^16 and more
		return sign | 0x7c00
	case a < 0x38800000: // below 2^-14
		// The unit in the last place of numbers from 0.5 on is that of
		// subnormal halves: the addition rounds.
		return sign | uint16(math.Float32bits(math.Float32frombits(a)+0.5)-0x3f000000)
	}
	return sign | uint16((a+0xfff+a>>13&1-112<<23)>>13)
}

// rounded returns the kernel that rounds to t and stays in a register.
func rounded(t op.DType) kernel {
	if t == op.F16 {
		return func(dst, x, _, _ *float32, n int, _ *float32) {
			d := floats(dst, n)
			for i, v := range floats(x, n) {
				d[i] = fromF16(toF16(v))
			}
		}
	}
	return func(dst, x, _, _ *float32, n int, _ *float32) {
		d := floats(dst, n)
		for i, v := range floats(x, n) {
			d[i] = op.BF16ToFloat32(op.BF16FromFloat32(v))
		}
	}
}

// casts are the conversions between registers of different types, by value.
var casts = map[[2]op.DType]kernel{}

func init() {
	regs := []op.DType{op.F32, op.I32, op.U32, op.Bool}
	for _, f := range regs {
		for _, t := range regs {
			if f != t {
				casts[[2]op.DType{f, t}] = converter(f, t)
			}
		}
	}
}

func converter(from, to op.DType) kernel {
	f, t := op.Register(from), op.Register(to)
	return func(dst, x, _, _ *float32, n int, _ *float32) {
		d, s := words(dst, n), words(x, n)
		for i, b := range s {
			v := numeral(b, f)
			switch {
			case to == op.F32:
			case from == op.F32 || to == op.Bool:
				v = to.Round(v)
			}
			d[i] = bitsOf(v, t)
		}
	}
}
