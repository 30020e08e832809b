package main

import (
	"bytes"
	"fmt"

	"github.com/rayo-go/rayo/internal/ir"
)

// neon writes Advanced SIMD for arm64. Go's assembler supports few of its floating-point
// instructions, so each is written as an encoded word with its disassembly as comment; a test
// compares the two.
type neon struct{}

func (neon) native(c ir.Code) bool {
	switch c {
	case ir.Round, ir.CopySign, ir.RoundF16, ir.RoundBF16:
		return true
	}
	return false
}

// neonThree has the encodings of instructions with a result and two sources of four lanes.
var neonThree = map[string]uint32{
	"fadd": 0x4E20D400, "fsub": 0x4EA0D400, "fmul": 0x6E20DC00, "fdiv": 0x6E20FC00, "fmax": 0x4E20F400, "fmin": 0x4EA0F400,
	"fcmeq": 0x4E20E400, "fcmge": 0x6E20E400, "fcmgt": 0x6EA0E400, "cmtst": 0x4EA08C00,
	"cmeq": 0x6EA08C00, "cmgt": 0x4EA03400, "cmge": 0x4EA03C00, "cmhi": 0x6EA03400, "cmhs": 0x6EA03C00,
	"smin": 0x4EA06C00, "smax": 0x4EA06400, "umin": 0x6EA06C00, "umax": 0x6EA06400, "sshl": 0x4EA04400, "ushl": 0x6EA04400,
	"add": 0x4EA08400, "sub": 0x6EA08400, "mul": 0x4EA09C00, "fmla": 0x4E20CC00, "fmls": 0x4EA0CC00,
	// Bitwise instructions, which have the arrangement 16b.
	"and": 0x4E201C00, "orr": 0x4EA01C00, "eor": 0x6E201C00, "bsl": 0x6E601C00, "bit": 0x6EA01C00,
}

// neonTwo has the encodings of instructions with one source.
var neonTwo = map[string]uint32{
	"fabs": 0x4EA0F800, "fneg": 0x6EA0F800, "fsqrt": 0x6EA1F800, "frintn": 0x4E218800, "frintm": 0x4E219800,
	"frintp": 0x4EA18800, "frintz": 0x4EA19800, "scvtf": 0x4E21D800, "fcvtzs": 0x4EA1B800, "mvn": 0x6E205800,
	"ucvtf": 0x6E21D800, "fcvtzu": 0x6EA1B800, "abs": 0x4EA0B800, "neg": 0x6EA0B800,
}

// neonShift has the encodings of shifts by a constant.
var neonShift = map[string]uint32{"shl": 0x4F005400, "sshr": 0x4F000400, "ushr": 0x6F000400}

var neonBits = map[string]bool{"and": true, "orr": true, "eor": true, "bsl": true, "bit": true, "mvn": true}

var neonFloat = map[ir.Code]string{ir.Add: "fadd", ir.Sub: "fsub", ir.Mul: "fmul", ir.Div: "fdiv", ir.Min: "fmin", ir.Max: "fmax",
	ir.Neg: "fneg", ir.Abs: "fabs", ir.Sqrt: "fsqrt", ir.Round: "frintn", ir.Floor: "frintm", ir.Ceil: "frintp", ir.Trunc: "frintz"}
var neonLogic = map[ir.Code]string{ir.And: "and", ir.Or: "orr", ir.Xor: "eor", ir.Not: "mvn"}

func (neon) emit(s *selector, n *ir.Node) *value {
	t := n.Args[0].Type
	if n.Code == ir.Fma {
		return neonFma(s, n)
	}
	var a []*value
	for _, m := range n.Operands() {
		a = append(a, s.value(m))
	}
	if n.Code == ir.RoundBF16 {
		return s.value(roundBF16(n.Args[0]))
	}
	if op, ok := neonLogic[n.Code]; ok {
		return s.plain(op, nil, a...)
	}
	switch n.Code {
	case ir.RoundF16:
		return s.plain("fcvtl", nil, s.plain("fcvtn", nil, a...))
	case ir.CopySign:
		return s.add(instruction{op: "bit", src: []*value{a[0], a[1], s.constant(signBit)}, tied: 0})
	case ir.Select:
		return s.add(instruction{op: "bsl", src: a, tied: 0})
	case ir.Convert:
		return neonConvert(s, n, a[0])
	}
	if t == ir.F32 {
		switch n.Code {
		case ir.Eq:
			return s.plain("fcmeq", nil, a...)
		case ir.Ne:
			return s.plain("mvn", nil, s.plain("fcmeq", nil, a...))
		case ir.Lt:
			return s.plain("fcmgt", nil, a[1], a[0])
		case ir.Le:
			return s.plain("fcmge", nil, a[1], a[0])
		}
		if op, ok := neonFloat[n.Code]; ok {
			return s.plain(op, nil, a...)
		}
	} else if v := neonInteger(s, n, a); v != nil {
		return v
	}
	check(fmt.Errorf("NEON has no instructions for %v of %v", n.Code, t))
	return nil
}

// neonFma selects c ± a·b; no instruction negates c.
func neonFma(s *selector, n *ir.Node) *value {
	a, na := negated(n.Args[0])
	b, nb := negated(n.Args[1])
	op := "fmla"
	if na != nb {
		op = "fmls"
	}
	return s.add(instruction{op: op, src: []*value{s.value(a), s.value(b), s.value(n.Args[2])}, tied: 2})
}

func (neon) load(s *selector, n *ir.Node) *value {
	v := s.add(instruction{op: "ldr", tied: -1, mem: string("xyz"[n.Index])})
	if n.Type == ir.Bool {
		v = s.plain("cmtst", nil, v, v)
	}
	return v
}

func (neon) store(s *selector, v *value, t ir.Type) {
	if t == ir.Bool {
		v = s.add(instruction{op: "ushr", src: []*value{v}, tied: -1, imm: 31})
	}
	s.code = append(s.code, &instruction{op: "str", src: []*value{v}, tied: -1, mem: "dst", copy: s.copy})
}

// neonFile collects the functions and their constants.
type neonFile struct {
	text  bytes.Buffer
	stubs bytes.Buffer
	pool  pool
}

var neonPointers = map[string]int{"dst": 0, "x": 1, "y": 2, "z": 3}

// poolRegister holds the address of the constants.
const poolRegister = 10

func (f *neonFile) word(w uint32, format string, a ...any) {
	fmt.Fprintf(&f.text, "\tWORD $0x%08X // %s\n", w, fmt.Sprintf(format, a...))
}

// memory writes a load or store of a vector at off bytes from register base.
func (f *neonFile) memory(op string, v, base, off int) {
	w := map[string]uint32{"ldr": 0x3DC00000, "str": 0x3D800000}[op]
	name := fmt.Sprintf("x%d", base)
	if base == 31 {
		name = "sp"
	}
	at := "[" + name + "]"
	if off != 0 {
		at = fmt.Sprintf("[%s, #%d]", name, off)
	}
	f.word(w|uint32(off/16)<<10|uint32(base)<<5|uint32(v), "%s q%d, %s", op, v, at)
}

func (f *neonFile) print(code []*instruction) {
	for _, in := range code {
		r := in.regs
		shape := "4s"
		if neonBits[in.op] {
			shape = "16b"
		}
		reg := func(i int) string { return fmt.Sprintf("v%d.%s", r[i], shape) }
		switch in.op {
		case "ldr":
			f.memory("ldr", r[0], neonPointers[in.mem], 16*in.copy)
		case "str":
			f.memory("str", r[1], neonPointers[in.mem], 16*in.copy)
		case "const":
			f.memory("ldr", r[0], poolRegister, f.pool.offset(in.src[0].bits))
		case "spill":
			f.memory("str", r[1], 31, 16+16*in.imm)
		case "reload":
			f.memory("ldr", r[0], 31, 16+16*in.imm)
		case "move":
			f.word(neonThree["orr"]|uint32(r[1])<<16|uint32(r[1])<<5|uint32(r[0]), "mov v%d.16b, v%d.16b", r[0], r[1])
		case "shl":
			f.word(neonShift["shl"]|uint32(32+in.imm)<<16|uint32(r[1])<<5|uint32(r[0]), "shl %s, %s, #%d", reg(0), reg(1), in.imm)
		case "sshr", "ushr":
			f.word(neonShift[in.op]|uint32(64-in.imm)<<16|uint32(r[1])<<5|uint32(r[0]), "%s %s, %s, #%d", in.op, reg(0), reg(1), in.imm)
		case "fmla", "fmls": // a, b, c with the result in c
			f.word(neonThree[in.op]|uint32(r[2])<<16|uint32(r[1])<<5|uint32(r[3]), "%s %s, %s, %s", in.op, reg(3), reg(1), reg(2))
		case "bsl", "bit": // the result in the first source
			f.word(neonThree[in.op]|uint32(r[3])<<16|uint32(r[2])<<5|uint32(r[1]), "%s %s, %s, %s", in.op, reg(1), reg(2), reg(3))
		case "fcvtn":
			f.word(0x0E216800|uint32(r[1])<<5|uint32(r[0]), "fcvtn v%d.4h, v%d.4s", r[0], r[1])
		case "fcvtl":
			f.word(0x0E217800|uint32(r[1])<<5|uint32(r[0]), "fcvtl v%d.4s, v%d.4h", r[0], r[1])
		default:
			if w, ok := neonTwo[in.op]; ok {
				f.word(w|uint32(r[1])<<5|uint32(r[0]), "%s %s, %s", in.op, reg(0), reg(1))
				continue
			}
			w, ok := neonThree[in.op]
			if !ok {
				check(fmt.Errorf("NEON: no word for %s", in.op))
			}
			f.word(w|uint32(r[2])<<16|uint32(r[1])<<5|uint32(r[0]), "%s %s, %s, %s", in.op, reg(0), reg(1), reg(2))
		}
	}
}

// function writes the assembly of a kernel: a loop over several vectors, a loop over single
// vectors, and for a tail of one to three elements the second loop once more, on copies on the
// stack.
func (f *neonFile) function(k *kernel) {
	have := registers{32, 0}
	single := selectBody(neon{}, k.root, 1)
	u := copies(len(single.code))
	var body *block
	var code []*instruction
	for {
		body = selectBody(neon{}, k.root, u)
		var ok bool
		code, ok = body.fit(have, false)
		if ok || u == 1 {
			break
		}
		u /= 2
	}
	pins := map[string]int{}
	lowest := 32
	for _, v := range body.fixed {
		if v.pinned >= 0 {
			pins[v.key()] = v.pinned
			lowest = min(lowest, v.pinned)
		}
	}
	for _, v := range single.fixed {
		v.pinned = -1
		if r, ok := pins[v.key()]; ok {
			v.pinned = r
		}
	}
	singleCode := single.allocate(single.fold(false), registers{lowest, 0})

	name := "map" + k.symbol() + "NEON"
	fmt.Fprintf(&f.stubs, "\n// %s stores %s. See map%sGeneric.\n//\n//go:noescape\nfunc %s(dst, x, y, z *float32, n int, p *float32)\n", name, k.formula(), k.symbol(), name)
	w := &f.text
	fmt.Fprintf(w, "\n// func %s(dst, x, y, z *float32, n int, p *float32)\nTEXT ·%s(SB), NOSPLIT, $%d-48\n", name, name, 88+16*max(body.frame, single.frame))
	fmt.Fprintf(w, "\tMOVD dst+0(FP), R0\n")
	var args []int
	for i := range 3 {
		if usesArg(k.root, i) {
			args = append(args, i)
			fmt.Fprintf(w, "\tMOVD %c+%d(FP), R%d\n", "xyz"[i], 8+8*i, 1+i)
		}
	}
	fmt.Fprintf(w, "\tMOVD n+32(FP), R4\n")
	if body.params() > 0 {
		fmt.Fprintf(w, "\tMOVD p+40(FP), R5\n")
	}
	if len(body.fixed) > body.params() {
		fmt.Fprintf(w, "\tMOVD $mapConstantsNEON<>(SB), R%d\n", poolRegister)
	}
	for _, v := range body.fixed {
		switch {
		case v.pinned < 0:
		case v.bits == nil:
			fmt.Fprintf(w, "\tMOVWU %d(R5), R11\n\tVDUP R11, V%d.S4\n", 4*v.param, v.pinned)
		default:
			f.memory("ldr", v.pinned, poolRegister, f.pool.offset(v.bits))
		}
	}
	advance := func(bytes int) {
		fmt.Fprintf(w, "\tADD $%d, R0\n", bytes)
		for _, i := range args {
			fmt.Fprintf(w, "\tADD $%d, R%d\n", bytes, 1+i)
		}
	}
	fmt.Fprintf(w, "\tMOVD $0, R7\n")
	if u > 1 {
		fmt.Fprintf(w, "\tSUBS $%d, R4, R4\n\tBLT rest\n\nloop:\n", 4*u)
		f.print(code)
		advance(16 * u)
		fmt.Fprintf(w, "\tSUBS $%d, R4, R4\n\tBGE loop\n\nrest:\n\tADD $%d, R4, R4\n", 4*u, 4*u)
	}
	fmt.Fprintf(w, "\tSUBS $4, R4, R4\n\tBLT tail\n\none:\n")
	f.print(singleCode)
	advance(16)
	fmt.Fprintf(w, "\tSUBS $4, R4, R4\n\tBGE one\n\ntail:\n\tCBNZ R7, out\n\tADDS $4, R4, R4\n\tBLE done\n")
	// One to three elements are left: R7 is their number, R6 keeps dst.
	fmt.Fprintf(w, "\tMOVD R4, R7\n\tMOVD R0, R6\n")
	for _, i := range args {
		buffer := fmt.Sprintf("%c-%d(SP)", "xyz"[i], 48-16*i)
		fmt.Fprintf(w, "\tMOVD $buffer%s, R8\n\tMOVD R7, R9\n\nin%c:\n", buffer, "xyz"[i])
		fmt.Fprintf(w, "\tMOVWU.P 4(R%d), R11\n\tMOVW.P R11, 4(R8)\n\tSUBS $1, R9, R9\n\tBNE in%c\n\tMOVD $buffer%s, R%d\n", 1+i, "xyz"[i], buffer, 1+i)
	}
	fmt.Fprintf(w, "\tMOVD $bufferDst-64(SP), R0\n\tMOVD $0, R4\n\tB one\n\nout:\n\tMOVD $bufferDst-64(SP), R8\n\nback:\n")
	fmt.Fprintf(w, "\tMOVWU.P 4(R8), R11\n\tMOVW.P R11, 4(R6)\n\tSUBS $1, R7, R7\n\tBNE back\n\ndone:\n\tRET\n")
}

// writeNEON returns the assembly and the Go file.
func writeNEON(ks []*kernel) (asm, stubs []byte) {
	f := &neonFile{pool: pool{spread: 4}}
	for _, k := range ks {
		if k.vector {
			f.function(k)
		}
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\n//go:build arm64 && !noasm && !wazero\n\n#include \"textflag.h\"\n", header)
	data(&b, "mapConstantsNEON", f.pool.words)
	b.Write(f.text.Bytes())

	var g bytes.Buffer
	fmt.Fprintf(&g, "%s\n//go:build arm64 && !noasm && !wazero\n\npackage simd\n\nimport \"math\"\n", header)
	lookup(&g, ks, "NEON", "")
	g.Write(f.stubs.Bytes())
	return b.Bytes(), gofmt(g.Bytes())
}
