// Command lanes writes the AVX2 assembly of package linalg. Its kernels compute on eight matrices
// at a time: element (i, j) of all eight is one vector, so no operation crosses lanes.
//
// Run it through go generate in folder simd/linalg.
package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/rayo-go/rayo/simd/asm/amd64file"
)

const vector = 32 // bytes

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: lanes DIR")
		os.Exit(2)
	}
	g := &gen{Context: build.NewContext()}
	g.ConstraintExpr("amd64,!noasm")
	g.transpose()
	g.product("lanesProductAVX2", false)
	g.product("rowsProductAVX2", true)
	g.by("Scale", g.VMULPS)
	g.by("Divide", g.VDIVPS)
	g.pivot()
	g.ql()
	g.turn()
	g.jacobi()
	if err := amd64file.Write(os.Args[1], "lanes_avx2_amd64", "go run ./lanes", g.Context); err != nil {
		fmt.Fprintln(os.Stderr, "lanes:", err)
		os.Exit(1)
	}
}

type gen struct{ *build.Context }

func (g *gen) function(name, signature string, doc ...string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(doc...)
}

func (g *gen) ret() {
	g.VZEROUPPER()
	g.RET()
}

func (g *gen) param(name string) reg.GPVirtual {
	return g.Load(g.Param(name), g.GP64()).(reg.GPVirtual)
}

// splat returns a register with a constant in each lane.
func (g *gen) splat(bits uint32) reg.VecVirtual {
	v, w := g.YMM(), g.GP32()
	g.MOVL(U32(bits), w)
	g.VMOVD(w, v.AsX())
	g.VPBROADCASTD(v.AsX(), v)
	return v
}

// by writes a kernel that combines each vector with the same other vector.
func (g *gen) by(name string, combine func(ops ...Op)) {
	name = "lanes" + name + "AVX2"
	g.function(name, "func(x, f *float32, stride, n int)",
		name+" combines n vectors of x, stride bytes apart, with the vector f. n is positive.")
	x, f, stride, n := g.param("x"), g.param("f"), g.param("stride"), g.param("n")
	factor, v := g.YMM(), g.YMM()
	g.VMOVUPS(Mem{Base: f}, factor)
	g.Label("next")
	g.VMOVUPS(Mem{Base: x}, v)
	combine(factor, v, v)
	g.VMOVUPS(v, Mem{Base: x})
	g.ADDQ(stride, x)
	g.DECQ(n)
	g.JNZ(LabelRef("next"))
	g.ret()
}

// pivot writes the kernel that finds the greatest magnitudes.
func (g *gen) pivot() {
	g.function("lanesPivotAVX2", "func(at *int32, most, x *float32, stride, n int)",
		"lanesPivotAVX2 sets most, in each lane, to the greatest magnitude that is not NaN in n vectors of x, stride bytes apart, and",
		"at to the index of its first vector. In lanes of only NaN it sets most to -1 and at to 0. n is positive.")
	at, most, x, stride, n := g.param("at"), g.param("most"), g.param("x"), g.param("stride"), g.param("n")
	magnitude, one, place, best, where, v, above := g.splat(1<<31-1), g.splat(1), g.YMM(), g.splat(0xbf800000), g.YMM(), g.YMM(), g.YMM()
	g.VPXOR(place, place, place)
	g.VPXOR(where, where, where)
	g.Label("next")
	g.VANDPS(Mem{Base: x}, magnitude, v)
	g.VCMPPS(U8(0x1e), best, v, above) // greater, ordered, quiet
	g.VBLENDVPS(above, v, best, best)
	g.VBLENDVPS(above, place, where, where)
	g.VPADDD(one, place, place)
	g.ADDQ(stride, x)
	g.DECQ(n)
	g.JNZ(LabelRef("next"))
	g.VMOVUPS(best, Mem{Base: most})
	g.VMOVDQU(where, Mem{Base: at})
	g.ret()
}
