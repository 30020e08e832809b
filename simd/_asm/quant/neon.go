package main

import (
	"bytes"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/internal/genfile"
)

// neon writes functions for arm64, which avo does not support. Go's assembler lacks many of the
// instructions; they are written as words.
type neon struct {
	asm, stubs bytes.Buffer
	offsets    map[string]int // offsets of the parameters of the function
	used       [32]bool       // vector registers in use
	ints       int            // number of general registers in use
	labels     int

	pool [][16]byte       // constants of the file
	held map[[16]byte]vec // constants in registers
	uses map[[16]byte]int

	dotProduct bool // use SDOT (optional in Armv8.2, required in Armv8.4) instead of SMULL
}

// vec is a vector register.
type vec int

// generals are the general registers that functions may use, in the order of allocation.
var generals = []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23, 24}

// constantsBase holds the address of the constants.
const constantsBase = "R25"

func (g *neon) printf(format string, args ...any) { fmt.Fprintf(&g.asm, format+"\n", args...) }

// op writes one instruction.
func (g *neon) op(format string, args ...any) { g.printf("\t"+format, args...) }

func (g *neon) label(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}

// v allocates a vector register; free releases it.
func (g *neon) v() vec {
	i := slices.Index(g.used[:], false)
	if i < 0 {
		panic("no vector register is free")
	}
	g.used[i] = true
	return vec(i)
}

func (g *neon) vs(n int) []vec {
	var all []vec
	for range n {
		all = append(all, g.v())
	}
	return all
}

func (g *neon) free(all ...vec) {
	for _, v := range all {
		if !g.used[v] {
			panic("a vector register is released twice")
		}
		g.used[v] = false
	}
}

// gp allocates a general register for the rest of the function.
func (g *neon) gp() string {
	g.ints++
	return fmt.Sprintf("R%d", generals[g.ints-1])
}

// function begins a function with parameters "name type" and declares it.
func (g *neon) function(name, doc string, params ...string) {
	g.offsets, g.used, g.ints, g.held, g.uses = map[string]int{}, [32]bool{}, 0, nil, map[[16]byte]int{}
	size := 0
	for _, p := range params {
		n, typ, _ := strings.Cut(p, " ")
		bytes := 8
		if strings.HasSuffix(typ, "int32") && typ[0] != '*' {
			bytes = 4
		}
		size = (size + bytes - 1) / bytes * bytes
		g.offsets[n] = size
		size += bytes
	}
	list := strings.Join(params, ", ")
	fmt.Fprintf(&g.stubs, "\n// %s %s\n//\n//go:noescape\nfunc %s(%s)\n", name, doc, name, list)
	g.printf("\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d", name, list, name, size)
	g.op("MOVD $int8Constants<>(SB), %s", constantsBase)
}

// load loads a parameter of 8 bytes to a new register.
func (g *neon) load(param string) string {
	r := g.gp()
	g.op("MOVD %s+%d(FP), %s", param, g.offsets[param], r)
	return r
}

// fresh returns a new register with the sum of two registers.
func (g *neon) fresh(r, plus string) string {
	s := g.gp()
	g.op("ADD %s, %s, %s", plus, r, s)
	return s
}

// add adds a number to a register.
func (g *neon) add(n int, r string) { g.op("ADD $%d, %s", n, r) }

// word3 writes an instruction of three vectors as a word.
func (g *neon) word3(code uint32, name string, d, n, m vec) {
	g.op("WORD $0x%08X // %s v%d, v%d, v%d", code|uint32(m)<<16|uint32(n)<<5|uint32(d), name, d, n, m)
}

// word2 writes an instruction of two vectors as a word.
func (g *neon) word2(code uint32, name string, d, n vec) {
	g.op("WORD $0x%08X // %s v%d, v%d", code|uint32(n)<<5|uint32(d), name, d, n)
}

// lane writes an instruction of two vectors and one lane of 32 bits of a third.
func (g *neon) lane(code uint32, name string, d, n, m vec, lane int) {
	g.op("WORD $0x%08X // %s v%d, v%d, v%d[%d]", code|uint32(lane&1)<<21|uint32(m)<<16|uint32(lane>>1)<<11|uint32(n)<<5|uint32(d), name, d, n, m, lane)
}

func (g *neon) sdotLane(d, n, m vec, lane int) { g.lane(0x4F80E000, "sdot.4s", d, n, m, lane) }
func (g *neon) fmlaLane(d, n, m vec, lane int) { g.lane(0x4F801000, "fmla.4s", d, n, m, lane) }
func (g *neon) fmulLane(d, n, m vec, lane int) { g.lane(0x4F809000, "fmul.4s", d, n, m, lane) }

func (g *neon) fmul(d, n, m vec)   { g.word3(0x6E20DC00, "fmul.4s", d, n, m) }
func (g *neon) fadd(d, n, m vec)   { g.word3(0x4E20D400, "fadd.4s", d, n, m) }
func (g *neon) faddp(d, n, m vec)  { g.word3(0x6E20D400, "faddp.4s", d, n, m) }
func (g *neon) addp(d, n, m vec)   { g.op("VADDP V%d.S4, V%d.S4, V%d.S4", m, n, d) }
func (g *neon) scvtf(d, n vec)     { g.word2(0x4E21D800, "scvtf.4s", d, n) }
func (g *neon) fcvtl(d, n vec)     { g.word2(0x0E217800, "fcvtl.4s.4h", d, n) }
func (g *neon) saddlpB(d, n vec)   { g.word2(0x4E202800, "saddlp.8h", d, n) }
func (g *neon) saddlpH(d, n vec)   { g.word2(0x4E602800, "saddlp.4s", d, n) }
func (g *neon) smaxS(d, n, m vec)  { g.word3(0x4EA06400, "smax.4s", d, n, m) }
func (g *neon) mulS(d, n, m vec)   { g.word3(0x4EA09C00, "mul.4s", d, n, m) }
func (g *neon) ushlS(d, n, m vec)  { g.word3(0x6EA04400, "ushl.4s", d, n, m) }
func (g *neon) fmla(d, n, m vec)   { g.op("VFMLA V%d.S4, V%d.S4, V%d.S4", m, n, d) }
func (g *neon) and(d, n, m vec)    { g.op("VAND V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *neon) or(d, n, m vec)     { g.op("VORR V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *neon) xor(d, n, m vec)    { g.op("VEOR V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *neon) subB(d, n, m vec)   { g.op("VSUB V%d.B16, V%d.B16, V%d.B16", m, n, d) }
func (g *neon) addS(d, n, m vec)   { g.op("VADD V%d.S4, V%d.S4, V%d.S4", m, n, d) }
func (g *neon) equalS(d, n, m vec) { g.op("VCMEQ V%d.S4, V%d.S4, V%d.S4", m, n, d) }
func (g *neon) tbl(d, table, index vec) {
	g.op("VTBL V%d.B16, [V%d.B16], V%d.B16", index, table, d)
}
func (g *neon) shift(d, n vec, left int, lanes string) {
	if left > 0 {
		g.op("VSHL $%d, V%d.%s, V%d.%s", left, n, lanes, d, lanes)
	} else {
		g.op("VUSHR $%d, V%d.%s, V%d.%s", -left, n, lanes, d, lanes)
	}
}
func (g *neon) zero(d vec) { g.xor(d, d, d) }

// read loads 16 bytes.
func (g *neon) read(d vec, base string, at int) { g.op("FMOVQ %d(%s), F%d", at, base, d) }

// write stores 16 bytes.
func (g *neon) write(v vec, base string, at int) { g.op("FMOVQ F%d, %d(%s)", v, at, base) }

// readFloat loads one float to lane 0 and sets the other lanes to 0.
func (g *neon) readFloat(d vec, base string, at int) { g.op("FMOVS %d(%s), F%d", at, base, d) }

// list returns the assembler's notation of a list of consecutive registers.
func list(all []vec) string {
	var s []string
	for i, v := range all {
		if v != all[0]+vec(i) {
			panic("registers are not in sequence")
		}
		s = append(s, fmt.Sprintf("V%d.S4", v))
	}
	return "[" + strings.Join(s, ", ") + "]"
}

// constant returns a register with a constant of 16 bytes: a held register, or a new one, which
// drop releases.
func (g *neon) constant(b [16]byte) vec {
	g.uses[b]++
	if v, ok := g.held[b]; ok {
		return v
	}
	i := slices.Index(g.pool, b)
	if i < 0 {
		i = len(g.pool)
		g.pool = append(g.pool, b)
	}
	v := g.v()
	g.read(v, constantsBase, 16*i)
	return v
}

// drop releases the register of a constant, unless it is held.
func (g *neon) drop(v vec) {
	for _, h := range g.held {
		if h == v {
			return
		}
	}
	g.free(v)
}

// hold loads the n constants that body uses the most to registers. It ignores constants that are used only once.
func (g *neon) hold(n int, body func(*neon)) {
	draft := &neon{offsets: g.offsets, used: g.used, ints: g.ints, uses: map[[16]byte]int{}, dotProduct: g.dotProduct}
	body(draft)
	var all [][16]byte
	for b, times := range draft.uses {
		if times > 1 {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b [16]byte) int {
		if c := draft.uses[b] - draft.uses[a]; c != 0 {
			return c
		}
		return slices.Compare(a[:], b[:])
	})
	held := map[[16]byte]vec{}
	for _, b := range all[:min(n, len(all))] {
		held[b] = g.constant(b)
	}
	g.held = held
}

func bytes16(f func(i int) byte) (b [16]byte) {
	for i := range b {
		b[i] = f(i)
	}
	return b
}

// allBytes returns sixteen equal bytes.
func allBytes(v byte) [16]byte { return bytes16(func(int) byte { return v }) }

// words4 returns four integers.
func words4(v [4]int) [16]byte {
	return bytes16(func(i int) byte { return byte(uint32(v[i/4]) >> (i % 4 * 8)) })
}

func allWords(v int) [16]byte { return words4([4]int{v, v, v, v}) }

// writeNEON writes the files for arm64.
func writeNEON(dir string) {
	g := new(neon)
	const header = "// Code generated by " + header + "; DO NOT EDIT.\n\n//go:build arm64 && !noasm\n\n"
	g.asm.WriteString(header + "#include \"textflag.h\"\n")
	g.stubs.WriteString(header + "package simd\n")
	g.int8Round()
	g.int8Pack()
	for _, f := range neonIntegers {
		g.levels8(f)
	}
	for _, dotProduct := range []bool{false, true} {
		g.dotProduct = dotProduct
		for _, f := range neonIntegers {
			for _, rows := range []int{1, 4} {
				g.int8Dot(f, rows)
			}
		}
		for _, group := range []int{32, 16} {
			for rows := 1; rows <= g.tileRows(); rows++ {
				g.int8Tile(group, rows)
			}
		}
	}
	g.printf("")
	for i, b := range g.pool {
		for half := range 2 {
			g.printf("DATA int8Constants<>+%d(SB)/8, $0x%02x%02x%02x%02x%02x%02x%02x%02x", 16*i+8*half,
				b[8*half+7], b[8*half+6], b[8*half+5], b[8*half+4], b[8*half+3], b[8*half+2], b[8*half+1], b[8*half])
		}
	}
	g.printf("GLOBL int8Constants<>(SB), RODATA|NOPTR, $%d", 16*len(g.pool))
	stubs, err := format.Source(g.stubs.Bytes())
	check(err)
	check(genfile.Write(dir+"/int8_neon_arm64.s", g.asm.Bytes()))
	check(genfile.Write(dir+"/int8_neon_arm64.go", stubs))
}

// family returns the suffix of function names for the instructions that multiply.
func (g *neon) family() string {
	if g.dotProduct {
		return "SDOT"
	}
	return "NEON"
}
