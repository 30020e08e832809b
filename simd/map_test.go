package simd

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// mapReference is the reference of a named kernel, and the error that the kernel may have.
type mapReference struct {
	root *ir.Node
	o    *op.Operation // whose Reference to ask, or nil: root is all
	typs []op.DType    // of the operands of o
	tol  op.Tolerance
	args []ir.Type // of the operands
	ps   []float32 // parameters to test with
}

// codeTolerance bounds the errors of the codes in units of the last place: see
// ir.Lower. Those not listed are exact or correctly rounded.
var codeTolerance = map[ir.Code]float64{
	ir.Exp: 1, ir.Exp2: 1, ir.Expm1: 1.5, ir.Log: 1.5, ir.Log2: 2, ir.Log1p: 1.5, ir.Tanh: 2, ir.Sigmoid: 2.5,
	ir.Erf: 2.5, ir.Erfc: 8, ir.NormCDF: 8, ir.Sin: 2, ir.Cos: 2, ir.Atan: 2, ir.Pow: 1.5, ir.Recip: 0.5, ir.Rsqrt: 1.5,
}

// roundedTolerance is codeTolerance for levels that round products, where it is larger.
var roundedTolerance = map[ir.Code]float64{ir.Exp2: 1.1, ir.Expm1: 1.7}

// referenceOf finds the expression behind a name without the generator.
func referenceOf(t *testing.T, name string) mapReference {
	t.Helper()
	d, prefix := op.F32, ""
	for _, k := range []op.DType{op.I32, op.U32} {
		if strings.HasPrefix(name, k.String()+".") {
			d, prefix = k, k.String()+"."
		}
	}
	var r mapReference
	switch {
	case strings.HasPrefix(name, "code."):
		part := strings.Split(name, ".")
		for _, c := range ir.Codes() {
			if c.String() == part[1] {
				r = codeReference(t, c, part[2:])
			}
		}
	case strings.HasPrefix(name, "cast."):
		part := strings.Split(name, ".")
		types := map[string]ir.Type{"f32": ir.F32, "i32": ir.I32, "u32": ir.U32, "bool": ir.Bool}
		r.root = ir.NewConvert(ir.NewArg(0, types[part[1]]), types[part[2]])
	case prefix != "" && strings.Count(name, ".") == 2:
		r = integerScalarReference(t, name, d)
	case name == "copy":
		r.root = ir.NewArg(0, ir.U32)
	case name == "fill":
		r.root, r.ps = ir.NewParam(0), []float32{-0.75}
	default:
		o := op.Lookup(strings.TrimPrefix(name, prefix))
		if o == nil {
			t.Fatalf("no operation for %q", name)
		}
		n, _ := o.Arity()
		in := make([]op.DType, n)
		for i := range in {
			in[i] = d
		}
		if o == op.Where {
			in[0] = op.Bool
		}
		a := o.Defaults()
		var err error
		if r.root, err = irhook.Expression(o, &a, in); err != nil {
			t.Fatal(err)
		}
		r.tol, r.o, r.typs = o.Tolerance(), o, in
		for i, p := range o.Params() {
			v := p.Default
			if p.Required {
				v = []float32{-0.75, 1.25}[i]
			}
			r.ps = append(r.ps, v)
		}
	}
	if r.root == nil {
		t.Fatalf("no reference for %q", name)
	}
	list, _ := ir.Flatten(r.root)
	for _, n := range list {
		if n.Code == ir.Arg {
			for len(r.args) <= n.Index {
				r.args = append(r.args, ir.Invalid)
			}
			r.args[n.Index] = n.Type
		}
	}
	return r
}

// integerScalarReference returns the reference of a kernel such as i32.sub.vs. Its parameter is the bits of an integer.
func integerScalarReference(t *testing.T, name string, d op.DType) mapReference {
	t.Helper()
	part := strings.Split(name, ".")
	typ, c := ir.I32, map[string]ir.Code{"add": ir.Add, "sub": ir.Sub, "mul": ir.Mul, "minimum": ir.Min, "maximum": ir.Max}[part[1]]
	if d == op.U32 {
		typ = ir.U32
	}
	x, p := ir.NewArg(0, typ), ir.NewBitcast(ir.NewParam(0), typ)
	if part[2] == "sv" {
		x, p = p, x
	}
	n, err := ir.New(c, x, p)
	if err != nil {
		t.Fatal(err)
	}
	return mapReference{root: n, ps: []float32{math.Float32frombits(1<<31 - 77)}}
}

func codeReference(t *testing.T, c ir.Code, form []string) mapReference {
	typ := ir.F32
	switch c {
	case ir.And, ir.Or, ir.Xor, ir.Not:
		typ = ir.Bool
	}
	args := make([]*ir.Node, c.Arity())
	for i := range args {
		args[i] = ir.NewArg(i, typ)
	}
	var ps []float32
	if len(form) == 1 {
		ps = []float32{1.25}
		if form[0] == "vs" {
			args[1] = ir.NewParam(0)
		} else {
			args[0], args[1] = ir.NewParam(0), ir.NewArg(0, typ)
		}
		if c == ir.Ldexp {
			ps[0] = 3
		}
	}
	if c == ir.Select {
		args[0] = ir.NewArg(0, ir.Bool)
	}
	n, err := ir.New(c, args...)
	if err != nil {
		t.Fatal(err)
	}
	return mapReference{root: n, tol: op.Tolerance{ULP: codeTolerance[c]}, ps: ps}
}

// ulpOf returns the distance of float32 numbers at v.
func ulpOf(v float64) float64 {
	_, e := math.Frexp(v)
	return math.Ldexp(1, max(e-24, -149))
}

// wordNames returns the names of the kernels over lanes of 32 bits; those of 16
// have tests of their own.
func wordNames() (names []string) {
	for _, n := range MapNames() {
		if !strings.Contains(n, "f16") && !strings.Contains(n, ".u8") && !strings.Contains(n, ".i8") {
			names = append(names, n)
		}
	}
	return names
}

// specials are asked in all combinations.
var specials = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 2, -2, 0.5, -0.5, 3, -3, 1.5, -1.5, 0.1, -0.1, 1e-3, -1e-3, 1e-20, -1e-20, 1e-40, -1e-40,
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1p-126, 10, -10, 88.7, 88.8, -87.5, -103.9, -104.1, 127.9, 128, -149, -151,
	1000, -1000, 65535, 1 << 24, -1 << 24, 1 << 31, 1<<31 - 128, -1 << 31, -1<<31 - 256, 1 << 32, 1<<32 - 256, 1e20, -1e20, math.MaxFloat32, -math.MaxFloat32,
	float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
}

// asLane returns v as a lane of that type.
func asLane(v float32, t ir.Type, r *rand.Rand) float32 {
	switch t {
	case ir.I32, ir.U32:
		edges := []uint32{math.MaxInt32, 1 << 31, 31, 32, 33, 1<<24 + 1}
		switch r.IntN(5) {
		case 0, 1:
			return math.Float32frombits(uint32(r.IntN(7) - 3))
		case 2:
			return math.Float32frombits(edges[r.IntN(len(edges))])
		}
		return math.Float32frombits(r.Uint32())
	case ir.Bool:
		return math.Float32frombits(math.Float32bits(v) & 1)
	}
	return v
}

// lane returns the value in a lane of that type.
func lane(v float32, t ir.Type) float64 {
	switch t {
	case ir.I32:
		return float64(int32(math.Float32bits(v)))
	case ir.U32:
		return float64(math.Float32bits(v))
	case ir.Bool:
		if math.Float32bits(v) != 0 {
			return 1
		}
		return 0
	}
	return float64(v)
}

// anyFloat returns a number of any exponent, most of them of moderate size.
func anyFloat(r *rand.Rand) float32 {
	switch r.IntN(4) {
	case 0:
		return math.Float32frombits(r.Uint32())
	case 1:
		return float32(r.NormFloat64())
	}
	return float32(r.NormFloat64() * math.Exp(3*r.NormFloat64()))
}

// operands makes test data for the operands of r: all pairs of specials first.
func (ref *mapReference) operands(n int, r *rand.Rand) [3][]float32 {
	var in [3][]float32
	for i, t := range ref.args {
		in[i] = make([]float32, n)
		for j := range in[i] {
			v := anyFloat(r)
			if k := len(specials); j < k*k {
				v = specials[[]int{j % k, j / k, (j + j/k) % k}[i]]
			}
			if ref.root.Code == ir.Ldexp && ref.root.Args[1].Code == ir.Arg && ref.root.Args[1].Index == i {
				v = float32(r.IntN(601) - 300)
			}
			in[i][j] = asLane(v, t, r)
		}
	}
	return in
}

func pointer(s []float32) *float32 {
	if len(s) == 0 {
		return nil
	}
	return &s[0]
}

func TestMapAccuracy(t *testing.T) {
	n := 1 << 17
	if testing.Short() {
		n = 1 << 13
	}
	for _, level := range Supported() {
		for _, name := range wordNames() {
			t.Run(level.String()+"/"+name, func(t *testing.T) {
				ref := referenceOf(t, name)
				if ulps := roundedTolerance[ref.root.Code]; level == SIMD128 && ref.o == nil && ulps > 0 {
					ref.tol.ULP = ulps
				}
				r := rand.New(rand.NewPCG(1, uint64(len(name))))
				in := ref.operands(n, r)
				out := make([]float32, n)
				for i := range out {
					out[i] = float32(math.NaN())
				}
				MapAt(level, name)(&out[0], pointer(in[0]), pointer(in[1]), pointer(in[2]), n, pointer(ref.ps))
				wants, mags := ref.eval(t, in, n)
				d := map[ir.Type]op.DType{ir.F32: op.F32, ir.I32: op.I32, ir.U32: op.U32, ir.Bool: op.Bool}[ref.root.Type]
				worst, at, bad := 0.0, 0, 0
				for i := range out {
					want, got, m := wants[i], lane(out[i], ref.root.Type), 0.0
					if mags != nil {
						m = mags[i]
					}
					if err := ref.tol.Check(got, want, m, d); err != nil {
						if bad++; bad < 6 {
							t.Errorf("%v with %v: %v", pick(in, i), ref.ps, err)
						}
					}
					if ulps := math.Abs(got-want) / ulpOf(want); ulps > worst && math.Abs(got) <= math.MaxFloat32 && math.Abs(want) > ref.tol.Abs*1e6 && m == 0 {
						worst, at = ulps, i
					}
				}
				if bad > 5 {
					t.Errorf("%d of %d are wrong", bad, n)
				}
				if worst > 0.51 {
					t.Logf("%v %s: worst %.3f ulp at %v", level, name, worst, pick(in, at))
				}
			})
		}
	}
}

// eval returns the reference of n elements, and its magnitudes or nil.
func (ref *mapReference) eval(t *testing.T, in [3][]float32, n int) (want, mag []float64) {
	data := make([][]float64, len(ref.args))
	for j, typ := range ref.args {
		if typ != ir.Invalid {
			data[j] = make([]float64, n)
			for i := range data[j] {
				data[j][i] = lane(in[j][i], typ)
			}
		}
	}
	if ref.o != nil {
		arrays := make([]*op.Array, len(data))
		for j := range arrays {
			arrays[j] = &op.Array{Shape: op.Shape{n}, Data: data[j]}
		}
		a := op.Floats(ref.ps...)
		out, err := ref.o.Reference(&a, arrays, ref.typs)
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Data, out[0].Mag
	}
	e := ir.NewEvaluator(ref.root)
	var ps [1]float64
	if len(ref.ps) > 0 {
		ps[0] = float64(ref.ps[0])
	}
	want = make([]float64, n)
	args := make([]float64, len(data))
	for i := range want {
		for j := range data {
			if data[j] != nil {
				args[j] = data[j][i]
			}
		}
		want[i] = e.Eval(args, ps[:])
	}
	return want, nil
}

func pick(in [3][]float32, i int) (v []float32) {
	for _, s := range in {
		if s != nil {
			v = append(v, s[i])
		}
	}
	return v
}
