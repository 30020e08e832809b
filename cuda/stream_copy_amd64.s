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
	PREFETCHNTA 1024(SI)
	MOVOU       (SI), X0
	MOVOU       16(SI), X1
	MOVOU       32(SI), X2
	MOVOU       48(SI), X3
	MOVOU       X0, (DI)
	MOVOU       X1, 16(DI)
	MOVOU       X2, 32(DI)
	MOVOU       X3, 48(DI)
	ADDQ        $64, SI
	ADDQ        $64, DI
	SUBQ        $64, CX

test:
	CMPQ CX, $64
	JGE  next
	RET
