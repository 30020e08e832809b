// Command arrays writes the AVX2 and AVX-512 assembly of package simd over words: sorts, gathers,
// repetitions, folds of integers.
//
// Run it through go generate in folder simd.
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

const lanes = 8

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: arrays DIR")
		os.Exit(2)
	}
	g := &gen{Context: build.NewContext()}
	g.ConstraintExpr("amd64,!noasm")
	g.flip()
	g.floatKeys()
	g.floatBits()
	g.partition()
	for _, rows := range []int{4, 8, 16} {
		g.network(rows)
	}
	g.gatherRows()
	g.gatherWords()
	g.repeat()
	g.repeatShort()
	for _, w := range []int{4, 8} {
		g.weave(w)
		g.unweave(w)
	}
	g.rows(false)
	g.rows(true)
	g.weaveRows()
	g.transpose()
	g.smallTiles()
	g.turnRows()
	for _, w := range []int{4, 8, 16} {
		g.strip(w)
	}
	g.stripColumns()
	for _, kind := range []string{"", "Stream", "Skew"} {
		g.join(kind)
	}
	g.words()
	g.scanWords()
	g.scanShortRows()
	g.columns()
	g.byteColumns("byteColumnsMaxAVX2", "the maximum", g.VPMAXUB)
	g.byteColumns("byteColumnsMinAVX2", "the minimum", g.VPMINUB)
	for base, c := range map[string]*gen{"arrays_avx2_amd64": g, "arrays_avx512_amd64": avx512()} {
		if err := amd64file.Write(os.Args[1], base, "go run ./arrays", c.Context); err != nil {
			fmt.Fprintln(os.Stderr, "arrays:", err)
			os.Exit(1)
		}
	}
}

type gen struct {
	*build.Context
	lanesFlipped map[int]Mem    // see flips
	oddNumbers   Mem            // see odds
	counts       Mem            // see laneCounts
	laneNumbers  Mem            // 0 to 7, after the first kernel that uses them
	ones         reg.VecVirtual // 1 in each lane, for kernels over columns
}

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

// global returns a static constant.
func (g *gen) global(name string, words ...uint64) Mem {
	m := g.StaticGlobal(name)
	g.DataAttributes(attr.RODATA | attr.NOPTR)
	for i, w := range words {
		g.AddDatum(8*i, U64(w))
	}
	return m
}

// splat returns a register with a constant in each lane.
func (g *gen) splat(bits uint32) reg.VecVirtual {
	v, w := g.YMM(), g.GP32()
	g.MOVL(U32(bits), w)
	g.VMOVD(w, v.AsX())
	g.VPBROADCASTD(v.AsX(), v)
	return v
}
