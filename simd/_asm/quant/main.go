// Command quant writes the assembly of package simd for quantised blocks, for
// AVX-512 and for AVX2: each format made float32, and multiplied by a vector.
//
// Run it through go generate in folder simd.
package main

import (
	"bytes"
	"fmt"
	"go/format"
	"os"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"

	"github.com/rayo-go/rayo/gguf/block"
)

const header = "go run ./quant"

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
		for _, f := range block.Formats() {
			g.dequantize(f)
			g.dot(f)
		}
		g.write(os.Args[1])
	}
}

// write prints the assembly and the Go declarations.
func (g *gen) write(dir string) {
	f, err := g.Result()
	check(err)
	check(pass.Compile.Execute(f))
	cfg := printer.Config{Name: header, Pkg: "simd"}
	for _, p := range []struct {
		suffix string
		print  printer.Builder
	}{{".s", printer.NewGoAsm}, {".go", printer.NewStubs}} {
		out, err := p.print(cfg).Print(f)
		check(err)
		if p.suffix == ".go" {
			out, err = format.Source(out)
			check(err)
		}
		// The command is known, the avo in use is in go.mod.
		out = bytes.Replace(out, []byte("by command: "+header+". DO NOT EDIT."), []byte("by "+header+"; DO NOT EDIT."), 1)
		base := map[int]string{8: "quant_avx2_amd64", 16: "quant_avx512_amd64"}[g.lanes]
		check(os.WriteFile(dir+"/"+base+p.suffix, out, 0o644))
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "quant:", err)
		os.Exit(1)
	}
}

// function starts a function whose pointers do not escape.
func (g *gen) function(name, signature, doc string) {
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Pragma("noescape")
	g.SignatureExpr(signature)
	g.Doc(doc)
}
