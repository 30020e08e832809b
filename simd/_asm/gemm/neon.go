package main

import (
	"bytes"
	"fmt"
	"go/format"
	"strings"

	"github.com/rayo-go/rayo/internal/genfile"
)

// The NEON kernels. avo does not support arm64, and Go's assembler lacks the multiplication by one
// lane of a vector, so the generator writes this instruction as a word.

const (
	neonRows    = 7                       // 21 accumulators, 7 vectors of A, 3 of B: 31 of 32 registers
	neonVectors = 3                       // of a tile
	neonLanes   = 4                       // lanes of a vector, and steps of k in one pass
	neonCols    = neonVectors * neonLanes // of a tile
	neonWide    = 4                       // vectors that fewRows computes side by side
	neonDots    = 4                       // rows that dots multiplies at once
	neonA       = 21                      // first register of A
	neonB       = 28                      // first register of B
)

type neon struct {
	asm, stubs bytes.Buffer
	labels     int
}

func (g *neon) printf(format string, args ...any) { fmt.Fprintf(&g.asm, format+"\n", args...) }

// op writes one instruction.
func (g *neon) op(format string, args ...any) { g.printf("\t"+format, args...) }

func (g *neon) label(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}

// fmlaLane writes vd += vn * vm[lane].
func (g *neon) fmlaLane(vd, vn, vm, lane int) {
	g.op("WORD $0x%08X // fmla v%d.4s, v%d.4s, v%d.s[%d]", 0x4F801000|lane&1<<21|vm>>4<<20|vm&15<<16|lane>>1<<11|vn<<5|vd, vd, vn, vm, lane)
}

// fmla writes vd += vn * vm.
func (g *neon) fmla(vd, vn, vm int) { g.op("VFMLA V%d.S4, V%d.S4, V%d.S4", vm, vn, vd) }

func (g *neon) zero(v int) { g.op("VEOR V%d.B16, V%d.B16, V%d.B16", v, v, v) }

// ones fills a register with 1. A multiply-add with it is an addition.
func (g *neon) ones(v int) {
	g.op("MOVD $0x3f800000, R16")
	g.op("VDUP R16, V%d.S4", v)
}

func vectorList(first, n int) string {
	var vs []string
	for i := range n {
		vs = append(vs, fmt.Sprintf("V%d.S4", first+i))
	}
	return "[" + strings.Join(vs, ", ") + "]"
}

// function begins a function and declares it.
func (g *neon) function(name, doc string, frame int, params ...string) {
	size := 0
	var list []string
	for _, p := range params {
		n, typ, _ := strings.Cut(p, " ")
		list = append(list, n+" "+typ)
		size = (size + 7) / 8 * 8
		switch typ {
		case "bool":
			size++
		case "float32":
			size += 4
		default:
			size += 8
		}
	}
	fmt.Fprintf(&g.stubs, "\n// %s %s\n//\n//go:noescape\nfunc %s(%s)\n", name, doc, name, strings.Join(list, ", "))
	g.printf("\n// func %s(%s)", name, strings.Join(list, ", "))
	g.printf("TEXT ·%s(SB), NOSPLIT, $%d-%d", name, frame, size)
}

// tile writes the kernel of mr rows. Panels of B are padded: the products of the padding are
// computed and dropped.
func (g *neon) tile(mr int) {
	g.function(fmt.Sprintf("gemmTile%dNEON", mr), fmt.Sprintf("is the tile kernel of %d rows: see gemmTile.", mr), 4*neonCols,
		"a *float32", "b *float32", "c *float32", "bias *float32", "next *float32",
		"as int", "bs int", "bp int", "cs int", "ns int", "k int", "n int", "add bool")
	panel, done := g.label("panel"), g.label("done")
	g.op("MOVD n+88(FP), R10")
	g.op("MOVD bias+24(FP), R15")
	g.op("MOVD b+8(FP), R20")
	g.op("MOVD c+16(FP), R21")
	g.op("MOVD as+40(FP), R14")
	g.op("MOVD bs+48(FP), R9")
	g.op("MOVD cs+64(FP), R13")
	g.op("MOVBU add+96(FP), R19")
	g.printf("%s:", panel)
	g.op("CMP $0, R10")
	g.op("BLE %s", done)
	g.op("MOVD a+0(FP), R0")
	for i := 1; i < mr; i++ {
		g.op("ADD R14, R%d, R%d", i-1, i)
	}
	g.op("MOVD R20, R8")
	g.op("MOVD k+80(FP), R11")
	g.startTile(mr)
	g.multiplyTile(mr)
	part := g.storeTile(mr, panel)
	g.storePart(mr, part)
	g.printf("%s:", done)
	g.op("RET")
}

// neonAcc is the first register of the sums of row i.
func neonAcc(i int) int { return i * neonVectors }

// startTile sets the sums to the bias, or to zeros.
func (g *neon) startTile(mr int) {
	for i := range mr * neonVectors {
		g.zero(i)
	}
	// The last panel adds its bias one by one.
	start := g.label("start")
	g.op("CBZ R15, %s", start)
	g.op("CMP $%d, R10", neonCols)
	g.op("BLT %s", start)
	g.op("VLD1.P %d(R15), %s", 4*neonCols, vectorList(0, neonVectors))
	for i := 1; i < mr; i++ {
		for v := range neonVectors {
			g.op("VMOV V%d.B16, V%d.B16", v, neonAcc(i)+v)
		}
	}
	g.printf("%s:", start)
}

// multiplyTile adds the terms: neonLanes of them in each pass of a loop, then the others one by
// one.
func (g *neon) multiplyTile(mr int) {
	loop, rest, last, store := g.label("loop"), g.label("rest"), g.label("last"), g.label("store")
	g.op("SUBS $%d, R11", neonLanes)
	g.op("BLT %s", rest)
	g.printf("%s:", loop)
	for i := range mr {
		g.op("VLD1.P 16(R%d), [V%d.S4]", i, neonA+i)
	}
	for lane := range neonLanes {
		g.op("VLD1 (R8), %s", vectorList(neonB, neonVectors))
		g.op("ADD R9, R8")
		for i := range mr {
			for v := range neonVectors {
				g.fmlaLane(neonAcc(i)+v, neonB+v, neonA+i, lane)
			}
		}
	}
	g.op("SUBS $%d, R11", neonLanes)
	g.op("BGE %s", loop)
	g.printf("%s:", rest)
	g.op("ADDS $%d, R11", neonLanes)
	g.op("BEQ %s", store)
	g.printf("%s:", last)
	g.op("VLD1 (R8), %s", vectorList(neonB, neonVectors))
	g.op("ADD R9, R8")
	for i := range mr {
		g.op("VLD1R.P 4(R%d), [V%d.S4]", i, neonA+i)
		for v := range neonVectors {
			g.fmla(neonAcc(i)+v, neonB+v, neonA+i)
		}
	}
	g.op("SUBS $1, R11")
	g.op("BNE %s", last)
	g.printf("%s:", store)
}

// storeTile stores the sums of a whole panel, or adds them to C, and goes on to the next panel. It
// returns the label of the code that stores the last panel.
func (g *neon) storeTile(mr int, panel string) (part string) {
	part, plain := g.label("part"), g.label("plain")
	g.op("MOVD R21, R12")
	g.op("CMP $%d, R10", neonCols)
	g.op("BLT %s", part)
	g.op("CBZ R19, %s", plain)
	g.ones(neonA)
	for i := range mr {
		g.op("VLD1 (R12), %s", vectorList(neonB, neonVectors))
		g.op("ADD R13, R12")
		for v := range neonVectors {
			g.fmla(neonAcc(i)+v, neonB+v, neonA)
		}
	}
	g.op("MOVD R21, R12")
	g.printf("%s:", plain)
	for i := range mr {
		g.op("VST1 %s, (R12)", vectorList(neonAcc(i), neonVectors))
		g.op("ADD R13, R12")
	}
	g.op("MOVD bp+56(FP), R16")
	g.op("ADD R16, R20")
	g.op("ADD $%d, R21", 4*neonCols)
	g.op("SUB $%d, R10", neonCols)
	g.op("B %s", panel)
	return part
}

// storePart stores the last, partial panel through the stack, element by element.
func (g *neon) storePart(mr int, part string) {
	g.printf("%s:", part)
	for i := range mr {
		element, nobias, noadd := g.label("element"), g.label("nobias"), g.label("noadd")
		g.op("MOVD $row-%d(SP), R16", 4*neonCols)
		g.op("VST1 %s, (R16)", vectorList(neonAcc(i), neonVectors))
		g.op("MOVD R12, R17")
		g.op("MOVD R15, R22")
		g.op("MOVD R10, R11")
		g.printf("%s:", element)
		g.op("FMOVS.P 4(R16), F%d", neonB)
		g.op("CBZ R15, %s", nobias)
		g.op("FMOVS.P 4(R22), F%d", neonB+1)
		g.op("FADDS F%d, F%d", neonB+1, neonB)
		g.printf("%s:", nobias)
		g.op("CBZ R19, %s", noadd)
		g.op("FMOVS (R17), F%d", neonB+1)
		g.op("FADDS F%d, F%d", neonB+1, neonB)
		g.printf("%s:", noadd)
		g.op("FMOVS.P F%d, 4(R17)", neonB)
		g.op("SUBS $1, R11")
		g.op("BNE %s", element)
		g.op("ADD R13, R12")
	}
}

// fewRows writes the kernel that adds scaled rows of B to one row of C, four
// rows at a time.
func (g *neon) fewRows() {
	g.function("gemmRows1NEON", "is a rowsFunc of 1 row.", 0,
		"a *float32", "b *float32", "c *float32", "as int", "bs int", "cs int", "k int", "n int")
	g.op("MOVD a+0(FP), R0")
	g.op("MOVD b+8(FP), R1")
	g.op("MOVD bs+32(FP), R9")
	g.op("MOVD k+48(FP), R11")
	next := g.label("next")
	for _, kk := range []int{neonLanes, 1} {
		chunk, end := g.label("chunk"), next
		g.printf("%s:", chunk)
		g.op("CMP $%d, R11", kk)
		g.op("BLT %s", end)
		if kk == 1 {
			g.op("VLD1R.P 4(R0), [V0.S4]")
		} else {
			g.op("VLD1.P %d(R0), [V0.S4]", 4*kk)
		}
		for p := range kk {
			if p == 0 {
				g.op("MOVD R1, R2")
			} else {
				g.op("ADD R9, R%d, R%d", 1+p, 2+p)
			}
		}
		g.op("ADD R9, R%d, R1", 1+kk) // one row after the chunk
		g.op("MOVD c+16(FP), R12")
		g.op("MOVD n+56(FP), R10")
		for _, wide := range []int{neonWide, 1} {
			columns, out := g.label("columns"), g.label("out")
			g.op("SUBS $%d, R10", wide*neonLanes)
			g.op("BLT %s", out)
			g.printf("%s:", columns)
			g.op("VLD1 (R12), %s", vectorList(4, wide))
			for p := range kk {
				g.op("VLD1.P %d(R%d), %s", 16*wide, 2+p, vectorList(8, wide))
				for v := range wide {
					g.fmlaLane(4+v, 8+v, 0, p)
				}
			}
			g.op("VST1.P %s, %d(R12)", vectorList(4, wide), 16*wide)
			g.op("SUBS $%d, R10", wide*neonLanes)
			g.op("BGE %s", columns)
			g.printf("%s:", out)
			g.op("ADD $%d, R10", wide*neonLanes)
		}
		element, over := g.label("element"), g.label("over")
		g.op("CBZ R10, %s", over)
		g.printf("%s:", element)
		// One lane of the row, zeros in the others.
		g.op("FMOVS (R12), F4")
		for p := range kk {
			g.op("FMOVS.P 4(R%d), F8", 2+p)
			g.fmlaLane(4, 8, 0, p)
		}
		g.op("FMOVS.P F4, 4(R12)")
		g.op("SUBS $1, R10")
		g.op("BNE %s", element)
		g.printf("%s:", over)
		g.op("SUB $%d, R11", kk)
		g.op("B %s", chunk)
		g.printf("%s:", next)
		next = g.label("next")
	}
	g.op("RET")
}

// faddp writes the sums of adjacent lanes of vn, and then of vm, to vd.
func (g *neon) faddp(vd, vn, vm int) {
	g.op("WORD $0x%08X // faddp v%d.4s, v%d.4s, v%d.4s", 0x6E20D400|vm<<16|vn<<5|vd, vd, vn, vm)
}

// dots writes the kernel that multiplies rows by one vector.
func (g *neon) dots() {
	g.function("gemmDots1NEON", "is a dotsFunc of 1.", 0,
		"s *float32", "p *float32", "c *float32", "ss int", "cr int", "cq int", "k int", "rows int")
	g.op("MOVD s+0(FP), R0")
	g.op("MOVD c+16(FP), R12")
	g.op("MOVD ss+24(FP), R9")
	g.op("MOVD cr+32(FP), R13")
	g.op("MOVD rows+56(FP), R14")
	next := g.label("next")
	for _, rows := range []int{neonDots, 1} {
		group := g.label("group")
		g.printf("%s:", group)
		g.op("CMP $%d, R14", rows)
		g.op("BLT %s", next)
		g.op("MOVD p+8(FP), R1")
		g.op("MOVD k+48(FP), R11")
		for r := range rows {
			if r == 0 {
				g.op("MOVD R0, R2")
			} else {
				g.op("ADD R9, R%d, R%d", 1+r, 2+r)
			}
			g.zero(2 * r)
			g.zero(2*r + 1)
		}
		g.op("ADD R9, R%d, R0", 1+rows)
		// Two accumulators for each row hide the latency of the multiply-add.
		loop, half, rest, last, sum := g.label("loop"), g.label("half"), g.label("rest"), g.label("last"), g.label("sum")
		g.op("SUBS $%d, R11", 2*neonLanes)
		g.op("BLT %s", half)
		g.printf("%s:", loop)
		g.op("VLD1.P 32(R1), [V16.S4, V17.S4]")
		for r := range rows {
			g.op("VLD1.P 32(R%d), [V18.S4, V19.S4]", 2+r)
			g.fmla(2*r, 18, 16)
			g.fmla(2*r+1, 19, 17)
		}
		g.op("SUBS $%d, R11", 2*neonLanes)
		g.op("BGE %s", loop)
		g.printf("%s:", half)
		g.op("ADD $%d, R11", neonLanes)
		g.op("CMP $0, R11")
		g.op("BLT %s", rest)
		g.op("VLD1.P 16(R1), [V16.S4]")
		for r := range rows {
			g.op("VLD1.P 16(R%d), [V18.S4]", 2+r)
			g.fmla(2*r, 18, 16)
		}
		g.op("SUB $%d, R11", neonLanes)
		g.printf("%s:", rest)
		g.op("ADDS $%d, R11", neonLanes)
		g.op("BEQ %s", sum)
		g.printf("%s:", last)
		g.op("FMOVS.P 4(R1), F16")
		for r := range rows {
			g.op("FMOVS.P 4(R%d), F18", 2+r)
			g.fmla(2*r+1, 18, 16)
		}
		g.op("SUBS $1, R11")
		g.op("BNE %s", last)
		g.printf("%s:", sum)
		for r := range rows {
			g.faddp(2*r, 2*r, 2*r+1)
			g.faddp(2*r, 2*r, 2*r)
			g.faddp(2*r, 2*r, 2*r)
			g.op("FMOVS (R12), F18")
			g.op("FADDS F%d, F18", 2*r)
			g.op("FMOVS F18, (R12)")
			g.op("ADD R13, R12")
		}
		g.op("SUB $%d, R14", rows)
		g.op("B %s", group)
		g.printf("%s:", next)
		next = g.label("next")
	}
	g.op("RET")
}

// convRow writes the kernel of one row of a convolution.
func (g *neon) convRow() {
	g.function("convRowNEON", "is a convRowFunc.", 0,
		"y *float32", "x *float32", "offsets *int", "weights *float32", "start float32", "taps int", "n int")
	g.op("MOVD y+0(FP), R0")
	g.op("MOVD x+8(FP), R1")
	g.op("MOVWU start+32(FP), R16")
	g.op("VDUP R16, V16.S4")
	g.op("MOVD n+48(FP), R10")
	const wide = 8
	for _, w := range []int{wide, 1, 0} {
		top, end, loop, store := g.label("columns"), g.label("end"), g.label("taps"), g.label("store")
		step := max(w*neonLanes, 1)
		g.op("SUBS $%d, R10", step)
		g.op("BLT %s", end)
		g.printf("%s:", top)
		for v := range max(w, 1) {
			g.op("VMOV V16.B16, V%d.B16", v)
		}
		g.op("MOVD offsets+16(FP), R2")
		g.op("MOVD weights+24(FP), R3")
		g.op("MOVD taps+40(FP), R4")
		g.op("CBZ R4, %s", store)
		g.printf("%s:", loop)
		g.op("MOVD.P 8(R2), R5")
		g.op("ADD R1, R5")
		g.op("VLD1R.P 4(R3), [V17.S4]")
		switch w {
		case 0:
			g.op("FMOVS (R5), F18")
			g.fmla(0, 18, 17)
		case 1:
			g.op("VLD1 (R5), [V18.S4]")
			g.fmla(0, 18, 17)
		default:
			for v := 0; v < w; v += 4 {
				g.op("VLD1.P 64(R5), %s", vectorList(18, 4))
				for q := range 4 {
					g.fmla(v+q, 18+q, 17)
				}
			}
		}
		g.op("SUBS $1, R4")
		g.op("BNE %s", loop)
		g.printf("%s:", store)
		switch w {
		case 0:
			g.op("FMOVS.P F0, 4(R0)")
		case 1:
			g.op("VST1.P [V0.S4], 16(R0)")
		default:
			for v := 0; v < w; v += 4 {
				g.op("VST1.P %s, 64(R0)", vectorList(v, 4))
			}
		}
		g.op("ADD $%d, R1", 4*step)
		g.op("SUBS $%d, R10", step)
		g.op("BGE %s", top)
		g.printf("%s:", end)
		g.op("ADD $%d, R10", step)
	}
	g.op("RET")
}

// writeNEON writes the files for arm64.
func writeNEON(dir string) {
	g := new(neon)
	const header = "// Code generated by " + header + "; DO NOT EDIT.\n\n//go:build arm64 && !noasm\n\n"
	g.asm.WriteString(header + "#include \"textflag.h\"\n")
	g.stubs.WriteString(header + "package simd\n")
	for mr := 1; mr <= neonRows; mr++ {
		g.tile(mr)
	}
	g.fewRows()
	g.dots()
	g.convRow()
	stubs, err := format.Source(g.stubs.Bytes())
	check(err)
	check(genfile.Write(dir+"/gemm_neon_arm64.s", g.asm.Bytes()))
	check(genfile.Write(dir+"/gemm_neon_arm64.go", stubs))
}
