//go:build !noasm

#include "textflag.h"

// func linesOut(dst, src *byte, n int)
TEXT ·linesOut(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	JMP  test

next:
	MOVOU  (SI), X0
	MOVOU  16(SI), X1
	MOVOU  32(SI), X2
	MOVOU  48(SI), X3
	MOVNTO X0, (DI)
	MOVNTO X1, 16(DI)
	MOVNTO X2, 32(DI)
	MOVNTO X3, 48(DI)
	ADDQ   $64, SI
	ADDQ   $64, DI
	SUBQ   $64, CX

test:
	CMPQ CX, $64
	JGE  next
	SFENCE
	RET

// func linesIn(dst, src *byte, n int)
TEXT ·linesIn(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	JMP  test

next:
	MOVOU (SI), X0
	MOVOU 16(SI), X1
	MOVOU 32(SI), X2
	MOVOU 48(SI), X3
	MOVOU X0, (DI)
	MOVOU X1, 16(DI)
	MOVOU X2, 32(DI)
	MOVOU X3, 48(DI)

	// The line before this one: its loads are done.
	CLFLUSHOPT -64(SI)
	ADDQ       $64, SI
	ADDQ       $64, DI
	SUBQ       $64, CX

test:
	CMPQ CX, $64
	JGE  next
	RET

// func flushes() bool
TEXT ·flushes(SB), NOSPLIT, $0-1
	XORL AX, AX
	XORL CX, CX
	CPUID
	CMPL AX, $7
	JL   without
	MOVL $7, AX
	XORL CX, CX
	CPUID
	SHRL $23, BX
	ANDL $1, BX
	MOVB BX, ret+0(FP)
	RET

without:
	MOVB $0, ret+0(FP)
	RET
