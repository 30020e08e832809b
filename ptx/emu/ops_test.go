package emu

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// lacking lists the instructions of the builder that have no semantics here.
var lacking = []string{}

// TestSupports holds that every other instruction has some.
func TestSupports(t *testing.T) {
	for _, in := range ptx.Instructions() {
		name := in.Text
		if in.Memory {
			name += ".f32"
		}
		name = strings.Replace(name, "$n", "64", 1)
		if got, want := Supports(name), !slices.Contains(lacking, in.Text); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, name := range []string{"", "add", "add.f33", "ld.global", "bra.x.y", "mma.sync", "nothing.at.all", "ld.elsewhere.f32", "shfl.sync.bfly.b64"} {
		if name != "bra.x.y" && Supports(name) {
			t.Errorf("%q is supported", name)
		}
	}
}

// special values of the types, as bits.
var specialValues = func() map[string][]uint64 {
	ints := []uint64{0, 1, 2, 7, 31, 32, 33, 255, 0x8000, 0xffff, 0x12345678, 0x7fffffff, 0x80000000, 0x80000001, 0xfffffff9, 0xffffffff}
	long := append(slices.Clone(ints), 63, 64, 65, 1<<32, 1<<53+1, 1<<63-1, 1<<63, 1<<63+1, 0xfedcba9876543210, math.MaxUint64)
	var f32s, f64s []uint64
	for _, v := range []float64{0, 1, 1.5, 0.1, 2.5, 3.5, 0.3, 1e10, 0x1p31, 0x1p32, 0x1p63, 0x1p64, 1 + 0x1p-23, 0x1p-126, 0x1p-149, 0x1.fffffcp-127, math.MaxFloat32, 0x1p126, 0x1p127, math.Inf(1), math.Pi, 1023.75} {
		for _, s := range []float64{v, -v} {
			f32s = append(f32s, uint64(math.Float32bits(float32(s))))
			f64s = append(f64s, math.Float64bits(s))
		}
	}
	f32s = append(f32s, 0x7fc00000, 0xffc00001)
	f64s = append(f64s, math.Float64bits(math.NaN()), 1, 1<<52, 1<<52-1, math.Float64bits(math.MaxFloat64), math.Float64bits(-0x1p-1074))
	f16s := []uint64{0, 0x8000, 0x3c00, 0xbc00, 0x3e00, 0x7c00, 0xfc00, 0x7e00, 1, 0x8001, 0x3ff, 0x400, 0x7bff, 0xfbff, 0x3555, 0x4248, 0xc500, 0x1400, 0x6400}
	bf16s := []uint64{0, 0x8000, 0x3f80, 0xbf80, 0x3fc0, 0x7f80, 0xff80, 0x7fc0, 1, 0x8001, 0x7f, 0x80, 0x7f7f, 0xff7f, 0x3eaa, 0x4049, 0xc0a0, 0x3c00, 0x4b80}
	pairs := func(v []uint64) (p []uint64) {
		for i, x := range v {
			p = append(p, x|v[(i*7+3)%len(v)]<<16)
		}
		return p
	}
	return map[string][]uint64{
		"U32": ints, "S32": ints, "B32": ints, "U64": long, "S64": long, "F32": f32s, "F64": f64s,
		"F16": f16s, "BF16": bf16s, "F16x2": pairs(f16s), "BF16x2": pairs(bf16s), "Pred": {0, 1},
	}
}()

func typeBits(typ string) (reg, class string, bytes int) {
	switch typ {
	case "Pred":
		return "%p", "pred", 0
	case "F16", "BF16":
		return "%h", "b16", 2
	case "U64", "S64":
		return "%d", "b64", 8
	case "F64":
		return "%g", "f64", 8
	case "F32":
		return "%f", "f32", 4
	}
	return "%r", "b32", 4
}

// oneInstruction is a kernel that applies an instruction to elements of arrays,
// each in 8 bytes.
func oneInstruction(in ptx.Instruction) string {
	var b strings.Builder
	b.WriteString(`.version 8.0
.target sm_90
.address_size 64
.visible .entry one(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 n)
{
	.reg .pred %p<9>; .reg .pred %out; .reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %d<9>; .reg .f32 %f<9>; .reg .f64 %g<9>;
	.reg .b64 %x<9>; .reg .b32 %i<9>;
	mov.u32 %i0, %ctaid.x;
	mov.u32 %i1, %ntid.x;
	mov.u32 %i2, %tid.x;
	mad.lo.u32 %i3, %i0, %i1, %i2;
	ld.param.u32 %i4, [n];
	setp.ge.u32 %out, %i3, %i4;
	@%out ret;
`)
	var operands []string
	for i, typ := range in.Types {
		if typ == "" {
			continue
		}
		reg, class, _ := typeBits(typ)
		fmt.Fprintf(&b, "\tld.param.u64 %%x%d, [p%c];\n\tmad.wide.u32 %%x%d, %%i3, 8, %%x%d;\n", i, "dabc"[i], i, i)
		if i > 0 {
			if typ == "Pred" {
				fmt.Fprintf(&b, "\tld.global.u32 %%i5, [%%x%d];\n\tsetp.ne.u32 %%p%d, %%i5, 0;\n", i, i)
			} else {
				fmt.Fprintf(&b, "\tld.global.%s %s%d, [%%x%d];\n", class, reg, i, i)
			}
		}
		operands = append(operands, fmt.Sprint(reg, i))
	}
	switch {
	case strings.HasPrefix(in.Text, "lop3"):
		operands = append(operands, "0xe8")
	case in.Text == "mov.b32" && in.Types[2] == "F16", in.Text == "mov.b32" && in.Types[2] == "BF16", in.Text == "mov.b64" && in.Types[2] == "U32":
		if in.Types[1] == in.Types[2] { // pack
			operands = []string{operands[0], "{" + operands[1] + ", " + operands[2] + "}"}
		} else { // unpack: the second is a result
			operands = []string{"{" + operands[0] + ", " + operands[2] + "}", operands[1]}
		}
	}
	fmt.Fprintf(&b, "\t%s %s;\n", in.Text, strings.Join(operands, ", "))
	reg, class, _ := typeBits(in.Types[0])
	if class == "pred" {
		b.WriteString("\tselp.b32 %i6, 1, 0, %p0;\n\tst.global.b32 [%x0], %i6;\n")
	} else {
		fmt.Fprintf(&b, "\tst.global.%s [%%x0], %s0;\n", class, reg)
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

// TestInstructions runs every instruction of the builder that computes a value
// of values, over special values.
func TestInstructions(t *testing.T) {
	ran, seen := 0, map[string]bool{}
	for _, in := range ptx.Instructions() {
		key := fmt.Sprint(in.Text, in.Types)
		if in.Memory || in.Types[0] == "" || in.Types[1] == "" || seen[key] || elsewhere(in.Text) {
			continue
		}
		seen[key] = true
		ran++
		m, err := Parse(oneInstruction(in))
		if err == nil {
			err = m.Err()
		}
		if err != nil {
			t.Errorf("%s: %v", in.Text, err)
			continue
		}
		var args [3][]uint64
		n := 0
		unpack := strings.HasPrefix(in.Text, "mov.b") && in.Types[2] != "" && in.Types[1] != in.Types[2]
		for i, typ := range in.Types[1:] {
			if typ != "" && !(unpack && i == 1) {
				n++
				args[i] = specialValues[typ]
			} else {
				args[i] = []uint64{0}
			}
		}
		if n == 3 { // not all of each with all of each
			for i := range args {
				if len(args[i]) > 24 {
					args[i] = args[i][:24:24]
				}
			}
			args[0] = append(slices.Clone(args[0]), specialValues[in.Types[1]][len(args[0]):]...)
		}
		var flat [3][]uint32
		var rows [][3]uint64
		for _, x := range args[0] {
			for _, y := range args[1] {
				for _, z := range args[2] {
					row := [3]uint64{x, y, z}
					rows = append(rows, row)
					for i, v := range row {
						flat[i] = append(flat[i], uint32(v), uint32(v>>32))
					}
				}
			}
		}
		d := newDevice(t, Config{Unchecked: true})
		k, _ := m.Kernel("one")
		out := d.words("d", make([]uint32, 2*len(rows)))
		params := []any{out}
		for i, v := range flat {
			params = append(params, d.words(string("abc"[i]), v))
		}
		d.launch(k, Dim{X: ceil(len(rows), 256)}, Dim{X: 256}, 0, append(params, uint32(len(rows)))...)
		got, _ := d.ReadWords(out, 2*len(rows))
		bad := 0
		for i, row := range rows {
			v := uint64(got[2*i]) | uint64(got[2*i+1])<<32
			want, ok := reference(in, row)
			if !ok {
				t.Errorf("%s %v: no reference", in.Text, in.Types)
				break
			}
			if !want(v) {
				if bad++; bad < 4 {
					t.Errorf("%s of %#x gives %#x", in.Text, row[:n], v)
				}
			}
		}
	}
	if ran < 200 {
		t.Errorf("only %d instructions ran", ran)
	}
}

// elsewhere reports whether an instruction is no function of the thread's
// values, and so the matter of other tests.
func elsewhere(name string) bool {
	for _, s := range []string{"atom.", "red.", "shfl.", "vote.", "match.", "redux.", "mma.", "bar.", "cp.", "wgmma.", "mbarrier.", "ldmatrix", "stmatrix", "elect", "mapa", "cvta", "activemask", "prefetch", "setmaxnreg"} {
		if strings.HasPrefix(name, s) {
			return true
		}
	}
	return false
}

// format is a floating-point format of the reference.
type format struct {
	precision   uint
	least, most int // exponents: of the last bit of the least number, of the greatest
	from        func(uint64) float64
	bytes       int
}

var formats = map[string]format{
	"f16":  {11, -24, 15, func(x uint64) float64 { return refHalf(x, 5, 10) }, 2},
	"bf16": {8, -133, 127, func(x uint64) float64 { return refHalf(x, 8, 7) }, 2},
	"f32":  {24, -149, 127, func(x uint64) float64 { return float64(math.Float32frombits(uint32(x))) }, 4},
	"f64":  {53, -1074, 1023, math.Float64frombits, 8},
}

// refHalf reads a format of 16 bits from its definition.
func refHalf(x uint64, expBits, fracBits int) float64 {
	exp, frac := int(x>>fracBits)&(1<<expBits-1), float64(x&(1<<fracBits-1))
	bias := 1<<(expBits-1) - 1
	v := math.Ldexp(1+math.Ldexp(frac, -fracBits), exp-bias)
	switch {
	case exp == 0:
		v = math.Ldexp(frac, 1-bias-fracBits)
	case exp == 1<<expBits-1 && frac == 0:
		v = math.Inf(1)
	case exp == 1<<expBits-1:
		v = math.NaN()
	}
	if x>>15&1 != 0 {
		v = -v
	}
	return v
}

// round rounds an exact number to a format, by integers alone.
func (f format) round(x *big.Float, mode big.RoundingMode) float64 {
	if x.Sign() == 0 {
		return 0
	}
	// The unit of the last place of the result.
	unit := max(x.MantExp(nil)-int(f.precision), f.least)
	scaled := new(big.Float).SetPrec(5000).SetMantExp(x, -unit)
	whole, _ := scaled.Int(nil)
	rest := new(big.Float).SetPrec(5000).Sub(scaled, new(big.Float).SetPrec(5000).SetInt(whole))
	neg := x.Sign() < 0
	twice := new(big.Float).SetPrec(5000).Abs(new(big.Float).SetPrec(5000).Mul(rest, big.NewFloat(2)))
	away := false
	switch mode {
	case big.ToNearestEven:
		c := twice.Cmp(big.NewFloat(1))
		away = c > 0 || c == 0 && whole.Bit(0) == 1
	case big.ToNegativeInf:
		away = neg && rest.Sign() != 0
	case big.ToPositiveInf:
		away = !neg && rest.Sign() != 0
	}
	if away {
		if neg {
			whole.Sub(whole, big.NewInt(1))
		} else {
			whole.Add(whole, big.NewInt(1))
		}
	}
	r := new(big.Float).SetPrec(5000).SetMantExp(new(big.Float).SetPrec(5000).SetInt(whole), unit)
	if r.MantExp(nil) > f.most+1 { // beyond the greatest number
		v := math.Inf(1)
		if mode == big.ToZero || mode == big.ToNegativeInf && !neg || mode == big.ToPositiveInf && neg {
			v = math.Ldexp(2-math.Ldexp(1, 1-int(f.precision)), f.most)
		}
		return math.Copysign(v, float64(r.Sign()))
	}
	v, _ := r.Float64()
	return math.Copysign(v, float64(x.Sign()))
}

// fma is the reference of x*y + z, with the rules of IEEE 754 for what is not finite or 0.
func (f format) fma(x, y, z float64, mode big.RoundingMode) float64 {
	if v := math.FMA(x, y, z); v != v || math.IsInf(x, 0) || math.IsInf(y, 0) || math.IsInf(z, 0) {
		if x == x && y == y && z == z && !math.IsInf(x, 0) && !math.IsInf(y, 0) && !math.IsInf(z, 0) {
			panic("a NaN of finite numbers")
		}
		return v
	}
	num := func(v float64) *big.Float { return new(big.Float).SetPrec(5000).SetFloat64(v) }
	p := num(x)
	p.Mul(p, num(y))
	s := new(big.Float).SetPrec(5000).Add(p, num(z))
	if s.Sign() != 0 {
		return f.round(s, mode)
	}
	// An exact zero: of terms of one sign it is theirs.
	pneg := math.Signbit(x) != math.Signbit(y)
	if pneg == math.Signbit(z) {
		return math.Copysign(0, z)
	}
	if mode == big.ToNegativeInf {
		return math.Copysign(0, -1)
	}
	return 0
}

type verdict = func(got uint64) bool

// same wants a number of the format, and any NaN for NaN.
func (f format) same(want float64) verdict {
	return func(got uint64) bool {
		v := f.from(got)
		if want != want {
			return v != v
		}
		return v == want && math.Signbit(v) == math.Signbit(want)
	}
}

// within wants a number with a relative error of at most tol, or an absolute one.
func (f format) within(want, tol, abs float64) verdict {
	return func(got uint64) bool {
		v := f.from(got)
		if want != want {
			return v != v
		}
		if math.IsInf(want, 0) || want == 0 && abs == 0 {
			return v == want
		}
		return math.Abs(v-want) <= max(tol*math.Abs(want), abs, math.Ldexp(1, f.least))
	}
}

func exactly(want uint64) verdict { return func(got uint64) bool { return got == want } }

// reference returns what an instruction must give.
func reference(in ptx.Instruction, x [3]uint64) (verdict, bool) {
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

func floatReference(f format, op string, mods []string, bitsOf [3]uint64) (verdict, bool) {
	x, y, z := f.from(bitsOf[0]), f.from(bitsOf[1]), f.from(bitsOf[2])
	mode := big.ToNearestEven
	nan := slices.Contains(mods, "NaN")
	if slices.Contains(mods, "ftz") {
		flush := func(v float64) float64 {
			if math.Abs(v) < 0x1p-126 {
				return math.Copysign(0, v)
			}
			return v
		}
		x, y, z = flush(x), flush(y), flush(z)
	}
	for name, m := range map[string]big.RoundingMode{"rz": big.ToZero, "rm": big.ToNegativeInf, "rp": big.ToPositiveInf} {
		if slices.Contains(mods, name) {
			mode = m
		}
	}
	approx := map[int]float64{2: 0x1p-9, 4: 0x1p-21, 8: 0x1p-20}[f.bytes]
	once := func(v float64) verdict { // v was computed in float64 from short numbers
		if f.bytes == 8 {
			return f.same(v)
		}
		if v != v || math.IsInf(v, 0) || v == 0 {
			return f.same(v)
		}
		return f.same(f.round(new(big.Float).SetPrec(5000).SetFloat64(v), mode))
	}
	least := func(less bool) verdict {
		switch {
		case x != x && y != y || nan && (x != x || y != y):
			return f.same(math.NaN())
		case x != x:
			return f.same(y)
		case y != y:
			return f.same(x)
		case less:
			return f.same(math.Min(x, y))
		}
		return f.same(math.Max(x, y))
	}
	switch op {
	case "add":
		return f.same(f.fma(x, 1, y, mode)), true
	case "sub":
		return f.same(f.fma(x, 1, -y, mode)), true
	case "mul":
		p := f.fma(x, y, 0, mode)
		if p == 0 {
			p = math.Copysign(0, math.Copysign(1, x)*math.Copysign(1, y))
		}
		if p != p || math.IsInf(x, 0) || math.IsInf(y, 0) {
			p = x * y
		}
		return f.same(p), true
	case "fma":
		v := f.fma(x, y, z, mode)
		if slices.Contains(mods, "sat") && !(v > 0 && v < 1) {
			if v = max(min(v, 1), 0); v != v {
				v = 0
			}
			v = math.Abs(v)
		}
		return f.same(v), true
	case "div":
		if slices.Contains(mods, "rn") {
			return once(x / y), true
		}
		if math.Abs(y) > 0x1p126 || math.Abs(y) < 0x1p-126 {
			return func(uint64) bool { return true }, true // has no stated value
		}
		return f.within(float64(float32(x/y)), approx, 0), true
	case "rcp":
		if slices.Contains(mods, "rn") {
			return once(1 / x), true
		}
		v := float64(float32(1 / x))
		if slices.Contains(mods, "ftz") && math.Abs(v) < 0x1p-126 {
			v = math.Copysign(0, v)
		}
		return f.within(v, approx, 0), true
	case "sqrt":
		if slices.Contains(mods, "rn") {
			return once(math.Sqrt(x)), true
		}
		return f.within(math.Sqrt(x), approx, 0), true
	case "rsqrt":
		v := 1 / math.Sqrt(x)
		if f.bytes == 8 && math.Abs(x) < 0x1p-1022 {
			v = math.Copysign(math.Inf(1), x)
		}
		return f.within(v, approx, 0), true
	case "ex2":
		v := math.Exp2(x)
		if f.bytes < 8 && v > math.Ldexp(2, f.most) {
			v = math.Inf(1)
		}
		if f.bytes == 2 && v > 65519 && f.most == 15 {
			v = math.Inf(1)
		}
		return f.within(v, approx, math.Ldexp(1, f.least)), true
	case "lg2":
		return f.within(math.Log2(x), approx, 0x1p-22), true
	case "sin":
		return f.within(math.Sin(x), approx, 0x1p-20), true
	case "cos":
		return f.within(math.Cos(x), approx, 0x1p-20), true
	case "tanh":
		return f.within(math.Tanh(x), 0x1p-7, 0x1p-10), true
	case "min":
		return least(true), true
	case "max":
		return least(false), true
	case "neg":
		return f.same(-x), true
	case "abs":
		return f.same(math.Abs(x)), true
	case "copysign":
		return f.same(math.Copysign(y, math.Copysign(1, f.from(bitsOf[0])))), true
	case "setp":
		// Is of a NaN also asks for its sign in copysign only.
		less, equal, un := x < y, x == y, x != x || y != y
		v, ok := map[string]bool{"eq": equal, "lt": less, "le": less || equal, "gt": y < x, "ge": y <= x, "neu": !equal, "nan": un,
			"ne": !equal && !un}[mods[0]]
		return exactly(uint64(b2u(v))), ok
	}
	return nil, false
}

// moveReference covers conversions and moves.
func moveReference(in ptx.Instruction, parts []string, x [3]uint64) (verdict, bool) {
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
func integerReference(op string, mods []string, typ string, in ptx.Instruction, x [3]uint64) (verdict, bool) {
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
	wrap := func(v *big.Int) (verdict, bool) {
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
			return func(uint64) bool { return true }, true // undefined, but must not fail
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
		at, k := int(x[1]&0xff), int(x[2]&0xff)
		for i := range n {
			switch {
			case i < k && at+i < n:
				r.SetBit(r, i, uint(u>>(at+i)&1))
			case signed && k > 0:
				r.SetBit(r, i, uint(u>>min(at+k-1, n-1)&1))
			}
		}
		return wrap(r)
	case "prmt":
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
		return exactly(v), true
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
		for i := range 4 {
			p, q := int64(x[0]>>(8*i)&255), int64(x[1]>>(8*i)&255)
			if mods[0][0] == 's' {
				p = int64(int8(p))
			}
			if signed {
				q = int64(int8(q))
			}
			r.Add(r, big.NewInt(p*q))
		}
		return wrap(r.Add(r, c))
	}
	return nil, false
}
