//go:build linux && amd64 && !noasm && !wazero

#include "textflag.h"
#include "int8_amx_amd64.h"

// Tiles 0 and 1 hold sums of 16 rows and 16 columns; tiles 2 and 4 hold 16 rows of 32 integers; tiles 3 and 5 hold 32 levels of
// each of 16 columns, four levels of all columns in a tile row.
DATA tiles<>+0(SB)/8, $1
DATA tiles<>+8(SB)/8, $0
DATA tiles<>+16(SB)/8, $0x0040002000400040
DATA tiles<>+24(SB)/8, $0x0000000000400020
DATA tiles<>+32(SB)/8, $0
DATA tiles<>+40(SB)/8, $0
DATA tiles<>+48(SB)/8, $0x0000081008101010
DATA tiles<>+56(SB)/8, $0
GLOBL tiles<>(SB), RODATA|NOPTR, $64

// SUMS0 and SUMS1 store the sums of one group in the first and in the second half of the memory at SI.
#define SUMS0 TILELOAD_AXCX_2; TILELOAD_DXBX_3; TILEZERO_0; TDPBSSD_3_2_0; TILESTORE_0; ADDQ $32, AX; ADDQ $512, DX
#define SUMS1 TILELOAD_AXCX_4; TILELOAD_DXBX_5; TILEZERO_1; TDPBSSD_5_4_1; TILESTORE_1; ADDQ $32, AX; ADDQ $512, DX

// ROW multiplies the sums of a row by the scale of the row and by the scales of the columns in Z16, and adds them to acc.
#define ROW(at, scale, acc, sum, factor) \
	VCVTDQ2PS   at(SI), sum; \
	VMULPS.BCST scale, Z16, factor; \
	VFMADD231PS sum, factor, acc

// ROWS is ROW for the 16 rows of a group.
#define ROWS(at) \
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
	ADDQ $64, DI; \
	ADDQ $4, R8; \
	ADDQ $4, R9

#define STORE(acc) \
	VADDPS  (DI), acc, acc; \
	VMOVUPS acc, (DI); \
	ADDQ    R10, DI

// func int8TileAMX(c *float32, cRow int, x *int8, scales, sums *float32, corrections *int32, stride int, w *byte, ws, wb *float32, groups int)
TEXT ·int8TileAMX(SB), 0, $2176-88
	LEAQ       buffer-2176(SP), SI
	ADDQ       $63, SI
	ANDQ       $~63, SI
	LEAQ       2048(SI), AX
	STTILECFG_AX // saved, because C code in the process may configure the tiles of a thread once only
	LEAQ       tiles<>(SB), AX
	LDTILECFG_AX
	MOVQ       x+16(FP), AX
	MOVQ       stride+48(FP), CX
	MOVQ       w+56(FP), DX
	MOVQ       $64, BX
	MOVQ       ws+64(FP), DI
	MOVQ       groups+80(FP), R15
	MOVQ       scales+24(FP), R8
	MOVQ       CX, R10
	SHRQ       $3, R10
	LEAQ       (R8)(R10*8), R9
	LEAQ       (R10)(R10*2), R11
	LEAQ       (R10)(R10*4), R12
	LEAQ       (R11)(R10*4), R13
	VPXORD     Z0, Z0, Z0
	VMOVAPS    Z0, Z1
	VMOVAPS    Z0, Z2
	VMOVAPS    Z0, Z3
	VMOVAPS    Z0, Z4
	VMOVAPS    Z0, Z5
	VMOVAPS    Z0, Z6
	VMOVAPS    Z0, Z7
	VMOVAPS    Z0, Z8
	VMOVAPS    Z0, Z9
	VMOVAPS    Z0, Z10
	VMOVAPS    Z0, Z11
	VMOVAPS    Z0, Z12
	VMOVAPS    Z0, Z13
	VMOVAPS    Z0, Z14
	VMOVAPS    Z0, Z15
	SUMS0

next:
	// The tiles of a group are multiplied while the sums of the one before it are scaled.
	DECQ       R15
	JEQ        even
	SUMS1
	ROWS(0)
	DECQ       R15
	JEQ        odd
	SUMS0
	ROWS(1024)
	JMP        next

even:
	ROWS(0)
	JMP        biases

odd:
	ROWS(1024)

biases:
	LEAQ       2048(SI), AX
	LDTILECFG_AX // restores the configuration of the thread
	MOVQ       wb+72(FP), DI
	TESTQ      DI, DI
	JEQ        add
	MOVQ       sums+32(FP), R8
	LEAQ       (R8)(R10*8), R9
	MOVQ       groups+80(FP), R15

bias:
	VMOVUPS          (DI), Z16
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
	ADDQ             $64, DI
	ADDQ             $4, R8
	ADDQ             $4, R9
	DECQ             R15
	JNE              bias

add:
	MOVQ       c+0(FP), DI
	MOVQ       cRow+8(FP), R10
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
	VZEROUPPER
	RET
