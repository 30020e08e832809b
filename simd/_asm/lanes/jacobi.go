package main

import (
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// jacobi writes the rotation that makes two vectors orthogonal.
func (g *gen) jacobi() {
	g.function("lanesJacobiAVX2", "func(x, y, u, v, tolerance *float32, n, m int) uint32",
		"lanesJacobiAVX2 rotates x and y, of n vectors each, so that they are orthogonal, and rotates u and v, of m vectors each, in the same way. It does so in",
		"lanes where the product of x and y is more than tolerance times their lengths. It returns a mask of these lanes. n and m are positive.")
	x, y, tolerance := g.param("x"), g.param("y"), g.param("tolerance")
	n := g.param("n")
	xx, yy, xy := g.products(x, y, n)
	limit, t, turned := g.YMM(), g.YMM(), g.YMM()
	magnitude, mask := g.splat(1<<31-1), g.GP32()
	g.VSQRTPS(xx, limit)
	g.VSQRTPS(yy, t)
	g.VMULPS(Mem{Base: tolerance}, limit, limit)
	g.VMULPS(t, limit, limit)
	g.VANDPS(magnitude, xy, t)
	g.VCMPPS(U8(0x1e), limit, t, turned) // greater, ordered, quiet
	g.VMOVMSKPS(turned, mask)
	g.TESTL(mask, mask)
	g.JZ(LabelRef("end"))
	// The tangent is 2·xy / (d + sign(d)·sqrt(d² + (2·xy)²)) with d = yy - xx: of the smaller angle.
	d, sign, root, one := g.YMM(), g.YMM(), g.YMM(), g.splat(0x3f800000)
	g.VSUBPS(xx, yy, d)
	g.VADDPS(xy, xy, xy)
	g.VMULPS(d, d, root)
	g.VFMADD231PS(xy, xy, root)
	g.VSQRTPS(root, root)
	g.VANDNPS(d, magnitude, sign)
	g.VORPS(sign, root, root)
	g.VADDPS(d, root, root)
	g.VDIVPS(root, xy, t)
	g.VANDPS(turned, t, t)
	c := root
	g.VMOVAPS(one, c)
	g.VFMADD231PS(t, t, c)
	g.VSQRTPS(c, c)
	g.VDIVPS(c, one, c)
	s := t
	g.VMULPS(c, t, s)
	g.rotate("first", x, y, n, c, s)
	u, v, m := g.param("u"), g.param("v"), g.param("m")
	g.rotate("second", u, v, m, c, s)
	g.Label("end")
	g.Store(mask, g.ReturnIndex(0))
	g.ret()
}

// products returns the sums of x·x, y·y and x·y.
func (g *gen) products(x, y, n reg.GPVirtual) (xx, yy, xy reg.VecVirtual) {
	var sums [2][3]reg.VecVirtual
	for i := range sums {
		for k := range sums[i] {
			sums[i][k] = g.YMM()
			g.VXORPS(sums[i][k], sums[i][k], sums[i][k])
		}
	}
	i, left := g.GP64(), g.GP64()
	g.XORQ(i, i)
	g.MOVQ(n, left)
	add := func(k int) {
		a, b := g.YMM(), g.YMM()
		g.VMOVUPS(Mem{Base: x, Index: i, Scale: 1, Disp: vector * k}, a)
		g.VMOVUPS(Mem{Base: y, Index: i, Scale: 1, Disp: vector * k}, b)
		g.VFMADD231PS(a, a, sums[k][0])
		g.VFMADD231PS(b, b, sums[k][1])
		g.VFMADD231PS(a, b, sums[k][2])
	}
	g.Label("two")
	g.SUBQ(U8(2), left)
	g.JLT(LabelRef("rest"))
	add(0)
	add(1)
	g.ADDQ(U8(2*vector), i)
	g.JMP(LabelRef("two"))
	g.Label("rest")
	g.ADDQ(U8(2), left)
	g.JZ(LabelRef("sum"))
	add(0)
	g.Label("sum")
	for k := range 3 {
		g.VADDPS(sums[1][k], sums[0][k], sums[0][k])
	}
	return sums[0][0], sums[0][1], sums[0][2]
}

// rotate makes x c·x - s·y, and y s·x + c·y.
func (g *gen) rotate(label string, x, y, n reg.GPVirtual, c, s reg.VecVirtual) {
	i, left := g.GP64(), g.GP64()
	g.XORQ(i, i)
	g.MOVQ(n, left)
	g.Label(label)
	a, b, t := g.YMM(), g.YMM(), g.YMM()
	to := func(base reg.GPVirtual) Mem { return Mem{Base: base, Index: i, Scale: 1} }
	g.VMOVUPS(to(x), a)
	g.VMOVUPS(to(y), b)
	g.VMULPS(s, a, t)
	g.VFMADD231PS(c, b, t)
	g.VMULPS(s, b, b)
	g.VFMSUB231PS(c, a, b)
	g.VMOVUPS(b, to(x))
	g.VMOVUPS(t, to(y))
	g.ADDQ(U8(vector), i)
	g.DECQ(left)
	g.JNZ(LabelRef(label))
}
