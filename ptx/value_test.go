package ptx_test

import (
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// TestHalfConstants looks at the bits that constants of 16 bits have in the text.
func TestHalfConstants(t *testing.T) {
	for _, c := range []struct {
		v           float32
		half, brain string
	}{
		{0, "0", "0"},
		{1, "15360", "16256"},
		{-2, "49152", "49152"},
		{1 + 1.0/512, "15362", "16256"}, // a tie for a BF16: to even
		{1 + 3.0/256, "15372", "16258"}, // a tie for a BF16: to even
		{65504, "31743", "18304"},
		{65520, "31744", "18304"},
		{6e-8, "1", "13185"},
		{float32(math.Inf(-1)), "64512", "65408"},
	} {
		m := ptx.NewModule(ptx.SM90)
		m.Kernel("f", func(k *ptx.Kernel) {
			ptx.GlobalParam[ptx.F16](k, "h").Store(ptx.H(c.v))
			ptx.GlobalParam[ptx.BF16](k, "b").Store(ptx.BF(c.v))
		})
		text, err := m.PTX()
		if err != nil || !strings.Contains(text, "mov.b16 %h0, "+c.half+";") || !strings.Contains(text, "mov.b16 %h1, "+c.brain+";") {
			t.Errorf("%v: want %s and %s, %v\n%s", c.v, c.half, c.brain, err, text)
		}
	}
}

// TestFolding shows that arithmetic on constants costs no instruction.
func TestFolding(t *testing.T) {
	m := ptx.NewModule(ptx.SM80)
	m.Kernel("f", func(k *ptx.Kernel) {
		x, n := ptx.GlobalParam[ptx.U32](k, "x"), ptx.Param[ptx.U32](k, "n")
		x.Store(ptx.U(6).Mul(ptx.U(7)).Add(ptx.U(1)).Shl(ptx.U(2)).Sub(ptx.U(2)))
		x.Store(n.Mul(ptx.U(1)).Add(ptx.U(0)).Shl(ptx.U(0)).Or(ptx.U(0)).And(ptx.U(math.MaxUint32)))
		x.Store(n.Mul(ptx.U(8)))
		x.Store(ptx.Select(ptx.S(-3).Lt(ptx.S(2)), ptx.U(1), n))
		x.Store(ptx.Select(ptx.F(2).Mul(ptx.F(3)).Eq(ptx.F(6)), ptx.U(2), n))
		x.Store(n.Mul(ptx.U(0)))
		x.Store(n.Div(ptx.U(16)))
		x.Store(n.Rem(ptx.U(16)))
		x.Store(n.Div(ptx.U(1)).Add(n.Rem(ptx.U(1))))
		x.Store(n.Div(ptx.U(12)))
		x.Store(n.S32().Div(ptx.S(16)).U32())
		x.Store(n.U64().Div(ptx.U(32).U64()).U32())
		k.If(ptx.U(3).Gt(ptx.U(4)), func() { x.Store(ptx.U(9)) })
	})
	want := `st.global.u32 [%d0], 170;
st.global.u32 [%d0], %r0;
shl.b32 %r1, %r0, 3;
st.global.u32 [%d0], %r1;
st.global.u32 [%d0], 1;
st.global.u32 [%d0], 2;
st.global.u32 [%d0], 0;
shr.u32 %r2, %r0, 4;
st.global.u32 [%d0], %r2;
and.b32 %r3, %r0, 15;
st.global.u32 [%d0], %r3;
st.global.u32 [%d0], %r0;
div.u32 %r4, %r0, 12;
st.global.u32 [%d0], %r4;
div.s32 %r5, %r0, 16;
st.global.u32 [%d0], %r5;
cvt.u64.u32 %d1, %r0;
shr.u64 %d2, %d1, 5;
cvt.u32.u64 %r6, %d2;
st.global.u32 [%d0], %r6;
ret;`
	if s := code(t, m); s != want {
		t.Errorf("got:\n%s\nwant:\n%s", s, want)
	}
}
