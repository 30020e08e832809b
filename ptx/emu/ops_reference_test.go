package emu

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// reference returns a matcher for the results of an instruction.
func reference(in ptx.Instruction, x [3]uint64) (matcher, bool) {
	parts := strings.Split(in.Text, ".")
	op, typ := parts[0], parts[len(parts)-1]
	if op == "cvt" || op == "mov" || op == "selp" {
		return moveReference(in, parts, x)
	}
	if base, two := strings.CutSuffix(typ, "x2"); two {
		half := in
		half.Text = strings.TrimSuffix(in.Text, "x2")
		half.Types = [4]string{}
		for i, t := range in.Types {
			half.Types[i] = strings.TrimSuffix(t, "x2")
		}
		_ = base
		low, ok := reference(half, [3]uint64{x[0] & 0xffff, x[1] & 0xffff, x[2] & 0xffff})
		high, _ := reference(half, [3]uint64{x[0] >> 16, x[1] >> 16, x[2] >> 16})
		return func(got uint64) bool { return low(got&0xffff) && high(got>>16) }, ok
	}
	if f, ok := formats[typ]; ok {
		return floatReference(f, op, parts[1:len(parts)-1], x)
	}
	return integerReference(op, parts[1:len(parts)-1], typ, in, x)
}

// floatOperands are the operands of an instruction on floating-point numbers.
type floatOperands struct {
	format
	mods    []string
	bits    [3]uint64
	x, y, z float64
	mode    big.RoundingMode
	approx  float64 // the relative error of results that are not rounded exactly
}

func (c *floatOperands) has(mod string) bool { return slices.Contains(c.mods, mod) }

func floatReference(f format, op string, mods []string, bitsOf [3]uint64) (matcher, bool) {
	c := &floatOperands{format: f, mods: mods, bits: bitsOf, x: f.from(bitsOf[0]), y: f.from(bitsOf[1]), z: f.from(bitsOf[2]), mode: big.ToNearestEven}
	if c.has("ftz") {
		for _, v := range []*float64{&c.x, &c.y, &c.z} {
			if math.Abs(*v) < 0x1p-126 {
				*v = math.Copysign(0, *v)
			}
		}
	}
	for name, m := range map[string]big.RoundingMode{"rz": big.ToZero, "rm": big.ToNegativeInf, "rp": big.ToPositiveInf} {
		if c.has(name) {
			c.mode = m
		}
	}
	c.approx = map[int]float64{2: 0x1p-9, 4: 0x1p-21, 8: 0x1p-20}[f.bytes]
	if op == "setp" {
		return c.compare()
	}
	of, ok := floatOps[op]
	if !ok {
		return nil, false
	}
	return of(c), true
}

// floatOps are the references of instructions with one result.
var floatOps = map[string]func(c *floatOperands) matcher{
	"add":      func(c *floatOperands) matcher { return c.same(c.fma(c.x, 1, c.y, c.mode)) },
	"sub":      func(c *floatOperands) matcher { return c.same(c.fma(c.x, 1, -c.y, c.mode)) },
	"mul":      (*floatOperands).product,
	"fma":      (*floatOperands).fused,
	"div":      (*floatOperands).quotient,
	"rcp":      (*floatOperands).reciprocal,
	"sqrt":     (*floatOperands).root,
	"rsqrt":    (*floatOperands).reciprocalRoot,
	"ex2":      (*floatOperands).power,
	"lg2":      func(c *floatOperands) matcher { return c.within(math.Log2(c.x), c.approx, 0x1p-22) },
	"sin":      func(c *floatOperands) matcher { return c.within(math.Sin(c.x), c.approx, 0x1p-20) },
	"cos":      func(c *floatOperands) matcher { return c.within(math.Cos(c.x), c.approx, 0x1p-20) },
	"tanh":     func(c *floatOperands) matcher { return c.within(math.Tanh(c.x), 0x1p-7, 0x1p-10) },
	"min":      func(c *floatOperands) matcher { return c.extreme(math.Min) },
	"max":      func(c *floatOperands) matcher { return c.extreme(math.Max) },
	"neg":      func(c *floatOperands) matcher { return c.same(-c.x) },
	"abs":      func(c *floatOperands) matcher { return c.same(math.Abs(c.x)) },
	"copysign": func(c *floatOperands) matcher { return c.same(math.Copysign(c.y, math.Copysign(1, c.from(c.bits[0])))) },
}

// rounded accepts v, which was computed in float64 from short numbers, rounded once.
func (c *floatOperands) rounded(v float64) matcher {
	if c.bytes == 8 || v != v || math.IsInf(v, 0) || v == 0 {
		return c.same(v)
	}
	return c.same(c.round(new(big.Float).SetPrec(5000).SetFloat64(v), c.mode))
}

// extreme accepts the minimum or maximum.
func (c *floatOperands) extreme(of func(x, y float64) float64) matcher {
	x, y := c.x, c.y
	switch {
	case x != x && y != y || c.has("NaN") && (x != x || y != y):
		return c.same(math.NaN())
	case x != x:
		return c.same(y)
	case y != y:
		return c.same(x)
	}
	return c.same(of(x, y))
}

func (c *floatOperands) product() matcher {
	x, y := c.x, c.y
	p := c.fma(x, y, 0, c.mode)
	if p == 0 {
		p = math.Copysign(0, math.Copysign(1, x)*math.Copysign(1, y))
	}
	if p != p || math.IsInf(x, 0) || math.IsInf(y, 0) {
		p = x * y
	}
	return c.same(p)
}

func (c *floatOperands) fused() matcher {
	v := c.fma(c.x, c.y, c.z, c.mode)
	if c.has("sat") && !(v > 0 && v < 1) {
		if v = max(min(v, 1), 0); v != v {
			v = 0
		}
		v = math.Abs(v)
	}
	return c.same(v)
}

func (c *floatOperands) quotient() matcher {
	if c.has("rn") {
		return c.rounded(c.x / c.y)
	}
	if math.Abs(c.y) > 0x1p126 || math.Abs(c.y) < 0x1p-126 {
		return func(uint64) bool { return true } // has no stated value
	}
	return c.within(float64(float32(c.x/c.y)), c.approx, 0)
}

func (c *floatOperands) reciprocal() matcher {
	if c.has("rn") {
		return c.rounded(1 / c.x)
	}
	v := float64(float32(1 / c.x))
	if c.has("ftz") && math.Abs(v) < 0x1p-126 {
		v = math.Copysign(0, v)
	}
	return c.within(v, c.approx, 0)
}

func (c *floatOperands) root() matcher {
	if c.has("rn") {
		return c.rounded(math.Sqrt(c.x))
	}
	return c.within(math.Sqrt(c.x), c.approx, 0)
}

func (c *floatOperands) reciprocalRoot() matcher {
	v := 1 / math.Sqrt(c.x)
	if c.bytes == 8 && math.Abs(c.x) < 0x1p-1022 {
		v = math.Copysign(math.Inf(1), c.x)
	}
	return c.within(v, c.approx, 0)
}

func (c *floatOperands) power() matcher {
	v := math.Exp2(c.x)
	if c.bytes < 8 && v > math.Ldexp(2, c.most) {
		v = math.Inf(1)
	}
	if c.bytes == 2 && v > 65519 && c.most == 15 {
		v = math.Inf(1)
	}
	return c.within(v, c.approx, math.Ldexp(1, c.least))
}

// compare is the reference of setp: only neu and nan are true of a NaN.
func (c *floatOperands) compare() (matcher, bool) {
	x, y := c.x, c.y
	less, equal, un := x < y, x == y, x != x || y != y
	v, ok := map[string]bool{"eq": equal, "lt": less, "le": less || equal, "gt": y < x, "ge": y <= x, "neu": !equal, "nan": un,
		"ne": !equal && !un}[c.mods[0]]
	return exactly(uint64(b2u(v))), ok
}

// moveReference covers conversions and moves.
func moveReference(in ptx.Instruction, parts []string, x [3]uint64) (matcher, bool) {
	switch {
	case parts[0] == "selp":
		if x[2] != 0 {
			return exactly(x[0]), true
		}
		return exactly(x[1]), true
	case parts[0] == "mov" && in.Types[2] == "":
		return exactly(x[0]), true
	case parts[0] == "mov": // pack and unpack
		n := 16
		if in.Text == "mov.b64" {
			n = 32
		}
		if in.Types[1] == in.Types[2] {
			return exactly(x[0] | x[1]<<n), true
		}
		return exactly(x[0] & (1<<n - 1)), true
	}
	dst, src := parts[len(parts)-2], parts[len(parts)-1]
	d, toFloat := formats[dst]
	s, fromFloat := formats[src]
	num := new(big.Float).SetPrec(5000)
	v := 0.0
	switch {
	case fromFloat:
		if v = s.from(x[0]); v == v && !math.IsInf(v, 0) {
			num.SetFloat64(v)
		}
	case src[0] == 's':
		n := 64 - atoi(src[1:])
		num.SetInt64(int64(x[0]<<n) >> n)
		v = 1
	default:
		n := 64 - atoi(src[1:])
		num.SetUint64(x[0] << n >> n)
		v = 1
	}
	special := fromFloat && (v != v || math.IsInf(v, 0) || v == 0)
	if two, ok := strings.CutSuffix(dst, "x2"); ok {
		h := in
		h.Text = "cvt.rn." + two + ".f32"
		high, _ := moveReference(h, strings.Split(h.Text, "."), [3]uint64{x[0]})
		low, _ := moveReference(h, strings.Split(h.Text, "."), [3]uint64{x[1]})
		return func(got uint64) bool { return low(got&0xffff) && high(got>>16) }, true
	}
	if dst == "tf32" {
		f := formats["f32"]
		if special {
			return f.same(v), true
		}
		// To nearest, ties away: half a unit more, then towards 0.
		unit := math.Ldexp(1, max(num.MantExp(nil)-11, -126-10))
		r := math.Trunc(math.Abs(v)/unit+0.5) * unit
		if r > math.MaxFloat32 {
			r = math.Inf(1)
		}
		return f.same(math.Copysign(r, v)), true
	}
	whole := func(mode string, v float64) float64 {
		switch mode {
		case "rzi":
			return math.Trunc(v)
		case "rmi":
			return math.Floor(v)
		case "rpi":
			return math.Ceil(v)
		}
		return math.RoundToEven(v)
	}
	if toFloat {
		if strings.HasSuffix(parts[1], "i") {
			return d.same(whole(parts[1], v)), true
		}
		if special {
			return d.same(v), true
		}
		return d.same(d.round(num, big.ToNearestEven)), true
	}
	n := atoi(dst[1:])
	mask := uint64(math.MaxUint64) >> (64 - n)
	if !fromFloat {
		if dst[0] == 's' || src[0] == 's' { // the sign goes on
			b := 64 - atoi(src[1:])
			if src[0] == 's' {
				return exactly(uint64(int64(x[0]<<b)>>b) & mask), true
			}
		}
		b := 64 - atoi(src[1:])
		return exactly(x[0] << b >> b & mask), true
	}
	lo, hi := new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(n)), big.NewInt(1))
	if dst[0] == 's' {
		hi.Rsh(hi, 1)
		lo.Sub(new(big.Int).Neg(hi), big.NewInt(1))
	}
	r := new(big.Int)
	switch v = whole(parts[1], v); {
	case v != v:
	case math.IsInf(v, 1):
		r = hi
	case math.IsInf(v, -1):
		r = lo
	default:
		big.NewFloat(v).Int(r)
		if r.Cmp(lo) < 0 {
			r = lo
		} else if r.Cmp(hi) > 0 {
			r = hi
		}
	}
	return exactly(new(big.Int).And(r, new(big.Int).SetUint64(mask)).Uint64()), true
}

// integerReference computes with big integers.
func integerReference(op string, mods []string, typ string, in ptx.Instruction, x [3]uint64) (matcher, bool) {
	n := 32
	if strings.HasSuffix(typ, "64") {
		n = 64
	}
	signed := typ[0] == 's'
	num := func(bits uint64, typ string) *big.Int {
		if strings.HasPrefix(typ, "S") || signed && typ != "U32" && typ != "U64" {
			if strings.HasSuffix(typ, "64") {
				return big.NewInt(int64(bits))
			}
			return big.NewInt(int64(int32(bits)))
		}
		return new(big.Int).SetUint64(bits)
	}
	a, b, c := num(x[0], in.Types[1]), num(x[1], in.Types[2]), num(x[2], in.Types[3])
	result := n
	if slices.Contains(mods, "wide") {
		result = 64
	}
	wrap := func(v *big.Int) (matcher, bool) {
		m := new(big.Int).Lsh(big.NewInt(1), uint(result))
		return exactly(new(big.Int).Mod(v, m).Uint64()), true
	}
	r := new(big.Int)
	count := uint(min(x[1], 10000))
	u := x[0]
	switch op {
	case "add":
		return wrap(r.Add(a, b))
	case "sub":
		return wrap(r.Sub(a, b))
	case "mul":
		r.Mul(a, b)
		if slices.Contains(mods, "hi") {
			r.Rsh(r, uint(n))
		}
		return wrap(r)
	case "mad":
		return wrap(r.Add(r.Mul(a, b), c))
	case "div", "rem":
		if b.Sign() == 0 {
			return func(uint64) bool { return true }, true // the result is undefined, but the instruction must not fail
		}
		q, m := new(big.Int).QuoRem(a, b, new(big.Int))
		if op == "rem" {
			q = m
		}
		return wrap(q)
	case "min", "max":
		if (a.Cmp(b) < 0) == (op == "min") {
			return wrap(a)
		}
		return wrap(b)
	case "neg":
		return wrap(r.Neg(a))
	case "abs":
		return wrap(r.Abs(a))
	case "and", "or", "xor", "not":
		if typ == "pred" {
			result = 1
		}
		switch op {
		case "and":
			return wrap(r.And(a, b))
		case "or":
			return wrap(r.Or(a, b))
		case "xor":
			return wrap(r.Xor(a, b))
		}
		return wrap(r.Not(a))
	case "shl":
		return wrap(r.Lsh(a, count))
	case "shr":
		return wrap(r.Rsh(a, count))
	case "popc":
		return exactly(uint64(strings.Count(fmt.Sprintf("%b", u), "1"))), true
	case "clz":
		return exactly(uint64(n - a.BitLen())), true
	case "brev":
		for i := range n {
			r.SetBit(r, n-1-i, a.Bit(i))
		}
		return wrap(r)
	case "bfind":
		return exactly(uint64(uint32(a.BitLen() - 1))), true
	case "bfe":
		return wrap(extracted(x, n, signed))
	case "prmt":
		return exactly(permuted(x)), true
	case "shf":
		v := bits.RotateLeft64(x[1]<<32|x[0], 0)
		if mods[0] == "l" {
			return exactly(v << (x[2] & 31) >> 32), true
		}
		return exactly(v >> (x[2] & 31) & math.MaxUint32), true
	case "lop3": // 0xe8 is the majority
		return exactly(x[0]&x[1] | x[1]&x[2] | x[0]&x[2]), true
	case "setp":
		cmp := a.Cmp(b)
		v, ok := map[string]bool{"eq": cmp == 0, "ne": cmp != 0, "lt": cmp < 0, "le": cmp <= 0, "gt": cmp > 0, "ge": cmp >= 0}[mods[0]]
		return exactly(uint64(b2u(v))), ok
	case "dp4a":
		return wrap(r.Add(bytesDot(x, mods[0][0] == 's', signed), c))
	}
	return nil, false
}

// extracted is the reference of bfe on n bits.
func extracted(x [3]uint64, n int, signed bool) *big.Int {
	r := new(big.Int)
	at, k := int(x[1]&0xff), int(x[2]&0xff)
	for i := range n {
		switch {
		case i < k && at+i < n:
			r.SetBit(r, i, uint(x[0]>>(at+i)&1))
		case signed && k > 0:
			r.SetBit(r, i, uint(x[0]>>min(at+k-1, n-1)&1))
		}
	}
	return r
}

// permuted is the reference of prmt.
func permuted(x [3]uint64) uint64 {
	var all [8]byte
	for i := range 4 {
		all[i], all[4+i] = byte(x[0]>>(8*i)), byte(x[1]>>(8*i))
	}
	v := uint64(0)
	for i := range 4 {
		s := x[2] >> (4 * i) & 15
		b := all[s&7]
		if s >= 8 {
			if b >= 128 {
				b = 255
			} else {
				b = 0
			}
		}
		v |= uint64(b) << (8 * i)
	}
	return v
}

// bytesDot is the dot product of dp4a: the bytes of either operand may be signed.
func bytesDot(x [3]uint64, first, second bool) *big.Int {
	r := new(big.Int)
	for i := range 4 {
		p, q := int64(x[0]>>(8*i)&255), int64(x[1]>>(8*i)&255)
		if first {
			p = int64(int8(p))
		}
		if second {
			q = int64(int8(q))
		}
		r.Add(r, big.NewInt(p*q))
	}
	return r
}
