package kernel_test

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

// execute runs a program in one workgroup over buffers of 32-bit elements.
func execute(t testing.TB, p *ir.Program, buffers ...[]uint32) {
	t.Helper()
	if err := ir.Verify(p); err != nil {
		t.Fatal(err)
	}
	k, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	l := interp.Launch{Grid: [3]uint32{1, 1, 1}}
	for _, b := range buffers {
		var m []byte
		for _, v := range b {
			m = binary.NativeEndian.AppendUint32(m, v)
		}
		l.Buffers = append(l.Buffers, m)
	}
	if err := k.Run(context.Background(), l); err != nil {
		t.Fatal(err)
	}
	for i, b := range buffers {
		for j := range b {
			b[j] = binary.NativeEndian.Uint32(l.Buffers[i][4*j:])
		}
	}
}

// typed converts between the bits of a scalar and its type, by name.
var (
	fromBits = map[string]func(x kernel.U32) reflect.Value{
		"U32": func(x kernel.U32) reflect.Value { return reflect.ValueOf(x) },
		"I32": func(x kernel.U32) reflect.Value { return reflect.ValueOf(x.I32()) },
		"F32": func(x kernel.U32) reflect.Value { return reflect.ValueOf(x.AsF32()) },
		"F16": func(x kernel.U32) reflect.Value { return reflect.ValueOf(x.AsF32().F16()) },
		"Bool": func(x kernel.U32) reflect.Value {
			return reflect.ValueOf(x.And(kernel.U(1)).Ne(kernel.U(0)))
		},
	}
	toBits = map[string]func(v any) kernel.U32{
		"U32":  func(v any) kernel.U32 { return v.(kernel.U32) },
		"I32":  func(v any) kernel.U32 { return v.(kernel.I32).U32() },
		"F32":  func(v any) kernel.U32 { return v.(kernel.F32).AsU32() },
		"F16":  func(v any) kernel.U32 { return v.(kernel.F16).F32().AsU32() },
		"Bool": func(v any) kernel.U32 { return v.(kernel.Bool).U32() },
	}
)

// operandBits returns random bits, often those of a special value of the type.
func operandBits(name string, r *rand.Rand) uint32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -2.5, 3, 1e-40, 70000, 1e30, -1e9,
		float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	switch r.IntN(3) {
	case 0:
		if name == "F32" || name == "F16" {
			return math.Float32bits(special[r.IntN(len(special))])
		}
		return []uint32{0, 1, 2, 3, 31, 64, 1 << 31, math.MaxInt32, math.MaxUint32, 0x80000001}[r.IntN(10)]
	case 1:
		if name == "F32" || name == "F16" {
			return math.Float32bits(float32(r.NormFloat64() * 4))
		}
		return r.Uint32N(100)
	}
	return r.Uint32()
}

// TestConstantsFoldAsDevicesCompute calls every method of the scalar types with
// constants and with the same numbers from memory. Arithmetic agrees to the
// bit, functions within the errors of their expansions.
func TestConstantsFoldAsDevicesCompute(t *testing.T) {
	r := testutil.Rand(t)
	const cases = 200
	called := 0
	for name, load := range fromBits {
		typ := load(kernel.U(0)).Type()
		for m := range typ.NumMethod() {
			method := typ.Method(m)
			out := method.Type.Out(0).Name()
			ok := toBits[out] != nil && method.Type.NumOut() == 1
			for i := 1; i < method.Type.NumIn(); i++ {
				ok = ok && toBits[method.Type.In(i).Name()] != nil
			}
			if !ok {
				continue
			}
			called++
			inputs := make([]uint32, 3*cases)
			for i := range inputs {
				at := i % 3
				in := name
				if at > 0 && at < method.Type.NumIn() {
					in = method.Type.In(at).Name()
				}
				inputs[i] = operandBits(in, r)
				if at == 1 && (method.Name == "Shl" || method.Name == "Shr") {
					inputs[i] %= 32
				}
				if at == 1 && method.Name == "Ldexp" {
					inputs[i] = math.Float32bits(float32(r.IntN(601) - 300))
				}
				if f := math.Float32frombits(inputs[i]); method.Name == "Sin" || method.Name == "Cos" {
					if !(math.Abs(float64(f)) <= ir.TrigLimit) {
						inputs[i] = math.Float32bits(r.Float32())
					}
				}
			}
			call := func(x func(i int) kernel.U32) kernel.U32 {
				var args []reflect.Value
				for i := range method.Type.NumIn() {
					args = append(args, fromBits[method.Type.In(i).Name()](x(i)))
				}
				return toBits[out](method.Func.Call(args)[0].Interface())
			}
			k := kernel.New("fold", func(b *kernel.Builder, _ *struct{}) {
				b.LocalSize(1, 1, 1)
				x, folded, computed := kernel.Input[kernel.U32](b, "x"), kernel.Output[kernel.U32](b, "folded"), kernel.Output[kernel.U32](b, "computed")
				for c := range cases {
					at := kernel.N(c)
					v := call(func(i int) kernel.U32 { return kernel.U(inputs[3*c+i]) })
					if _, ok := v.Constant(); !ok {
						panic("not constant")
					}
					folded.Set(at, v)
					computed.Set(at, call(func(i int) kernel.U32 { return x.At(kernel.N(3*c + i)) }))
				}
			})
			p, err := k.Program()
			if err != nil {
				t.Fatalf("%s.%s: %v", name, method.Name, err)
			}
			folded, computed := make([]uint32, cases), make([]uint32, cases)
			execute(t, p, inputs, folded, computed)
			for c := range cases {
				if !near(folded[c], computed[c], out, method.Name) {
					t.Errorf("%s.%s of %#x: folded %#x, computed %#x", name, method.Name, inputs[3*c:3*c+3], folded[c], computed[c])
					break
				}
			}
		}
	}
	if called < 120 {
		t.Errorf("only %d methods", called)
	}
}

// near compares bits. The error of a function may be the bound in package ir, and the folded Fma is rounded twice.
func near(a, b uint32, typ, method string) bool {
	if a == b {
		return true
	}
	if typ != "F32" && typ != "F16" {
		return false
	}
	x, y := float64(math.Float32frombits(a)), float64(math.Float32frombits(b))
	if x != x && y != y {
		return true
	}
	ulp := 0.0
	switch method {
	case "Exp", "Exp2", "Expm1", "Log", "Log2", "Log1p", "Tanh", "Sigmoid", "Erf", "Erfc", "NormCDF", "Sin", "Cos", "Atan", "Pow", "Recip", "Rsqrt":
		ulp = 10
	case "Fma", "MulAdd":
		ulp = 1
	}
	size := math.Max(math.Abs(x), 0x1p-126) * 0x1p-23
	if typ == "F16" {
		size = math.Max(math.Abs(x), 0x1p-14) * 0x1p-10
	}
	return math.Abs(x-y) <= ulp*size
}
