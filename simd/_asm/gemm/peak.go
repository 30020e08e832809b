package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/operand"
)

// peak writes a loop that only multiplies, with enough independent multiplications to hide their
// latency: the limit with which kernels are compared.
func (g *gen) peak() {
	g.function("gemmPeak"+g.upper(),
		"func(passes int)",
		fmt.Sprintf("gemmPeak%s does peakVectors multiplications of vectors in each pass.", g.upper()))
	passes := g.GP64()
	g.Load(g.Param("passes"), passes)
	for i := 0; i < peakVectors+2; i++ {
		g.zero(g, g.vector(i))
	}
	loop := g.label("loop")
	g.Label(loop)
	for i := 0; i < peakVectors; i++ {
		g.VFMADD231PS(g.vector(peakVectors), g.vector(peakVectors+1), g.vector(i))
	}
	g.DECQ(passes)
	g.JNE(LabelRef(loop))
	g.VZEROUPPER()
	g.RET()
}

// peakVectors is the number of accumulators.
const peakVectors = 12
