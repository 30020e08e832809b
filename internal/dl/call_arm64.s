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

// trampoline calls what the frame in R0 says. It is itself called with the
// convention of AAPCS64, on the stack of the thread.
TEXT trampoline(SB), NOSPLIT|NOFRAME, $0
	SUB  $96, RSP       // seven arguments, then what is saved
	STP  (R29, R30), 64(RSP)
	MOVD R19, 80(RSP)
	ADD  $64, RSP, R29
	MOVD R0, R19

	MOVD BIND(R19), R9
	CBZ  R9, bound
	MOVD CONTEXT(R19), R0
	CALL (R9)
	CBNZW R0, refused

bound:
	MOVD ARG(8)(R19), R9
	MOVD R9, 0(RSP)
	MOVD ARG(9)(R19), R9
	MOVD R9, 8(RSP)
	MOVD ARG(10)(R19), R9
	MOVD R9, 16(RSP)
	MOVD ARG(11)(R19), R9
	MOVD R9, 24(RSP)
	MOVD ARG(12)(R19), R9
	MOVD R9, 32(RSP)
	MOVD ARG(13)(R19), R9
	MOVD R9, 40(RSP)
	MOVD ARG(14)(R19), R9
	MOVD R9, 48(RSP)
	MOVD ARG(0)(R19), R0
	MOVD ARG(1)(R19), R1
	MOVD ARG(2)(R19), R2
	MOVD ARG(3)(R19), R3
	MOVD ARG(4)(R19), R4
	MOVD ARG(5)(R19), R5
	MOVD ARG(6)(R19), R6
	MOVD ARG(7)(R19), R7
	MOVD FN(R19), R9
	CALL (R9)
	MOVD R0, RESULT(R19)
	MOVD ZR, REFUSED(R19)
	B    done

refused:
	MOVD R0, RESULT(R19)
	MOVD $1, R9
	MOVD R9, REFUSED(R19)

done:
	MOVD ZR, R0
	MOVD 80(RSP), R19
	LDP  64(RSP), (R29, R30)
	ADD  $96, RSP
	RET
