// Command gemm writes the assembly of the matrix kernels of package simd: for
// AVX-512, for AVX2 with FMA and for NEON.
//
// Run it through go generate in folder simd.
package main

import (
	"fmt"
	"os"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"

	"github.com/rayo-go/rayo/simd/asm/amd64file"
)

const header = "go run ./gemm"

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gemm DIR")
		os.Exit(2)
	}
	dir := os.Args[1]
	writeNEON(dir)
	for _, v := range []isa{avx512{}, avx2{}} {
		g := &gen{Context: build.NewContext(), isa: v}
		g.ConstraintExpr("amd64,!noasm")
		if v, ok := v.(avx2); ok {
			v.maskTable(g)
		}
		for mr := 1; mr <= v.rows(); mr++ {
			g.tile(mr)
		}
		g.tilePack()
		g.tileStream()
		if v.braids() {
			g.tileBraid()
			g.braid()
		}
		for mr := 1; mr <= mostRows; mr++ {
			g.fewRows(mr)
		}
		for q := 1; q <= v.dotsMost(); q++ {
			g.dots(q)
		}
		g.transpose()
		g.copyPanels()
		g.correlate()
		g.correlatePair()
		g.gather()
		g.peak()
		check(amd64file.Write(dir, "gemm_"+v.lower()+"_amd64", header, g.Context))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "gemm:", err)
		os.Exit(1)
	}
}

// gen is a build context for an instruction set.
type gen struct {
	*build.Context
	isa
	labels int

	share, owed, ahead operand.Mem // used by hints
}

// function begins a function whose pointer arguments do not escape.
func (g *gen) function(name, signature string, doc ...string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(doc...)
}

// label makes a name that is unique in the file, so that bodies can be
// emitted more than once.
func (g *gen) label(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}
