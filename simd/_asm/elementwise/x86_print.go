package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
)

// x86File collects the functions of one level and their constants.
type x86File struct {
	x86
	text  bytes.Buffer
	stubs bytes.Buffer
	pool  pool
}

// pool collects the distinct constants of a file.
type pool struct {
	words []uint32
	at    map[string]int
	// spread is the number of copies of a constant that is not a table.
	spread int
}

func (p *pool) offset(bits []uint32) int {
	key := fmt.Sprint(bits)
	if o, ok := p.at[key]; ok {
		return o
	}
	o := 4 * len(p.words)
	if p.at == nil {
		p.at = map[string]int{}
	}
	p.at[key] = o
	if len(bits) > 1 {
		p.words = append(p.words, bits...)
	} else {
		for range p.spread {
			p.words = append(p.words, bits[0])
		}
	}
	return o
}

// copies returns the number of vectors in an iteration. Short bodies need several vectors to hide
// the latency; the processor overlaps iterations of long bodies by itself.
func copies(instructions int) int {
	switch {
	case instructions <= 8:
		return 4
	case instructions <= 40:
		return 2
	}
	return 1
}

// function writes the assembly of a kernel.
func (f *x86File) function(k *kernel, variant string) {
	tail := selectBody(f.x86, k.root, 1)
	body, code, u := f.widest(k, copies(len(tail.code)))
	tailCode, maskReg := f.allocateTail(body, tail)
	name, where := "map"+k.symbol()+variant+f.level(), ""
	if f.near {
		where = fmt.Sprintf(" for x >= %g", -nearLimit)
	}
	if f.stream {
		where = " with non-temporal stores"
	}
	fmt.Fprintf(&f.stubs, "\n// %s stores %s%s. See map%sGeneric.\n//\n//go:noescape\nfunc %s(dst, x, y, z *float32, n int, p *float32)\n", name, k.formula(), where, k.symbol(), name)
	frame := 4 * f.lanes() * max(body.frame, tail.frame)
	f.begin(k, body, name, frame)
	w := &f.text
	step := u * f.lanes()
	fmt.Fprintf(w, "\tXORQ AX, AX\n")
	if f.stream {
		// The masked part processes the head, before the first aligned vector of dst: BX elements.
		// R11 elements follow.
		fmt.Fprintf(w, "\tMOVQ    DI, R12\n\tNEGQ    R12\n\tSHRQ    $2, R12\n\tANDQ    $%d, R12\n\tCMPQ    R12, BX\n\tCMOVQGT BX, R12\n", f.lanes()-1)
		fmt.Fprintf(w, "\tMOVQ    BX, R11\n\tSUBQ    R12, R11\n\tMOVQ    R12, BX\n\tTESTQ   BX, BX\n\tJGT     rest\n\tMOVQ    R11, BX\n\tXORQ    R11, R11\n\nmain:\n")
	}
	fmt.Fprintf(w, "\tSUBQ $%d, BX\n\tJLT  tail\n\tPCALIGN $32\n\nloop:\n", step)
	f.print(code, loopPart, frame)
	fmt.Fprintf(w, "\tADDQ $%d, AX\n\tSUBQ $%d, BX\n\tJGE  loop\n\ntail:\n\tADDQ $%d, BX\n\tJLE  done\n\nrest:\n", step, step, step)
	if f.wide {
		fmt.Fprintf(w, "\tMOVL  $-1, R9\n\tBZHIL BX, R9, R9\n\tKMOVW R9, K1\n")
	} else {
		fmt.Fprintf(w, "\tMOVQ    $8, R9\n\tCMPQ    BX, R9\n\tCMOVQLT BX, R9\n\tNEGQ    R9\n\tLEAQ    mapMasks<>+32(SB), R10\n\tVMOVUPS (R10)(R9*4), Y%d\n", maskReg)
	}
	f.print(tailCode, maskReg, frame)
	fmt.Fprintf(w, "\tADDQ $%d, AX\n\tSUBQ $%d, BX\n\tJGT  rest\n\ndone:\n", f.lanes(), f.lanes())
	if f.stream {
		fmt.Fprintf(w, "\tMOVQ  R12, AX\n\tMOVQ  R11, BX\n\tXORQ  R11, R11\n\tTESTQ BX, BX\n\tJGT   main\n")
	}
	fmt.Fprintf(w, "\tVZEROUPPER\n\tRET\n")
}

// widest returns the body of a loop and its code. It has u copies, or fewer if u copies would
// spill.
func (f *x86File) widest(k *kernel, u int) (body *block, code []*instruction, copies int) {
	for {
		body = selectBody(f.x86, k.root, u)
		code, ok := body.fit(f.registers(false), true)
		if ok || u == 1 {
			return body, code, u
		}
		u /= 2
	}
}

// allocateTail allocates the registers of the tail and returns the register of the mask. The tail
// has its constants in the same registers as the body, so that they are loaded only once.
func (f *x86File) allocateTail(body, tail *block) (code []*instruction, maskReg int) {
	pins := map[string]int{}
	for _, v := range body.fixed {
		if v.pinned >= 0 {
			pins[v.key()] = v.pinned
		}
	}
	lowest := 32
	for _, r := range pins {
		lowest = min(lowest, r)
	}
	have := f.registers(true)
	if len(pins) > 0 {
		have[vector] = min(have[vector], lowest)
	}
	if !f.wide {
		// The register below the pinned ones.
		have[vector] = min(f.registers(false)[vector], lowest) - 1
		maskReg = have[vector]
	}
	for _, v := range tail.fixed {
		v.pinned = -1
		if r, ok := pins[v.key()]; ok {
			v.pinned = r
		}
	}
	return tail.allocate(tail.fold(true), have), maskReg
}

// begin writes the beginning of a function, which loads the arguments and the pinned values.
func (f *x86File) begin(k *kernel, body *block, name string, frame int) {
	w := &f.text
	nosplit := "NOSPLIT"
	if frame > 256 {
		nosplit = "0"
	}
	fmt.Fprintf(w, "\n// func %s(dst, x, y, z *float32, n int, p *float32)\nTEXT ·%s(SB), %s, $%d-48\n", name, name, nosplit, frame)
	fmt.Fprintf(w, "\tMOVQ dst+0(FP), DI\n")
	for i, r := range []string{"SI", "DX", "CX"} {
		if usesArg(k.root, i) {
			fmt.Fprintf(w, "\tMOVQ %c+%d(FP), %s\n", "xyz"[i], 8+8*i, r)
		}
	}
	fmt.Fprintf(w, "\tMOVQ n+32(FP), BX\n")
	if body.params() > 0 {
		fmt.Fprintf(w, "\tMOVQ p+40(FP), R8\n")
	}
	for _, v := range body.fixed {
		if v.pinned < 0 {
			continue
		}
		if v.bits == nil {
			fmt.Fprintf(w, "\tVBROADCASTSS %d(R8), %s\n", 4*v.param, f.reg(vector, v.pinned))
		} else {
			f.constant(v, v.pinned)
		}
	}
}

func (v *value) key() string {
	if v.bits == nil {
		return fmt.Sprintf("p%d", v.param)
	}
	return fmt.Sprint(v.bits)
}

func usesArg(root *ir.Node, i int) bool {
	list, _ := ir.Flatten(root)
	for _, n := range list {
		if n.Code == ir.Arg && n.Index == i {
			return true
		}
	}
	return false
}

func (f *x86File) reg(c class, r int) string {
	switch {
	case c == predicate:
		return fmt.Sprintf("K%d", r+2)
	case f.wide:
		return fmt.Sprintf("Z%d", r)
	}
	return fmt.Sprintf("Y%d", r)
}

// half returns the name of the lower half of vector register r (X or Y).
func (f *x86File) half(r int) string {
	if f.wide {
		return fmt.Sprintf("Y%d", r)
	}
	return fmt.Sprintf("X%d", r)
}

// constant loads v into vector register r.
func (f *x86File) constant(v *value, r int) {
	if len(v.bits) > 1 {
		fmt.Fprintf(&f.text, "\tVMOVUPS mapConstants%s<>+%d(SB), %s\n", f.level(), f.pool.offset(v.bits), f.reg(vector, r))
		return
	}
	if v.bits[0] == 0 && r < 16 {
		fmt.Fprintf(&f.text, "\tVXORPS X%d, X%d, X%d\n", r, r, r)
		return
	}
	fmt.Fprintf(&f.text, "\tVBROADCASTSS mapConstants%s<>+%d(SB), %s\n", f.level(), f.pool.offset(v.bits), f.reg(vector, r))
}

var x86Pointers = map[string]string{"dst": "DI", "x": "SI", "y": "DX", "z": "CX"}

// loopPart represents the mask in code for whole vectors.
const loopPart = -1

// print writes instructions. maskReg is the vector register that holds the
// mask of the tail in AVX2; in AVX-512 it is K1 for every maskReg but
// loopPart.
func (f *x86File) print(code []*instruction, maskReg, frame int) {
	for _, in := range code {
		switch in.op {
		case "load":
			f.load(in, maskReg)
		case "store":
			f.store(in, maskReg)
		case "const":
			f.constant(in.src[0], in.regs[0])
		case "spill", "reload", "move":
			f.move(in, frame)
		case "VFMADD", "VFMSUB", "VFNMADD", "VFNMSUB":
			f.multiplyAdd(in)
		default:
			form, ok := x86Forms[in.op]
			if !ok {
				form = "b, a, r" // also KANDNW, which computes ^first & second
			}
			f.line(in, strings.TrimSuffix(in.op, ".merge"), strings.Split(form, ", ")...)
		}
	}
}

// x86Forms has the operands of instructions in the order of the assembler. a, b and c are the
// sources, r is the result, i the immediate, and A and R are the lower halves of a and r.
// Instructions that are not listed have the operands b, a, r.
var x86Forms = map[string]string{
	"VSQRTPS": "a, r", "VGETEXPPS": "a, r", "VCVTDQ2PS": "a, r", "VCVTTPS2DQ": "a, r",
	"VCVTUDQ2PS": "a, r", "VCVTTPS2UDQ": "a, r", "VPABSD": "a, r", "KNOTW": "a, r",
	"VROUNDPS": "i, a, r", "VRNDSCALEPS": "i, a, r", "VGETMANTPS": "i, a, r",
	"VPSLLD": "i, a, r", "VPSRAD": "i, a, r", "VPSRLD": "i, a, r",
	"VCVTPS2PH": "i, a, R", "VCVTPH2PS": "A, r",
	"VCMPPS": "i, b, a, r", "VPCMPD": "i, b, a, r", "VPCMPUD": "i, b, a, r",
	"VBLENDMPS": "b, c, a, r", // m, a, b
	"VBLENDVPS": "a, b, c, r",
	"VMOVAPS.Z": "b, a, r", // m, a
	// y, a, m: a - y (or a + y) in lanes where m holds, otherwise y
	"VSUBPS.merge": "a, b, c, r", "VPADDD.merge": "a, b, c, r",
	"VPTERNLOGD": "i, c, b, r", "VFIXUPIMMPS": "i, c, b, r",
	"VPERMI2PS": "c, b, r", // index, low, high
}

// line writes an instruction. It replaces the operand names of x86Forms, and writes other operands unchanged.
func (f *x86File) line(in *instruction, op string, operands ...string) {
	suffix := ""
	source := func(i int) string {
		if i != in.folded {
			return f.reg(in.src[i].class, in.regs[i+1])
		}
		v := in.src[i]
		if f.wide && len(v.bits) == 1 {
			suffix = ".BCST"
		}
		return fmt.Sprintf("mapConstants%s<>+%d(SB)", f.level(), f.pool.offset(v.bits))
	}
	for k, o := range operands {
		switch o {
		case "a", "b", "c":
			operands[k] = source(int(o[0] - 'a'))
		case "r":
			operands[k] = f.reg(in.dst.class, in.regs[0])
		case "i":
			operands[k] = fmt.Sprintf("$%d", in.imm)
		case "A":
			operands[k] = f.half(in.regs[1])
		case "R":
			operands[k] = f.half(in.regs[0])
		}
	}
	fmt.Fprintf(&f.text, "\t%s%s %s\n", op, suffix, strings.Join(operands, ", "))
}

// address returns the memory operand of a load or store.
func (f *x86File) address(in *instruction) string {
	return fmt.Sprintf("%d(%s)(AX*4)", 4*f.lanes()*in.copy, x86Pointers[in.mem])
}

func (f *x86File) load(in *instruction, maskReg int) {
	whole := maskReg == loopPart
	if (f.ahead || f.stream) && whole {
		// Prefetch the next block. The caller may read the whole block before this code does.
		// Stream kernels read from memory across page boundaries, where hardware prefetchers stop.
		fmt.Fprintf(&f.text, "\tPREFETCHT0 %d(%s)(AX*4)\n", 4*blockLength+4*f.lanes()*in.copy, x86Pointers[in.mem])
	}
	switch {
	case whole:
		f.line(in, "VMOVUPS", f.address(in), "r")
	case f.wide:
		f.line(in, "VMOVUPS.Z", f.address(in), "K1", "r")
	default:
		f.line(in, "VMASKMOVPS", f.address(in), f.reg(vector, maskReg), "r")
	}
}

func (f *x86File) store(in *instruction, maskReg int) {
	whole := maskReg == loopPart
	switch {
	case whole && f.stream:
		f.line(in, "VMOVNTPS", "a", f.address(in))
	case whole:
		f.line(in, "VMOVUPS", "a", f.address(in))
	case f.wide:
		f.line(in, "VMOVUPS", "a", "K1", f.address(in))
	default:
		f.storePart(in, maskReg)
	}
}

// storePart stores the first BX elements of a vector with AVX2 in pieces, because a masked store
// takes twenty cycles on some processors. The mask is no longer needed, so its register holds the
// remaining elements.
func (f *x86File) storePart(in *instruction, maskReg int) {
	w, rest := &f.text, f.half(maskReg)
	fmt.Fprintf(w, "\tCMPQ BX, $%d\n\tJGE  whole\n\tLEAQ %s, R9\n", f.lanes(), f.address(in))
	fmt.Fprintf(w, "\tVMOVAPS %s, %s\n", f.half(in.regs[1]), rest)
	fmt.Fprintf(w, "\tTESTB $4, BX\n\tJEQ   two\n\tVMOVUPS %s, (R9)\n\tADDQ $16, R9\n", rest)
	f.line(in, "VEXTRACTF128", "$1", "a", rest)
	fmt.Fprintf(w, "\ntwo:\n\tTESTB $2, BX\n\tJEQ   one\n\tVMOVLPS %s, (R9)\n\tADDQ $8, R9\n\tVPERMILPD $1, %s, %s\n", rest, rest, rest)
	fmt.Fprintf(w, "\none:\n\tTESTB $1, BX\n\tJEQ   stored\n\tVMOVSS %s, (R9)\n\tJMP   stored\n\nwhole:\n", rest)
	f.line(in, "VMOVUPS", "a", f.address(in))
	fmt.Fprintf(w, "\nstored:\n")
}

// multiplyAdd writes a*b + c. The form of the instruction depends on the source that the result
// overwrites and on the source in memory.
func (f *x86File) multiplyAdd(in *instruction) {
	a, b := "a", "b"
	if in.tied == 2 { // result in c
		if in.folded == 0 {
			a, b = b, a
		}
		f.line(in, in.op+"231PS", b, a, "c")
		return
	}
	if in.tied == 1 { // else in a
		a, b = b, a
	}
	if in.folded == 2 || in.folded < 0 {
		f.line(in, in.op+"213PS", "c", b, a)
	} else {
		f.line(in, in.op+"132PS", b, "c", a)
	}
}

func (f *x86File) move(in *instruction, frame int) {
	w := &f.text
	slot := fmt.Sprintf("%d(SP)", 4*f.lanes()*in.imm)
	switch in.op {
	case "spill":
		op := "VMOVUPS"
		if in.src[0].class == predicate {
			op = "KMOVW"
		}
		fmt.Fprintf(w, "\t%s %s, %s\n", op, f.reg(in.src[0].class, in.regs[1]), slot)
	case "reload":
		op := "VMOVUPS"
		if in.dst.class == predicate {
			op = "KMOVW"
		}
		fmt.Fprintf(w, "\t%s %s, %s\n", op, slot, f.reg(in.dst.class, in.regs[0]))
	case "move":
		op := "VMOVAPS"
		if in.dst.class == predicate {
			op = "KMOVW"
		}
		fmt.Fprintf(w, "\t%s %s, %s\n", op, f.reg(in.src[0].class, in.regs[1]), f.reg(in.dst.class, in.regs[0]))
	}
}

// writeX86 returns the assembly and the Go file of a level.
func writeX86(ks []*kernel, wide bool) (asm, stubs []byte) {
	f := &x86File{x86: x86{wide: wide}}
	f.pool.spread = 1
	if !wide {
		f.pool.spread = 8
	}
	for _, k := range ks {
		if !k.vector {
			continue
		}
		for _, f.stream = range []bool{false, true} {
			variant := ""
			if f.stream {
				variant = "Stream"
			}
			f.ahead = k.trig()
			f.function(k, variant)
			if k.tailed() && wide {
				f.near, f.ahead = true, true
				f.function(k, "Near"+variant)
				f.near = false
			}
		}
	}
	f.stream, f.ahead = false, false
	f.halves()
	f.fence()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n//go:build amd64 && !noasm && !wazero\n\n#include \"textflag.h\"\n", header)
	if !wide {
		data(&b, "mapMasks", []uint32{1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 1<<32 - 1, 0, 0, 0, 0, 0, 0, 0, 0})
	}
	data(&b, "mapConstants"+f.level(), f.pool.words)
	b.Write(f.text.Bytes())

	var g bytes.Buffer
	fmt.Fprintf(&g, "%s\n//go:build amd64 && !noasm && !wazero\n\npackage simd\n\nimport \"math\"\n", header)
	lookup(&g, ks, f.level(), "")
	lookup(&g, ks, f.level(), "Stream")
	g.Write(f.stubs.Bytes())
	return b.Bytes(), gofmt(g.Bytes())
}

// fence writes the instruction that orders the stores of stream kernels. It is the same on both
// levels.
func (f *x86File) fence() {
	if f.wide {
		return
	}
	fmt.Fprintf(&f.text, "\n// func streamFence()\nTEXT ·streamFence(SB), NOSPLIT, $0-0\n\tSFENCE\n\tRET\n")
	fmt.Fprintf(&f.stubs, "\n// streamFence makes non-temporal stores of kernels visible before later\n// stores.\n//\n//go:noescape\nfunc streamFence()\n")
}

// data writes a table of constants.
func data(b *bytes.Buffer, name string, words []uint32) {
	fmt.Fprintln(b)
	for i, w := range words {
		fmt.Fprintf(b, "DATA %s<>+%d(SB)/4, $%#08x\n", name, 4*i, w)
	}
	fmt.Fprintf(b, "GLOBL %s<>(SB), RODATA|NOPTR, $%d\n", name, 4*len(words))
}
