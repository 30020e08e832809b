//go:build !cgo && !goffi_static && (linux || darwin) && !android

#include "textflag.h"

// Offsets in Frame.
#define FN      0
#define BIND    8
#define CONTEXT 16
#define ARG(i)  (24+8*(i))
#define RESULT  144
#define REFUSED 152

GLOBL ·trampolineAddress(SB), NOPTR|RODATA, $8
DATA ·trampolineAddress(SB)/8, $trampoline(SB)

// trampoline calls what the frame in DI says. It is itself called with the
// System V convention, on the stack of the thread, which is 8 bytes off a
// multiple of 16 then.
TEXT trampoline(SB), NOSPLIT|NOFRAME, $0
	PUSHQ BP
	MOVQ  SP, BP
	PUSHQ BX
	SUBQ  $88, SP       // nine arguments, and 16 to align
	MOVQ  DI, BX

	MOVQ  BIND(BX), R11
	TESTQ R11, R11
	JZ    bound
	MOVQ  CONTEXT(BX), DI
	XORL  AX, AX
	CALL  R11
	TESTL AX, AX
	JNZ   refused

bound:
	MOVQ ARG(6)(BX), AX
	MOVQ AX, 0(SP)
	MOVQ ARG(7)(BX), AX
	MOVQ AX, 8(SP)
	MOVQ ARG(8)(BX), AX
	MOVQ AX, 16(SP)
	MOVQ ARG(9)(BX), AX
	MOVQ AX, 24(SP)
	MOVQ ARG(10)(BX), AX
	MOVQ AX, 32(SP)
	MOVQ ARG(11)(BX), AX
	MOVQ AX, 40(SP)
	MOVQ ARG(12)(BX), AX
	MOVQ AX, 48(SP)
	MOVQ ARG(13)(BX), AX
	MOVQ AX, 56(SP)
	MOVQ ARG(14)(BX), AX
	MOVQ AX, 64(SP)
	MOVQ ARG(0)(BX), DI
	MOVQ ARG(1)(BX), SI
	MOVQ ARG(2)(BX), DX
	MOVQ ARG(3)(BX), CX
	MOVQ ARG(4)(BX), R8
	MOVQ ARG(5)(BX), R9
	MOVQ FN(BX), R11
	XORL AX, AX         // no vector registers, should the function be variadic
	CALL R11
	MOVQ AX, RESULT(BX)
	MOVQ $0, REFUSED(BX)
	JMP  done

refused:
	MOVQ AX, RESULT(BX)
	MOVQ $1, REFUSED(BX)

done:
	XORL AX, AX
	ADDQ $88, SP
	POPQ BX
	POPQ BP
	RET
