//go:build amd64 && !noasm && !wazero

#include "textflag.h"

// The places of the codes of two blocks of Q4_0, each twice, and the shifts of these.
DATA codesQ4_0<>+0(SB)/8, $0x0908070605040302
DATA codesQ4_0<>+8(SB)/8, $0x11100f0e0d0c0b0a
DATA codesQ4_0<>+16(SB)/8, $0x0908070605040302
DATA codesQ4_0<>+24(SB)/8, $0x11100f0e0d0c0b0a
DATA codesQ4_0<>+32(SB)/8, $0x1b1a191817161514
DATA codesQ4_0<>+40(SB)/8, $0x232221201f1e1d1c
DATA codesQ4_0<>+48(SB)/8, $0x1b1a191817161514
DATA codesQ4_0<>+56(SB)/8, $0x232221201f1e1d1c
GLOBL codesQ4_0<>(SB), RODATA|NOPTR, $64

DATA shiftsQ4_0<>+0(SB)/8, $0x0000000000000000
DATA shiftsQ4_0<>+8(SB)/8, $0x0000000000000000
DATA shiftsQ4_0<>+16(SB)/8, $0x0000000400000004
DATA shiftsQ4_0<>+24(SB)/8, $0x0000000400000004
DATA shiftsQ4_0<>+32(SB)/8, $0x0000000000000000
DATA shiftsQ4_0<>+40(SB)/8, $0x0000000000000000
DATA shiftsQ4_0<>+48(SB)/8, $0x0000000400000004
DATA shiftsQ4_0<>+56(SB)/8, $0x0000000400000004
GLOBL shiftsQ4_0<>(SB), RODATA|NOPTR, $64

// The places of the scales of two blocks, each twice.
DATA scalesQ4_0<>+0(SB)/8, $0x1312131201000100
DATA scalesQ4_0<>+8(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+16(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+24(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+32(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+40(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+48(SB)/8, $0x0000000000000000
DATA scalesQ4_0<>+56(SB)/8, $0x0000000000000000
GLOBL scalesQ4_0<>(SB), RODATA|NOPTR, $64

DATA scalesQ8_0<>+0(SB)/8, $0x2322232201000100
DATA scalesQ8_0<>+8(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+16(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+24(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+32(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+40(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+48(SB)/8, $0x0000000000000000
DATA scalesQ8_0<>+56(SB)/8, $0x0000000000000000
GLOBL scalesQ8_0<>(SB), RODATA|NOPTR, $64

// func int8LevelsQ4_0AVX512(levels *int8, scales, biases *float32, src *byte, blocks int)
TEXT ·int8LevelsQ4_0AVX512(SB), NOSPLIT, $0-40
	MOVQ      levels+0(FP), DI
	MOVQ      scales+8(FP), DX
	MOVQ      src+24(FP), SI
	MOVQ      blocks+32(FP), CX
	VMOVDQU64 codesQ4_0<>(SB), Z1
	VMOVDQU64 shiftsQ4_0<>(SB), Z2
	VMOVDQU64 scalesQ4_0<>(SB), Z5
	MOVQ      $0x0f0f0f0f0f0f0f0f, AX
	VPBROADCASTQ AX, Z3
	MOVQ      $0x0808080808080808, AX
	VPBROADCASTQ AX, Z4
	MOVQ      $0xfffffffff, AX // the bytes of two blocks
	KMOVQ     AX, K1
	SUBQ      $2, CX
	JLT       one

two:
	VMOVDQU8.Z (SI), K1, Z0
	VPERMB     Z0, Z1, Z6
	VPSRLVD    Z2, Z6, Z6
	VPANDD     Z3, Z6, Z6
	VPSUBB     Z4, Z6, Z6
	VMOVDQU64  Z6, (DI)
	VPERMB     Z0, Z5, Z7
	VCVTPH2PS  X7, X7
	VMOVUPS    X7, (DX)
	ADDQ       $36, SI
	ADDQ       $64, DI
	ADDQ       $16, DX
	SUBQ       $2, CX
	JGE        two

one:
	ADDQ       $2, CX
	JEQ        done
	MOVQ       $0x3ffff, AX
	KMOVQ      AX, K1
	VMOVDQU8.Z (SI), K1, Z0
	VPERMB     Z0, Z1, Z6
	VPSRLVD    Z2, Z6, Z6
	VPANDD     Z3, Z6, Z6
	VPSUBB     Z4, Z6, Z6
	VMOVDQU    Y6, (DI)
	VPERMB     Z0, Z5, Z7
	VCVTPH2PS  X7, X7
	VMOVSD     X7, (DX)

done:
	VZEROUPPER
	RET

// func int8LevelsQ8_0AVX512(levels *int8, scales, biases *float32, src *byte, blocks int)
TEXT ·int8LevelsQ8_0AVX512(SB), NOSPLIT, $0-40
	MOVQ      levels+0(FP), DI
	MOVQ      scales+8(FP), DX
	MOVQ      src+24(FP), SI
	MOVQ      blocks+32(FP), CX
	VMOVDQU64 scalesQ8_0<>(SB), Z5
	SUBQ      $2, CX
	JLT       one

two:
	VPERMB    (SI), Z5, Z7
	VMOVDQU   2(SI), Y0
	VMOVDQU   36(SI), Y1
	VMOVDQU   Y0, (DI)
	VMOVDQU   Y1, 32(DI)
	VCVTPH2PS X7, X7
	VMOVUPS   X7, (DX)
	ADDQ      $68, SI
	ADDQ      $64, DI
	ADDQ      $16, DX
	SUBQ      $2, CX
	JGE       two

one:
	ADDQ         $2, CX
	JEQ          done
	VPBROADCASTW (SI), X7
	VMOVDQU      2(SI), Y0
	VMOVDQU      Y0, (DI)
	VCVTPH2PS    X7, X7
	VMOVSD       X7, (DX)

done:
	VZEROUPPER
	RET

// func int8HalfScales(dst *float32, src *byte, row, step, blocks int)
TEXT ·int8HalfScales(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ row+16(FP), AX
	MOVQ step+24(FP), BX
	MOVQ blocks+32(FP), CX
	VPBROADCASTD AX, Z0
	VPMULLD      places<>(SB), Z0, Z0

next:
	KXNORW     K1, K1, K1
	VPGATHERDD (SI)(Z0*1), K1, Z1
	VPMOVDW    Z1, Y1
	VCVTPH2PS  Y1, Z1
	VMOVUPS    Z1, (DI)
	ADDQ       BX, SI
	ADDQ       $64, DI
	DECQ       CX
	JNE        next
	VZEROUPPER
	RET

DATA places<>+0(SB)/4, $0
DATA places<>+4(SB)/4, $1
DATA places<>+8(SB)/4, $2
DATA places<>+12(SB)/4, $3
DATA places<>+16(SB)/4, $4
DATA places<>+20(SB)/4, $5
DATA places<>+24(SB)/4, $6
DATA places<>+28(SB)/4, $7
DATA places<>+32(SB)/4, $8
DATA places<>+36(SB)/4, $9
DATA places<>+40(SB)/4, $10
DATA places<>+44(SB)/4, $11
DATA places<>+48(SB)/4, $12
DATA places<>+52(SB)/4, $13
DATA places<>+56(SB)/4, $14
DATA places<>+60(SB)/4, $15
GLOBL places<>(SB), RODATA|NOPTR, $64
