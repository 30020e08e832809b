package emu

import (
	"math"
	"strconv"
)

// tests adds comparisons.
func (t table) tests() {
	integerTests[uint32, int32](t, 32)
	integerTests[uint64, int64](t, 64)
	integerTests[uint16, int16](t, 16)
	floatTests(t, "f32", 4, func(x uint32) float64 { return float64(f32(x)) })
	floatTests(t, "f64", 8, f64)
	floatTests(t, "f16", 2, fromHalf)
	floatTests(t, "bf16", 2, fromBrain)
	properties(t, "f32", 4, func(x uint64) float64 { return float64(f32(uint32(x))) }, 0x1p-126)
	properties(t, "f64", 8, f64, 0x1p-1022)
}

func integerTests[U uint16 | uint32 | uint64, S int16 | int32 | int64](t table, width int) {
	n, w := uint8(width/8), strconv.Itoa(width)
	for _, typ := range []string{".u", ".s", ".b"} {
		t.test("setp.eq"+typ+w, lanesTest(func(x, y U) bool { return x == y }), n)
		t.test("setp.ne"+typ+w, lanesTest(func(x, y U) bool { return x != y }), n)
	}
	t.test("setp.lt.u"+w, func(a, b *plane) (m uint32) {
		for i := range a {
			if a[i] < b[i] {
				m |= 1 << i
			}
		}
		return m
	}, n)
	t.test("setp.ge.u"+w, func(a, b *plane) (m uint32) {
		for i := range a {
			if a[i] >= b[i] {
				m |= 1 << i
			}
		}
		return m
	}, n)
	t.test("setp.le.u"+w, lanesTest(func(x, y U) bool { return x <= y }), n)
	t.test("setp.gt.u"+w, lanesTest(func(x, y U) bool { return x > y }), n)
	t.test("setp.lt.s"+w, lanesTest(func(x, y U) bool { return S(x) < S(y) }), n)
	t.test("setp.le.s"+w, lanesTest(func(x, y U) bool { return S(x) <= S(y) }), n)
	t.test("setp.gt.s"+w, lanesTest(func(x, y U) bool { return S(x) > S(y) }), n)
	t.test("setp.ge.s"+w, lanesTest(func(x, y U) bool { return S(x) >= S(y) }), n)
	t["setp.lo.u"+w], t["setp.ls.u"+w] = t["setp.lt.u"+w], t["setp.le.u"+w]
	t["setp.hi.u"+w], t["setp.hs.u"+w] = t["setp.gt.u"+w], t["setp.ge.u"+w]
}

func floatTests[A word](t table, typ string, n uint8, from func(A) float64) {
	add := func(name string, f func(x, y float64) bool) {
		t.test("setp."+name+"."+typ, lanesTest(func(x, y A) bool { return f(from(x), from(y)) }), n)
		// The forms with u are also true if an operand is NaN.
		if name != "nan" && name != "num" {
			t.test("setp."+name+"u."+typ, lanesTest(func(x, y A) bool {
				a, b := from(x), from(y)
				return a != a || b != b || f(a, b)
			}), n)
		}
	}
	add("eq", func(x, y float64) bool { return x == y })
	add("ne", func(x, y float64) bool { return x < y || x > y })
	add("lt", func(x, y float64) bool { return x < y })
	add("le", func(x, y float64) bool { return x <= y })
	add("gt", func(x, y float64) bool { return x > y })
	add("ge", func(x, y float64) bool { return x >= y })
	add("nan", func(x, y float64) bool { return x != x || y != y })
	add("num", func(x, y float64) bool { return x == x && y == y })
}

// properties adds testp, which tests the class of a number.
func properties(t table, typ string, n uint8, from func(uint64) float64, normal float64) {
	for name, is := range map[string]func(x float64) bool{
		"finite":     func(x float64) bool { return x-x == 0 },
		"infinite":   func(x float64) bool { return math.IsInf(x, 0) },
		"number":     func(x float64) bool { return x == x },
		"notanumber": func(x float64) bool { return x != x },
		"normal":     func(x float64) bool { return x-x == 0 && math.Abs(x) >= normal },
		"subnormal":  func(x float64) bool { return x != 0 && math.Abs(x) < normal },
	} {
		t["testp."+name+"."+typ] = operation{bytes: [4]uint8{predicate, n}, test: func(a, _ *plane) (m uint32) {
			for i := range a {
				if is(from(a[i])) {
					m |= 1 << i
				}
			}
			return m
		}}
	}
}

// floatTo gives the formats of floating-point numbers.
type floatFormat struct {
	name string
	n    uint8
	from func(uint64) float64
	to   func(float64) uint64
}

var floatFormats = []floatFormat{
	{"f64", 8, f64, b64},
	{"f32", 4, func(x uint64) float64 { return float64(f32(uint32(x))) }, func(x float64) uint64 { return uint64(b32(float32(x))) }},
	{"f16", 2, func(x uint64) float64 { return fromHalf(uint16(x)) }, func(x float64) uint64 { return uint64(toHalf(x)) }},
	{"bf16", 2, func(x uint64) float64 { return fromBrain(uint16(x)) }, func(x float64) uint64 { return uint64(toBrain(x)) }},
}

// formatOf maps the names of formats to formats.
var formatOf = func() map[string]floatFormat {
	m := map[string]floatFormat{}
	for _, f := range floatFormats {
		m[f.name] = f
	}
	return m
}()

var roundings = []struct {
	name string
	f    func(float64) float64
}{
	{"rzi", math.Trunc}, {"rni", math.RoundToEven}, {"rmi", math.Floor}, {"rpi", math.Ceil},
}

// conversions adds cvt and similar instructions.
func (t table) conversions() {
	t.floatConversions()
	t.shortConversions()
	// Between integers and floating-point numbers, and between integers.
	fromInteger[uint8](t, "u8", 4)
	fromInteger[int8](t, "s8", 4)
	fromInteger[uint16](t, "u16", 2)
	fromInteger[int16](t, "s16", 2)
	fromInteger[uint32](t, "u32", 4)
	fromInteger[int32](t, "s32", 4)
	fromInteger[uint64](t, "u64", 8)
	fromInteger[int64](t, "s64", 8)
}

// floatConversions adds the conversions between floating-point formats.
func (t table) floatConversions() {
	for _, s := range floatFormats {
		for _, d := range floatFormats {
			convert := func(d1, a, _, _ *plane) {
				for i := range d1 {
					d1[i] = d.to(s.from(a[i]))
				}
			}
			if s.name == d.name {
				for _, r := range roundings {
					t.add("cvt."+r.name+"."+d.name+"."+s.name, func(d1, a, _, _ *plane) {
						for i := range d1 {
							d1[i] = d.to(r.f(s.from(a[i])))
						}
					}, d.n, s.n)
				}
				continue
			}
			t.add("cvt.rn."+d.name+"."+s.name, convert, d.n, s.n)
			if d.n > s.n {
				t.add("cvt."+d.name+"."+s.name, convert, d.n, s.n)
			}
		}
	}
}

// shortConversions adds the conversions of float32 to formats with fewer bits, alone and in pairs.
func (t table) shortConversions() {
	t.add("cvt.rz.bf16.f32", lanes1(func(x uint32) uint16 {
		if f := f32(x); f != f {
			return nan16
		}
		return uint16(x >> 16)
	}), 2, 4)
	t.add("cvt.rna.tf32.f32", lanes1(func(x uint32) uint32 {
		if x&0x7f800000 == 0x7f800000 {
			return b32(f32(x)) // infinite or NaN
		}
		return (x + 1<<12) &^ (1<<13 - 1)
	}), 4, 4)
	t.add("cvt.rn.tf32.f32", lanes1(func(x uint32) uint32 {
		if x&0x7f800000 == 0x7f800000 {
			return b32(f32(x))
		}
		return (x + 1<<12 - 1 + x>>13&1) &^ (1<<13 - 1)
	}), 4, 4)
	for _, f := range floatFormats[2:] {
		pack := func(high, low uint32) uint32 {
			return uint32(f.to(float64(f32(low)))) | uint32(f.to(float64(f32(high))))<<16
		}
		t.add("cvt.rn."+f.name+"x2.f32", lanes2(pack), 4, 4, 4)
		t.add("cvt.rn.relu."+f.name+"x2.f32", lanes2(func(high, low uint32) uint32 {
			return pack(b32(relu(f32(high))), b32(relu(f32(low))))
		}), 4, 4, 4)
	}
}

func relu(x float32) float32 {
	if x < 0 {
		return 0
	}
	return x
}

type integerType interface {
	uint8 | int8 | uint16 | int16 | uint32 | int32 | uint64 | int64
}

func fromInteger[S integerType](t table, src string, n uint8) {
	for _, f := range []struct {
		name string
		n    uint8
		to   func(S) uint64
	}{
		{"f64", 8, func(x S) uint64 { return b64(float64(x)) }},
		{"f32", 4, func(x S) uint64 { return uint64(b32(float32(x))) }},
		{"f16", 2, func(x S) uint64 { return uint64(toHalf(float64(x))) }},
		{"bf16", 2, func(x S) uint64 { return uint64(toBrain(oddFloat(x))) }},
	} {
		t.add("cvt.rn."+f.name+"."+src, func(d, a, _, _ *plane) {
			for i := range d {
				d[i] = f.to(S(a[i]))
			}
		}, f.n, n)
	}
	toInteger[S, uint8](t, "u8", src, 4, n)
	toInteger[S, int8](t, "s8", src, 4, n)
	toInteger[S, uint16](t, "u16", src, 2, n)
	toInteger[S, int16](t, "s16", src, 2, n)
	toInteger[S, uint32](t, "u32", src, 4, n)
	toInteger[S, int32](t, "s32", src, 4, n)
	toInteger[S, uint64](t, "u64", src, 8, n)
	toInteger[S, int64](t, "s64", src, 8, n)
	least, most := bounds[S]()
	for _, f := range floatFormats {
		for _, r := range roundings {
			t.add("cvt."+r.name+"."+src+"."+f.name, func(d, a, _, _ *plane) {
				for i := range d {
					x := r.f(f.from(a[i]))
					var v S
					switch {
					case x != x:
					case x < float64(least):
						v = least
					case x >= float64(most):
						v = most
					default:
						v = S(x)
					}
					d[i] = extend(v, n)
				}
			}, n, f.n)
		}
	}
}

// oddFloat converts with rounding to odd, for values that are rounded again.
func oddFloat[S integerType](x S) float64 {
	f := float64(x)
	if math.Abs(f) < 1<<53 {
		return f
	}
	// x has 64 bits: clear the lowest 17, but set bit 16 if any of them was set.
	neg := x < 0
	u := uint64(x)
	if neg {
		u = -u
	}
	low := uint64(0)
	if u&0xffff != 0 {
		low = 0x10000
	}
	f = float64(u&^0x1ffff | u&0x10000 | low)
	if neg {
		return -f
	}
	return f
}

// extend returns the bits of a register of n bytes that holds v.
func extend[S integerType](v S, n uint8) uint64 {
	return uint64(v) & (1<<(8*n-1)<<1 - 1)
}

func bounds[S integerType]() (least, most S) {
	if most = ^S(0); most > 0 {
		return 0, most
	}
	// S is signed: the least number has only the sign bit set.
	for least = 1; least > 0; least <<= 1 {
	}
	return least, ^least
}

// toInteger adds a conversion between integers, which truncates or extends, and its
// form .sat, which limits numbers to the range of the result.
func toInteger[S, D integerType](t table, dst, src string, dn, sn uint8) {
	if dst != src {
		t.add("cvt."+dst+"."+src, func(d, a, _, _ *plane) {
			for i := range d {
				d[i] = extend(D(S(a[i])), dn)
			}
		}, dn, sn)
	}
	least, most := bounds[D]()
	t.add("cvt.sat."+dst+"."+src, func(d, a, _, _ *plane) {
		for i := range d {
			x := S(a[i])
			v := D(x)
			switch {
			case x < 0 && (least == 0 || int64(x) < int64(least)):
				v = least
			case x > 0 && uint64(x) > uint64(most):
				v = most
			}
			d[i] = extend(v, dn)
		}
	}, dn, sn)
}
