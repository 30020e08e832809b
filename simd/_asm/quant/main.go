// Command quant writes the assembly of package simd for quantised blocks, for AVX-512 and for AVX2:
// conversions of each format to float32, and products with a vector. It writes products of integers
// for AVX2, VNNI, NEON and SDOT.
//
// Run it through go generate in folder simd.
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/simd/asm/amd64file"
)

const header = "go run ./quant"

// formats are the formats with kernels.
var formats = []block.Format{block.Q4_0, block.Q4_1, block.Q5_0, block.Q5_1, block.Q8_0, block.Q4_K, block.Q5_K, block.Q6_K}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: quant DIR")
		os.Exit(2)
	}
	for _, m := range []struct {
		name  string
		lanes int
	}{{"AVX2", 8}, {"AVX512", 16}} {
		g := &gen{Context: build.NewContext(), name: m.name, lanes: m.lanes}
		g.ConstraintExpr("amd64,!noasm")
		g.counts()
		for _, f := range formats {
			g.dequantize(f, false)
			g.dequantize(f, true)
			g.dot(f)
		}
		check(amd64file.Write(os.Args[1], "quant_"+strings.ToLower(m.name)+"_amd64", header, g.Context))
	}
	for _, m := range []struct {
		name string
		vnni bool
	}{{"AVX2", false}, {"VNNI", true}} {
		g := newGen(m.name, m.vnni)
		g.ConstraintExpr("amd64,!noasm")
		if !m.vnni {
			g.int8Round()
			g.int8Pack()
			for _, f := range integers {
				g.levels8(f)
			}
		}
		for _, f := range integers {
			for _, rows := range []int{1, 4} {
				g.int8Dot(f, rows)
			}
			if !m.vnni && hasColumns(f) {
				g.int8Columns(f)
			}
		}
		if m.vnni {
			for _, group := range []int{32, 16} {
				for rows := 1; rows <= wideTileRows; rows++ {
					g.wideTile(rows, group)
				}
			}
		} else {
			for _, t := range g.tiles() {
				t.write()
			}
		}
		for _, write := range g.later {
			write()
		}
		check(amd64file.Write(os.Args[1], "int8_"+strings.ToLower(m.name)+"_amd64", header, g.Context))
	}
	g := newGen("AVX512", true)
	g.ConstraintExpr("amd64,!noasm")
	for _, f := range integers {
		if body := wideBodies[f]; body != nil {
			g.int8Wide(f, body)
		}
	}
	for _, write := range g.later {
		write()
	}
	check(amd64file.Write(os.Args[1], "int8_avx512_amd64", header, g.Context))
	writeNEON(os.Args[1])
}

// newGen returns a gen for products of integers.
func newGen(name string, vnni bool) *gen {
	return &gen{Context: build.NewContext(), name: name, lanes: 8, vnni: vnni, constants: map[[32]byte]string{}, uses: map[[32]byte]int{}}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quant:", err)
		os.Exit(1)
	}
}

// function begins a function whose pointer arguments do not escape.
func (g *gen) function(name, signature, doc string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(doc)
}
