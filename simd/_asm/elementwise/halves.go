package main

import (
	"bytes"
	"fmt"
	"strings"
)

// The conversions between registers and elements of 16 and of 8 bits, on whole vectors. The callers
// in package simd convert the tail.

type halfKernel struct{ name, doc string }

// cast returns the name by which callers look up the kernel.
func (h halfKernel) cast() string {
	if at := strings.Index(h.name, "To"); at > 0 {
		return "cast." + strings.ToLower(h.name[:at]+"."+h.name[at+2:])
	}
	if f, ok := strings.CutPrefix(h.name, "Widen"); ok {
		return "cast." + strings.ToLower(f) + ".f32"
	}
	return "cast.f32." + strings.ToLower(strings.TrimPrefix(h.name, "Narrow"))
}

var halfKernels = []halfKernel{
	{"WidenF16", "the values of binary16 numbers"},
	{"NarrowF16", "binary16 numbers nearest to x, the even one of two"},
	{"WidenBF16", "the values of bfloat16 numbers"},
	{"NarrowBF16", "bfloat16 numbers nearest to x, the even one of two"},
	{"U8ToU32", "bytes as words"},
	{"U8ToF32", "bytes as float32 numbers"},
	{"I8ToI32", "signed bytes as words"},
	{"I8ToF32", "signed bytes as float32 numbers"},
	{"U32ToU8", "the low bytes of words"},
	{"I32ToI8", "the low bytes of words"},
	{"F32ToU8", "float32 numbers as bytes, truncated and saturated; NaN gives 0"},
	{"F32ToI8", "float32 numbers as signed bytes, truncated and saturated; NaN gives 0"},
}

// halves writes the conversions of a level.
func (f *x86File) halves() {
	for _, k := range halfKernels {
		name := "map" + k.name + f.level()
		fmt.Fprintf(&f.stubs, "\n// %s stores %s, for n a multiple of %d.\n//\n//go:noescape\nfunc %s(dst, x, y, z *float32, n int, p *float32)\n", name, k.doc, f.lanes(), name)
		w := &f.text
		fmt.Fprintf(w, "\n// func %s(dst, x, y, z *float32, n int, p *float32)\nTEXT ·%s(SB), NOSPLIT, $0-48\n", name, name)
		fmt.Fprintf(w, "\tMOVQ dst+0(FP), DI\n\tMOVQ x+8(FP), SI\n\tMOVQ n+32(FP), BX\n\tXORQ AX, AX\n")
		v := f.reg(vector, 0)[:1]
		constant := func(bits uint32, r int) {
			fmt.Fprintf(w, "\tVBROADCASTSS mapConstants%s<>+%d(SB), %s%d\n", f.level(), f.pool.offset([]uint32{bits}), v, r)
		}
		body := ""
		switch k.name {
		case "WidenF16":
			body = "VCVTPH2PS (SI)(AX*2), V0; VMOVUPS V0, (DI)(AX*4)"
		case "NarrowF16":
			body = "VMOVUPS (SI)(AX*4), V0; VCVTPS2PH $0, V0, (DI)(AX*2)"
		case "WidenBF16":
			body = "VPMOVZXWD (SI)(AX*2), V0; VPSLLD $16, V0, V0; VMOVUPS V0, (DI)(AX*4)"
		case "NarrowBF16":
			// See roundBF16.
			constant(0x7fff, 6)
			if f.wide {
				constant(1, 5)
				constant(1<<16, 4)
				constant(quietNaN, 7)
				body = "VMOVUPS (SI)(AX*4), V0; VPTESTMD V4, V0, K2; VPADDD V6, V0, V1; VPADDD V5, V1, K2, V1; VFIXUPIMMPS $0, V7, V0, V1; " +
					"VPSRLD $16, V1, V1; VPMOVDW V1, Y1; VMOVDQU Y1, (DI)(AX*2)"
				break
			}
			constant(1, 5)
			constant(0x40, 7)
			body = "VMOVUPS (SI)(AX*4), V0; VPSRLD $16, V0, V1; VPAND V5, V1, V2; VPOR V7, V1, V1; VPADDD V6, V2, V2; VPADDD V0, V2, V2; VPSRLD $16, V2, V2; " +
				"VCMPPS $3, V0, V0, V3; VBLENDVPS V3, V1, V2, V2; VPACKUSDW V2, V2, V2; VPERMQ $8, V2, V2; VMOVDQU X2, (DI)(AX*2)"
		}
		if body == "" {
			body = f.bytes(k.name, constant)
		}
		fmt.Fprintf(w, "\tJMP  next\n\nloop:\n")
		for _, in := range strings.Split(body, "; ") {
			fmt.Fprintf(w, "\t%s\n", vectorNames(in, v))
		}
		fmt.Fprintf(w, "\tADDQ $%d, AX\n\nnext:\n\tSUBQ $%d, BX\n\tJGE  loop\n\tVZEROUPPER\n\tRET\n", f.lanes(), f.lanes())
	}
}

// vectorNames replaces V0 … V7 by the registers of the level.
func vectorNames(in, prefix string) string {
	var b bytes.Buffer
	for i := range len(in) {
		if in[i] == 'V' && i+1 < len(in) && in[i+1] >= '0' && in[i+1] <= '9' {
			b.WriteString(prefix)
			continue
		}
		b.WriteByte(in[i])
	}
	return b.String()
}
