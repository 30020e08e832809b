package ptx_test

import (
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// code returns the instructions of a kernel after its parameters are loaded.
func code(t *testing.T, m *ptx.Module) string {
	t.Helper()
	text, err := m.PTX()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = strings.Cut(text, "{\n")
	var lines []string
	for _, s := range strings.Split(text, "\n") {
		s = strings.TrimSpace(s)
		if s == "" || s == "}" || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "ld.param") || strings.HasPrefix(s, "cvta.") {
			continue
		}
		lines = append(lines, strings.ReplaceAll(s, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

// rewrites are short kernels before and after a pass; "" is unchanged.
var rewrites = []struct {
	name          string
	pass          ptx.Pass
	build         func(k *ptx.Kernel)
	before, after string
}{
	{"fma", ptx.FuseMultiplyAdd, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		a, b := x.Load(), x.Offset(1).Load()
		x.Store(b.Add(a.Mul(ptx.F(2))))
	}, `ld.global.f32 %f0, [%d0];
ld.global.f32 %f1, [%d0+4];
mul.rn.f32 %f2, %f0, 0f40000000;
add.rn.f32 %f3, %f1, %f2;
st.global.f32 [%d0], %f3;
ret;`, `ld.global.f32 %f0, [%d0];
ld.global.f32 %f1, [%d0+4];
fma.rn.f32 %f3, %f0, 0f40000000, %f1;
st.global.f32 [%d0], %f3;
ret;`},
	{"no fma of a product used twice", ptx.FuseMultiplyAdd, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		a := x.Load()
		p := a.Mul(a)
		x.Store(p.Add(a).Mul(p))
	}, `ld.global.f32 %f0, [%d0];
mul.rn.f32 %f1, %f0, %f0;
add.rn.f32 %f2, %f1, %f0;
mul.rn.f32 %f3, %f2, %f1;
st.global.f32 [%d0], %f3;
ret;`, ""},
	{"no fma over a change", ptx.FuseMultiplyAdd, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		v := ptx.NewVar(k, x.Load())
		ptx.AddTo(v, ptx.F(1))
		ptx.MulAddTo(v, v.Get(), ptx.F(3))
		x.Store(v.Get())
	}, `ld.global.f32 %f0, [%d0];
mov.f32 %f1, %f0;
add.rn.f32 %f1, %f1, 0f3F800000;
mov.f32 %f2, %f1;
fma.rn.f32 %f1, %f2, 0f40400000, %f1;
mov.f32 %f3, %f1;
st.global.f32 [%d0], %f3;
ret;`, ""},
	{"dead", ptx.RemoveDead, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		a := x.Load()
		a.Mul(ptx.F(3)).Add(a)
		unused := ptx.NewVar(k, ptx.U(0))
		ptx.AddTo(unused, ptx.U(1))
		x.Hint(ptx.Volatile).Load()
		x.Store(ptx.F(1))
	}, `ld.global.f32 %f0, [%d0];
mul.rn.f32 %f1, %f0, 0f40400000;
add.rn.f32 %f2, %f1, %f0;
mov.b32 %r0, 0;
add.u32 %r0, %r0, 1;
ld.volatile.global.f32 %f3, [%d0];
st.global.f32 [%d0], 0f3F800000;
ret;`, `ld.volatile.global.f32 %f3, [%d0];
st.global.f32 [%d0], 0f3F800000;
ret;`},
	{"moves", ptx.ForwardMoves, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		v := ptx.NewVar(k, x.Load())
		one := v.Get()
		ptx.AddTo(v, ptx.F(1))
		two := v.Get()
		x.Store(one)
		x.Store(two)
	}, `ld.global.f32 %f0, [%d0];
mov.f32 %f1, %f0;
mov.f32 %f2, %f1;
add.rn.f32 %f1, %f1, 0f3F800000;
mov.f32 %f3, %f1;
st.global.f32 [%d0], %f2;
st.global.f32 [%d0], %f3;
ret;`, `ld.global.f32 %f0, [%d0];
mov.f32 %f1, %f0;
mov.f32 %f2, %f1;
add.rn.f32 %f1, %f1, 0f3F800000;
mov.f32 %f3, %f1;
st.global.f32 [%d0], %f2;
st.global.f32 [%d0], %f1;
ret;`},
	{"addresses", ptx.ShareAddresses, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		n := ptx.Param[ptx.U32](k, "n")
		x.At(n.Mul(ptx.U(3))).Store(ptx.F(1))
		k.If(n.Lt(ptx.U(4)), func() { x.At(n.Mul(ptx.U(3))).Offset(1).Store(ptx.F(2)) })
	}, `mul.lo.u32 %r1, %r0, 3;
mad.wide.u32 %d1, %r1, 4, %d0;
st.global.f32 [%d1], 0f3F800000;
setp.lt.u32 %p0, %r0, 4;
@!%p0 bra $L0;
mul.lo.u32 %r2, %r0, 3;
mad.wide.u32 %d2, %r2, 4, %d0;
st.global.f32 [%d2+4], 0f40000000;
$L0:
ret;`, `mul.lo.u32 %r1, %r0, 3;
mad.wide.u32 %d1, %r1, 4, %d0;
st.global.f32 [%d1], 0f3F800000;
setp.lt.u32 %p0, %r0, 4;
@!%p0 bra $L0;
st.global.f32 [%d1+4], 0f40000000;
$L0:
ret;`},
	{"no sharing between branches", ptx.ShareAddresses, func(k *ptx.Kernel) {
		x := ptx.GlobalParam[ptx.F32](k, "x")
		n := ptx.Param[ptx.U32](k, "n")
		k.IfElse(n.Lt(ptx.U(4)), func() { x.At(n).Store(ptx.F(1)) }, func() { x.At(n).Store(ptx.F(2)) })
	}, `setp.lt.u32 %p0, %r0, 4;
@!%p0 bra $L0;
mad.wide.u32 %d1, %r0, 4, %d0;
st.global.f32 [%d1], 0f3F800000;
bra $L1;
$L0:
mad.wide.u32 %d2, %r0, 4, %d0;
st.global.f32 [%d2], 0f40000000;
$L1:
ret;`, ""},
}

// TestRewrites shows what each pass makes of a few instructions.
func TestRewrites(t *testing.T) {
	for _, c := range rewrites {
		t.Run(c.name, func(t *testing.T) {
			m := ptx.NewModule(ptx.SM80)
			m.Kernel("f", c.build)
			if s := code(t, m); s != c.before {
				t.Fatalf("before:\n%s\nwant:\n%s", s, c.before)
			}
			if err := m.Apply(c.pass); err != nil {
				t.Fatal(err)
			}
			want := c.after
			if want == "" {
				want = c.before
			}
			if s := code(t, m); s != want {
				t.Errorf("after:\n%s\nwant:\n%s", s, want)
			}
		})
	}
}

// TestRewrittenKernels checks that ptxas and Verify accept kernels after the passes.
func TestRewrittenKernels(t *testing.T) {
	m := ptx.NewModule(ptx.SM90a)
	m.RecordPositions()
	for _, k := range append(kernels, tensorKernels...) {
		m.Kernel(k.name, k.build)
	}
	if err := m.Apply(ptx.Rewrites()...); err != nil {
		t.Fatal(err)
	}
	if err := m.Verify(); err != nil {
		t.Error(err)
	}
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, text, ptx.SM90a)
}
