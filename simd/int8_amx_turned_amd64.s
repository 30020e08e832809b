//go:build linux && amd64 && !noasm && !wazero

#include "textflag.h"

// The assembler does not know AMX: these are the bytes of its instructions.
#define LDTILECFG_AX    BYTE $0xc4; BYTE $0xe2; BYTE $0x78; BYTE $0x49; BYTE $0x00
#define STTILECFG_AX    BYTE $0xc4; BYTE $0xe2; BYTE $0x79; BYTE $0x49; BYTE $0x00
#define TILEZERO_0      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc0
#define TILEZERO_1      BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x49; BYTE $0xc8
#define TILELOAD_AXCX_2 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x14; BYTE $0x08
#define TILELOAD_AXCX_4 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x24; BYTE $0x08
#define TILELOAD_DXBX_3 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x1c; BYTE $0x1a
#define TILELOAD_DXBX_5 BYTE $0xc4; BYTE $0xe2; BYTE $0x7b; BYTE $0x4b; BYTE $0x2c; BYTE $0x1a
#define TDPBSSD_3_2_0   BYTE $0xc4; BYTE $0xe2; BYTE $0x63; BYTE $0x5e; BYTE $0xc2
#define TDPBSSD_5_4_1   BYTE $0xc4; BYTE $0xe2; BYTE $0x53; BYTE $0x5e; BYTE $0xcc
#define TILESTORE_0     BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x04; BYTE $0x1e
#define TILESTORE_1     BYTE $0xc4; BYTE $0xe2; BYTE $0x7a; BYTE $0x4b; BYTE $0x8c; BYTE $0x1e; BYTE $0x00; BYTE $0x04; BYTE $0x00; BYTE $0x00

// Tiles 0 and 1 hold sums for 16 rows of blocks and 16 rounded rows. Tiles 2 and 4 hold the levels of a group of 16 rows of blocks.
// Tiles 3 and 5 hold the integers of that group of 16 rounded rows, four integers of all rows in a tile row.
DATA tiles32<>+0(SB)/8, $1
DATA tiles32<>+8(SB)/8, $0
DATA tiles32<>+16(SB)/8, $0x0040002000400040
DATA tiles32<>+24(SB)/8, $0x0000000000400020
DATA tiles32<>+32(SB)/8, $0
DATA tiles32<>+40(SB)/8, $0
DATA tiles32<>+48(SB)/8, $0x0000081008101010
DATA tiles32<>+56(SB)/8, $0
GLOBL tiles32<>(SB), RODATA|NOPTR, $64

// The same for groups of 16 elements.
DATA tiles16<>+0(SB)/8, $1
DATA tiles16<>+8(SB)/8, $0
DATA tiles16<>+16(SB)/8, $0x0040001000400040
DATA tiles16<>+24(SB)/8, $0x0000000000400010
DATA tiles16<>+32(SB)/8, $0
DATA tiles16<>+40(SB)/8, $0
DATA tiles16<>+48(SB)/8, $0x0000041004101010
DATA tiles16<>+56(SB)/8, $0
GLOBL tiles16<>(SB), RODATA|NOPTR, $64

// SUMS0 and SUMS1 store the sums of one group in the first and in the second half of the memory at SI.
#define SUMS0 TILELOAD_AXCX_2; TILELOAD_DXBX_3; TILEZERO_0; TDPBSSD_3_2_0; TILESTORE_0; ADDQ step+40(FP), AX; ADDQ R14, DX
#define SUMS1 TILELOAD_AXCX_4; TILELOAD_DXBX_5; TILEZERO_1; TDPBSSD_5_4_1; TILESTORE_1; ADDQ step+40(FP), AX; ADDQ R14, DX

// ROW multiplies the sums of a row of blocks by the scales of the rounded rows in Z16 and by the scale of the row of blocks, and adds
// them to acc.
#define ROW(at, scale, acc, sum, factor) \
	VCVTDQ2PS   at(SI), sum; \
	VMULPS.BCST scale, Z16, factor; \
	VFMADD231PS sum, factor, acc

// ROWS is ROW for the 16 rows of blocks.
#define ROWS(at, next) \
	VMOVUPS (DI), Z16; \
	ROW(at+0, (R8), Z0, Z17, Z18); \
	ROW(at+64, (R8)(R10*1), Z1, Z19, Z20); \
	ROW(at+128, (R8)(R10*2), Z2, Z21, Z22); \
	ROW(at+192, (R8)(R11*1), Z3, Z23, Z24); \
	ROW(at+256, (R8)(R10*4), Z4, Z25, Z26); \
	ROW(at+320, (R8)(R12*1), Z5, Z27, Z28); \
	ROW(at+384, (R8)(R11*2), Z6, Z29, Z30); \
	ROW(at+448, (R8)(R13*1), Z7, Z17, Z18); \
	ROW(at+512, (R9), Z8, Z19, Z20); \
	ROW(at+576, (R9)(R10*1), Z9, Z21, Z22); \
	ROW(at+640, (R9)(R10*2), Z10, Z23, Z24); \
	ROW(at+704, (R9)(R11*1), Z11, Z25, Z26); \
	ROW(at+768, (R9)(R10*4), Z12, Z27, Z28); \
	ROW(at+832, (R9)(R12*1), Z13, Z29, Z30); \
	ROW(at+896, (R9)(R11*2), Z14, Z17, Z18); \
	ROW(at+960, (R9)(R13*1), Z15, Z19, Z20); \
	ADDQ next, DI; \
	ADDQ scalesStep+72(FP), R8; \
	ADDQ scalesStep+72(FP), R9

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

// func int8TurnedAMX(c *float32, cRow, rows int, levels *byte, row, step int, scales, biases *float32, scalesRow, scalesStep int, x *int8, xs, xsums *float32, group, groups int)
TEXT ·int8TurnedAMX(SB), 0, $2240-120
	LEAQ  buffer-2240(SP), SI
	ADDQ  $63, SI
	ANDQ  $~63, SI
	LEAQ  2048(SI), AX
	STTILECFG_AX // saved, because C code in the process may configure the tiles of a thread once only
	LEAQ  tiles32<>(SB), AX
	MOVQ  group+104(FP), R14
	MOVQ  $64, R15
	CMPQ  R14, $32
	JEQ   configure
	LEAQ  tiles16<>(SB), AX
	XORQ  R15, R15

configure:
	LDTILECFG_AX
	MOVQ  R15, 2112(SI) // the distance of the scales of rounded rows from the first group of two to the second
	SHLQ  $4, R14 // the bytes of a group of the rounded rows
	MOVQ  levels+24(FP), AX
	MOVQ  row+32(FP), CX
	MOVQ  x+80(FP), DX
	MOVQ  $64, BX
	MOVQ  xs+88(FP), DI
	MOVQ  groups+112(FP), R15
	MOVQ  scales+48(FP), R8
	STRIDES(scalesRow+64(FP))
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
	SUMS0

next:
	// The tiles of a group are multiplied while the sums of the one before it are scaled.
	DECQ R15
	JEQ  even
	SUMS1
	ROWS(0, 2112(SI))
	DECQ R15
	JEQ  odd
	SUMS0
	ROWS(1024, $64)
	JMP  next

even:
	ROWS(0, $64)
	JMP  biases

odd:
	ROWS(1024, $64)

biases:
	LEAQ  2048(SI), AX
	LDTILECFG_AX // restores the configuration of the thread
	MOVQ  biases+56(FP), R8
	TESTQ R8, R8
	JEQ   turn
	STRIDES(scalesRow+64(FP))
	MOVQ  xsums+96(FP), DI
	MOVQ  groups+112(FP), R15

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
	ADDQ scalesStep+72(FP), R8
	ADDQ scalesStep+72(FP), R9
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
	MOVQ c+0(FP), DI
	MOVQ cRow+8(FP), R10
	MOVQ rows+16(FP), R15
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
