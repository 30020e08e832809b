//go:build linux && amd64 && !noasm && !wazero

#include "go_asm.h"
#include "textflag.h"

// The assembler does not know AMX: these are the bytes of its instructions.
#define LDTILECFG_AX    BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define STTILECFG_AX    BYTE $0xc4; BYTE $0xe2; BYTE $0x79; BYTE $0x49; BYTE $0x00
#define TILEZERO_0      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0
#define TILELOAD_AXCX_2 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x14; BYTE $0x08
#define TILELOAD_DXBX_3 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x1c; BYTE $0x1a
#define TDPBSSD_3_2_0   BYTE $0xc4; BYTE $0xe2; BYTE $0x63; BYTE $0x5e; BYTE $0xc2
#define TILESTORE_0     BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x1e

// Tile 0 holds sums for 16 rows of blocks and 16 rounded rows, tile 2 the levels of a group of 16 rows of blocks, tile 3
// the integers of that group of 16 rounded rows, four integers of all rows in a tile row.
DATA tiles32<>+0(SB)/8, $1
DATA tiles32<>+8(SB)/8, $0
DATA tiles32<>+16(SB)/8, $0x0040002000000040
DATA tiles32<>+24(SB)/8, $0
DATA tiles32<>+32(SB)/8, $0
DATA tiles32<>+40(SB)/8, $0
DATA tiles32<>+48(SB)/8, $0x0000000008100010
DATA tiles32<>+56(SB)/8, $0
GLOBL tiles32<>(SB), RODATA|NOPTR, $64

// The same for groups of 16 elements.
DATA tiles16<>+0(SB)/8, $1
DATA tiles16<>+8(SB)/8, $0
DATA tiles16<>+16(SB)/8, $0x0040001000000040
DATA tiles16<>+24(SB)/8, $0
DATA tiles16<>+32(SB)/8, $0
DATA tiles16<>+40(SB)/8, $0
DATA tiles16<>+48(SB)/8, $0x0000000004100010
DATA tiles16<>+56(SB)/8, $0
GLOBL tiles16<>(SB), RODATA|NOPTR, $64

// NEXT moves an address to the next of the 4 parts of the ring.
#define NEXT(at) \
	ADDQ    $1024, at; \
	CMPQ    at, end-8(SP); \
	CMOVQEQ ring-16(SP), at

// SUMS stores the sums of one group in a part of the ring.
#define SUMS \
	TILELOAD_AXCX_2; \
	TILELOAD_DXBX_3; \
	TILEZERO_0; \
	TDPBSSD_3_2_0; \
	TILESTORE_0; \
	ADDQ step-24(SP), AX; \
	ADDQ xStep-32(SP), DX; \
	NEXT(SI)

// ROW multiplies the sums of a row of blocks by the scales of the rounded rows in Z16 and by the scale of the row of blocks, and adds
// them to acc.
#define ROW(at, scale, acc, sum, factor) \
	VCVTDQ2PS   at(R15), sum; \
	VMULPS.BCST scale, Z16, factor; \
	VFMADD231PS sum, factor, acc

// STORE adds sums to the next row of c.
#define STORE(sums) \
	VADDPS  (DI), sums, sums; \
	VMOVUPS sums, (DI); \
	ADDQ    R10, DI; \
	DECQ    R15; \
	JEQ     done

// STRIDES sets R9 to the row 8 after that at R8, and R10 to R13 to 1, 3, 5 and 7 times the distance of rows.
#define STRIDES(row) \
	MOVQ row, R10; \
	LEAQ (R8)(R10*8), R9; \
	LEAQ (R10)(R10*2), R11; \
	LEAQ (R10)(R10*4), R12; \
	LEAQ (R11)(R10*4), R13

// func int8TurnedAMX(t *int8TurnedCall)
TEXT ·int8TurnedAMX(SB), 0, $4352-8
	MOVQ t+0(FP), R14
	LEAQ buffer-4352(SP), SI
	ADDQ $63, SI
	ANDQ $~63, SI
	MOVQ SI, ring-16(SP)
	LEAQ 4096(SI), AX
	MOVQ AX, end-8(SP)
	STTILECFG_AX // saved, because C code in the process may configure the tiles of a thread once only
	LEAQ tiles32<>(SB), AX
	XORQ DX, DX // what the distance to the scales of the next group changes by
	MOVQ int8TurnedCall_group(R14), BX
	CMPQ BX, $32
	JEQ  configure
	LEAQ tiles16<>(SB), AX
	MOVQ $64, DX

configure:
	LDTILECFG_AX
	MOVQ DX, toggle-48(SP)
	XORQ $64, DX
	MOVQ DX, xsStep-40(SP)
	SHLQ $4, BX
	MOVQ BX, xStep-32(SP)
	MOVQ int8TurnedCall_step(R14), AX
	MOVQ AX, step-24(SP)
	MOVQ int8TurnedCall_scalesStep(R14), AX
	MOVQ AX, scalesStep-56(SP)
	MOVQ int8TurnedCall_aheadStep(R14), AX
	MOVQ AX, aheadStep-64(SP)
	MOVQ int8TurnedCall_groups(R14), AX
	MOVQ AX, sums-72(SP)
	MOVQ AX, rows-80(SP)
	MOVQ int8TurnedCall_levels(R14), AX
	MOVQ int8TurnedCall_row(R14), CX
	MOVQ int8TurnedCall_x(R14), DX
	MOVQ int8TurnedCall_xs(R14), DI
	MOVQ $64, BX
	MOVQ int8TurnedCall_scales(R14), R8
	STRIDES(int8TurnedCall_scalesRow(R14))
	MOVQ SI, R15
	MOVQ int8TurnedCall_src(R14), BX
	MOVQ int8TurnedCall_ahead(R14), R14
	ADDQ BX, R14
	MOVQ $64, BX
	VPXORD Z0, Z0, Z0
	VMOVAPS Z0, Z1
	VMOVAPS Z0, Z2
	VMOVAPS Z0, Z3
	VMOVAPS Z0, Z4
	VMOVAPS Z0, Z5
	VMOVAPS Z0, Z6
	VMOVAPS Z0, Z7
	VMOVAPS Z0, Z8
	VMOVAPS Z0, Z9
	VMOVAPS Z0, Z10
	VMOVAPS Z0, Z11
	VMOVAPS Z0, Z12
	VMOVAPS Z0, Z13
	VMOVAPS Z0, Z14
	VMOVAPS Z0, Z15

	SUMS
	DECQ sums-72(SP)
	JEQ  next
	SUMS
	DECQ sums-72(SP)
	JEQ  next
	SUMS
	DECQ sums-72(SP)
	JEQ  next

	// The tiles of later groups are multiplied while the sums of a group are scaled.
next:
	CMPQ sums-72(SP), $0
	JEQ  scale
	SUMS
	DECQ sums-72(SP)

scale:
	PREFETCHT0 0(R14)
	PREFETCHT0 64(R14)
	PREFETCHT0 128(R14)
	PREFETCHT0 192(R14)
	PREFETCHT0 256(R14)
	PREFETCHT0 320(R14)
	PREFETCHT0 384(R14)
	PREFETCHT0 448(R14)
	PREFETCHT0 512(R14)
	ADDQ aheadStep-64(SP), R14
	VMOVUPS (DI), Z16
	ROW(0, (R8), Z0, Z17, Z18)
	ROW(64, (R8)(R10*1), Z1, Z19, Z20)
	ROW(128, (R8)(R10*2), Z2, Z21, Z22)
	ROW(192, (R8)(R11*1), Z3, Z23, Z24)
	ROW(256, (R8)(R10*4), Z4, Z25, Z26)
	ROW(320, (R8)(R12*1), Z5, Z27, Z28)
	ROW(384, (R8)(R11*2), Z6, Z29, Z30)
	ROW(448, (R8)(R13*1), Z7, Z17, Z18)
	ROW(512, (R9), Z8, Z19, Z20)
	ROW(576, (R9)(R10*1), Z9, Z21, Z22)
	ROW(640, (R9)(R10*2), Z10, Z23, Z24)
	ROW(704, (R9)(R11*1), Z11, Z25, Z26)
	ROW(768, (R9)(R10*4), Z12, Z27, Z28)
	ROW(832, (R9)(R12*1), Z13, Z29, Z30)
	ROW(896, (R9)(R11*2), Z14, Z17, Z18)
	ROW(960, (R9)(R13*1), Z15, Z19, Z20)
	NEXT(R15)
	ADDQ xsStep-40(SP), DI
	MOVQ toggle-48(SP), BX
	XORQ BX, xsStep-40(SP)
	MOVQ $64, BX
	ADDQ scalesStep-56(SP), R8
	ADDQ scalesStep-56(SP), R9
	DECQ rows-80(SP)
	JNE  next
	MOVQ end-8(SP), AX
	LDTILECFG_AX // restores the configuration of the thread
	MOVQ t+0(FP), R14
	MOVQ int8TurnedCall_biases(R14), R8
	TESTQ R8, R8
	JEQ  turn
	STRIDES(int8TurnedCall_scalesRow(R14))
	MOVQ int8TurnedCall_xsums(R14), DI
	MOVQ int8TurnedCall_groups(R14), R15

bias:
	VMOVUPS (DI), Z16
	VFMADD231PS.BCST (R8), Z16, Z0
	VFMADD231PS.BCST (R8)(R10*1), Z16, Z1
	VFMADD231PS.BCST (R8)(R10*2), Z16, Z2
	VFMADD231PS.BCST (R8)(R11*1), Z16, Z3
	VFMADD231PS.BCST (R8)(R10*4), Z16, Z4
	VFMADD231PS.BCST (R8)(R12*1), Z16, Z5
	VFMADD231PS.BCST (R8)(R11*2), Z16, Z6
	VFMADD231PS.BCST (R8)(R13*1), Z16, Z7
	VFMADD231PS.BCST (R9), Z16, Z8
	VFMADD231PS.BCST (R9)(R10*1), Z16, Z9
	VFMADD231PS.BCST (R9)(R10*2), Z16, Z10
	VFMADD231PS.BCST (R9)(R11*1), Z16, Z11
	VFMADD231PS.BCST (R9)(R10*4), Z16, Z12
	VFMADD231PS.BCST (R9)(R12*1), Z16, Z13
	VFMADD231PS.BCST (R9)(R11*2), Z16, Z14
	VFMADD231PS.BCST (R9)(R13*1), Z16, Z15
	ADDQ $64, DI
	ADDQ scalesStep-56(SP), R8
	ADDQ scalesStep-56(SP), R9
	DECQ R15
	JNE  bias

turn:
	// Row i of the transpose has the sums of rounded row i.
	VUNPCKLPS Z1, Z0, Z16; VUNPCKHPS Z1, Z0, Z17
	VUNPCKLPS Z3, Z2, Z18; VUNPCKHPS Z3, Z2, Z19
	VUNPCKLPS Z5, Z4, Z20; VUNPCKHPS Z5, Z4, Z21
	VUNPCKLPS Z7, Z6, Z22; VUNPCKHPS Z7, Z6, Z23
	VUNPCKLPS Z9, Z8, Z24; VUNPCKHPS Z9, Z8, Z25
	VUNPCKLPS Z11, Z10, Z26; VUNPCKHPS Z11, Z10, Z27
	VUNPCKLPS Z13, Z12, Z28; VUNPCKHPS Z13, Z12, Z29
	VUNPCKLPS Z15, Z14, Z30; VUNPCKHPS Z15, Z14, Z31
	VUNPCKLPD Z18, Z16, Z0; VUNPCKHPD Z18, Z16, Z1; VUNPCKLPD Z19, Z17, Z2; VUNPCKHPD Z19, Z17, Z3
	VUNPCKLPD Z22, Z20, Z4; VUNPCKHPD Z22, Z20, Z5; VUNPCKLPD Z23, Z21, Z6; VUNPCKHPD Z23, Z21, Z7
	VUNPCKLPD Z26, Z24, Z8; VUNPCKHPD Z26, Z24, Z9; VUNPCKLPD Z27, Z25, Z10; VUNPCKHPD Z27, Z25, Z11
	VUNPCKLPD Z30, Z28, Z12; VUNPCKHPD Z30, Z28, Z13; VUNPCKLPD Z31, Z29, Z14; VUNPCKHPD Z31, Z29, Z15
	VSHUFF32X4 $0x88, Z4, Z0, Z16; VSHUFF32X4 $0xdd, Z4, Z0, Z20; VSHUFF32X4 $0x88, Z12, Z8, Z24; VSHUFF32X4 $0xdd, Z12, Z8, Z28
	VSHUFF32X4 $0x88, Z5, Z1, Z17; VSHUFF32X4 $0xdd, Z5, Z1, Z21; VSHUFF32X4 $0x88, Z13, Z9, Z25; VSHUFF32X4 $0xdd, Z13, Z9, Z29
	VSHUFF32X4 $0x88, Z6, Z2, Z18; VSHUFF32X4 $0xdd, Z6, Z2, Z22; VSHUFF32X4 $0x88, Z14, Z10, Z26; VSHUFF32X4 $0xdd, Z14, Z10, Z30
	VSHUFF32X4 $0x88, Z7, Z3, Z19; VSHUFF32X4 $0xdd, Z7, Z3, Z23; VSHUFF32X4 $0x88, Z15, Z11, Z27; VSHUFF32X4 $0xdd, Z15, Z11, Z31
	VSHUFF32X4 $0x88, Z24, Z16, Z0; VSHUFF32X4 $0x88, Z28, Z20, Z4; VSHUFF32X4 $0xdd, Z24, Z16, Z8; VSHUFF32X4 $0xdd, Z28, Z20, Z12
	VSHUFF32X4 $0x88, Z25, Z17, Z1; VSHUFF32X4 $0x88, Z29, Z21, Z5; VSHUFF32X4 $0xdd, Z25, Z17, Z9; VSHUFF32X4 $0xdd, Z29, Z21, Z13
	VSHUFF32X4 $0x88, Z26, Z18, Z2; VSHUFF32X4 $0x88, Z30, Z22, Z6; VSHUFF32X4 $0xdd, Z26, Z18, Z10; VSHUFF32X4 $0xdd, Z30, Z22, Z14
	VSHUFF32X4 $0x88, Z27, Z19, Z3; VSHUFF32X4 $0x88, Z31, Z23, Z7; VSHUFF32X4 $0xdd, Z27, Z19, Z11; VSHUFF32X4 $0xdd, Z31, Z23, Z15
	MOVQ int8TurnedCall_c(R14), DI
	MOVQ int8TurnedCall_cRow(R14), R10
	MOVQ int8TurnedCall_rows(R14), R15
	STORE(Z0)
	STORE(Z1)
	STORE(Z2)
	STORE(Z3)
	STORE(Z4)
	STORE(Z5)
	STORE(Z6)
	STORE(Z7)
	STORE(Z8)
	STORE(Z9)
	STORE(Z10)
	STORE(Z11)
	STORE(Z12)
	STORE(Z13)
	STORE(Z14)
	STORE(Z15)

done:
	VZEROUPPER
	RET

// func int8HalfScales(dst *float32, src *byte, row, step, groups int)
TEXT ·int8HalfScales(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ row+16(FP), AX
	MOVQ step+24(FP), BX
	MOVQ groups+32(FP), CX
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
