//go:build linux && amd64 && !noasm && !wazero

#include "go_asm.h"
#include "textflag.h"
#include "int8_amx_amd64.h"

// Tile 0 holds sums for 16 rows of blocks, tile 2 their levels, and tile 3 integers of rounded rows, for units of 64, 32 and 16 elements.
DATA tiles64<>+0(SB)/8, $1
DATA tiles64<>+8(SB)/8, $0
DATA tiles64<>+16(SB)/8, $0x0040004000000040
DATA tiles64<>+24(SB)/8, $0
DATA tiles64<>+32(SB)/8, $0
DATA tiles64<>+40(SB)/8, $0
DATA tiles64<>+48(SB)/8, $0x0000000010100010
DATA tiles64<>+56(SB)/8, $0
GLOBL tiles64<>(SB), RODATA|NOPTR, $64

DATA tiles32<>+0(SB)/8, $1
DATA tiles32<>+8(SB)/8, $0
DATA tiles32<>+16(SB)/8, $0x0040002000000040
DATA tiles32<>+24(SB)/8, $0
DATA tiles32<>+32(SB)/8, $0
DATA tiles32<>+40(SB)/8, $0
DATA tiles32<>+48(SB)/8, $0x0000000008100010
DATA tiles32<>+56(SB)/8, $0
GLOBL tiles32<>(SB), RODATA|NOPTR, $64

DATA tiles16<>+0(SB)/8, $1
DATA tiles16<>+8(SB)/8, $0
DATA tiles16<>+16(SB)/8, $0x0040001000000040
DATA tiles16<>+24(SB)/8, $0
DATA tiles16<>+32(SB)/8, $0
DATA tiles16<>+40(SB)/8, $0
DATA tiles16<>+48(SB)/8, $0x0000000004100010
DATA tiles16<>+56(SB)/8, $0
GLOBL tiles16<>(SB), RODATA|NOPTR, $64

// NEXT moves an address to the next of the four parts of the ring.
#define NEXT(at) \
	ADDQ    $1024, at; \
	CMPQ    at, end-8(SP); \
	CMOVQEQ ring-16(SP), at

// SUMS stores the sums of one unit in a part of the ring.
#define SUMS \
	TILELOAD_AXCX_2; \
	TILELOAD_DXBX_3; \
	TILEZERO_0; \
	TDPBSSD_3_2_0; \
	TILESTORE_0; \
	ADDQ step-48(SP), AX; \
	ADDQ xStep-56(SP), DX; \
	NEXT(SI)

// ROW1 multiplies the sums of a row of blocks by the scales of the rounded rows in Z16 and by the scale of the row of blocks, and adds them
// to acc. ROW4 multiplies by four scales of the row of blocks.
#define ROW1(at, scale, acc, sum, factor) \
	VCVTDQ2PS   at(R15), sum; \
	VMULPS.BCST scale, Z16, factor; \
	VFMADD231PS sum, factor, acc

#define ROW4(at, scale, acc, sum, factor) \
	VCVTDQ2PS       at(R15), sum; \
	VBROADCASTF32X4 scale, factor; \
	VMULPS          Z16, factor, factor; \
	VFMADD231PS     sum, factor, acc

// BIAS1 adds the products of the sums of the rounded rows in Z16 with the bias of a row of blocks, and BIAS4 with four.
#define BIAS1(biases, acc, factor) \
	VFMADD231PS.BCST biases, Z16, acc

#define BIAS4(biases, acc, factor) \
	VBROADCASTF32X4 biases, factor; \
	VFMADD231PS     factor, Z16, acc

// ROWS uses ROW1 or ROW4 for 16 rows of blocks, and BIASES BIAS1 or BIAS4.
#define ROWS(ROW) \
	VMOVUPS (DI), Z16; \
	ROW(0, (R8), Z0, Z17, Z18); \
	ROW(64, (R8)(R10*1), Z1, Z19, Z20); \
	ROW(128, (R8)(R10*2), Z2, Z21, Z22); \
	ROW(192, (R8)(R11*1), Z3, Z23, Z24); \
	ROW(256, (R8)(R10*4), Z4, Z25, Z26); \
	ROW(320, (R8)(R12*1), Z5, Z27, Z28); \
	ROW(384, (R8)(R11*2), Z6, Z29, Z30); \
	ROW(448, (R8)(R13*1), Z7, Z17, Z18); \
	ROW(512, (R9), Z8, Z19, Z20); \
	ROW(576, (R9)(R10*1), Z9, Z21, Z22); \
	ROW(640, (R9)(R10*2), Z10, Z23, Z24); \
	ROW(704, (R9)(R11*1), Z11, Z25, Z26); \
	ROW(768, (R9)(R10*4), Z12, Z27, Z28); \
	ROW(832, (R9)(R12*1), Z13, Z29, Z30); \
	ROW(896, (R9)(R11*2), Z14, Z17, Z18); \
	ROW(960, (R9)(R13*1), Z15, Z19, Z20)

#define BIASES(BIAS) \
	VMOVUPS (DI), Z16; \
	BIAS((R8), Z0, Z17); \
	BIAS((R8)(R10*1), Z1, Z18); \
	BIAS((R8)(R10*2), Z2, Z19); \
	BIAS((R8)(R11*1), Z3, Z20); \
	BIAS((R8)(R10*4), Z4, Z21); \
	BIAS((R8)(R12*1), Z5, Z22); \
	BIAS((R8)(R11*2), Z6, Z23); \
	BIAS((R8)(R13*1), Z7, Z24); \
	BIAS((R9), Z8, Z25); \
	BIAS((R9)(R10*1), Z9, Z26); \
	BIAS((R9)(R10*2), Z10, Z27); \
	BIAS((R9)(R11*1), Z11, Z28); \
	BIAS((R9)(R10*4), Z12, Z29); \
	BIAS((R9)(R12*1), Z13, Z30); \
	BIAS((R9)(R11*2), Z14, Z17); \
	BIAS((R9)(R13*1), Z15, Z18)

#define PREFETCH9 \
	PREFETCHT0 0(R14); \
	PREFETCHT0 64(R14); \
	PREFETCHT0 128(R14); \
	PREFETCHT0 192(R14); \
	PREFETCHT0 256(R14); \
	PREFETCHT0 320(R14); \
	PREFETCHT0 384(R14); \
	PREFETCHT0 448(R14); \
	PREFETCHT0 512(R14)

#define PREFETCH5 \
	PREFETCHT0 576(R14); \
	PREFETCHT0 640(R14); \
	PREFETCHT0 704(R14); \
	PREFETCHT0 768(R14); \
	PREFETCHT0 832(R14)

#define ZEROS \
	VPXORD Z0, Z0, Z0; \
	VMOVAPS Z0, Z1; \
	VMOVAPS Z0, Z2; \
	VMOVAPS Z0, Z3; \
	VMOVAPS Z0, Z4; \
	VMOVAPS Z0, Z5; \
	VMOVAPS Z0, Z6; \
	VMOVAPS Z0, Z7; \
	VMOVAPS Z0, Z8; \
	VMOVAPS Z0, Z9; \
	VMOVAPS Z0, Z10; \
	VMOVAPS Z0, Z11; \
	VMOVAPS Z0, Z12; \
	VMOVAPS Z0, Z13; \
	VMOVAPS Z0, Z14; \
	VMOVAPS Z0, Z15

// TURN transposes the sums: vector i becomes those of lane i.
#define TURN \
	VUNPCKLPS Z1, Z0, Z16; VUNPCKHPS Z1, Z0, Z17; \
	VUNPCKLPS Z3, Z2, Z18; VUNPCKHPS Z3, Z2, Z19; \
	VUNPCKLPS Z5, Z4, Z20; VUNPCKHPS Z5, Z4, Z21; \
	VUNPCKLPS Z7, Z6, Z22; VUNPCKHPS Z7, Z6, Z23; \
	VUNPCKLPS Z9, Z8, Z24; VUNPCKHPS Z9, Z8, Z25; \
	VUNPCKLPS Z11, Z10, Z26; VUNPCKHPS Z11, Z10, Z27; \
	VUNPCKLPS Z13, Z12, Z28; VUNPCKHPS Z13, Z12, Z29; \
	VUNPCKLPS Z15, Z14, Z30; VUNPCKHPS Z15, Z14, Z31; \
	VUNPCKLPD Z18, Z16, Z0; VUNPCKHPD Z18, Z16, Z1; VUNPCKLPD Z19, Z17, Z2; VUNPCKHPD Z19, Z17, Z3; \
	VUNPCKLPD Z22, Z20, Z4; VUNPCKHPD Z22, Z20, Z5; VUNPCKLPD Z23, Z21, Z6; VUNPCKHPD Z23, Z21, Z7; \
	VUNPCKLPD Z26, Z24, Z8; VUNPCKHPD Z26, Z24, Z9; VUNPCKLPD Z27, Z25, Z10; VUNPCKHPD Z27, Z25, Z11; \
	VUNPCKLPD Z30, Z28, Z12; VUNPCKHPD Z30, Z28, Z13; VUNPCKLPD Z31, Z29, Z14; VUNPCKHPD Z31, Z29, Z15; \
	VSHUFF32X4 $0x88, Z4, Z0, Z16; VSHUFF32X4 $0xdd, Z4, Z0, Z20; VSHUFF32X4 $0x88, Z12, Z8, Z24; VSHUFF32X4 $0xdd, Z12, Z8, Z28; \
	VSHUFF32X4 $0x88, Z5, Z1, Z17; VSHUFF32X4 $0xdd, Z5, Z1, Z21; VSHUFF32X4 $0x88, Z13, Z9, Z25; VSHUFF32X4 $0xdd, Z13, Z9, Z29; \
	VSHUFF32X4 $0x88, Z6, Z2, Z18; VSHUFF32X4 $0xdd, Z6, Z2, Z22; VSHUFF32X4 $0x88, Z14, Z10, Z26; VSHUFF32X4 $0xdd, Z14, Z10, Z30; \
	VSHUFF32X4 $0x88, Z7, Z3, Z19; VSHUFF32X4 $0xdd, Z7, Z3, Z23; VSHUFF32X4 $0x88, Z15, Z11, Z27; VSHUFF32X4 $0xdd, Z15, Z11, Z31; \
	VSHUFF32X4 $0x88, Z24, Z16, Z0; VSHUFF32X4 $0x88, Z28, Z20, Z4; VSHUFF32X4 $0xdd, Z24, Z16, Z8; VSHUFF32X4 $0xdd, Z28, Z20, Z12; \
	VSHUFF32X4 $0x88, Z25, Z17, Z1; VSHUFF32X4 $0x88, Z29, Z21, Z5; VSHUFF32X4 $0xdd, Z25, Z17, Z9; VSHUFF32X4 $0xdd, Z29, Z21, Z13; \
	VSHUFF32X4 $0x88, Z26, Z18, Z2; VSHUFF32X4 $0x88, Z30, Z22, Z6; VSHUFF32X4 $0xdd, Z26, Z18, Z10; VSHUFF32X4 $0xdd, Z30, Z22, Z14; \
	VSHUFF32X4 $0x88, Z27, Z19, Z3; VSHUFF32X4 $0x88, Z31, Z23, Z7; VSHUFF32X4 $0xdd, Z27, Z19, Z11; VSHUFF32X4 $0xdd, Z31, Z23, Z15

// STORE adds sums to the next row of c.
#define STORE(sums) \
	VADDPS  (DI), sums, sums; \
	VMOVUPS sums, (DI); \
	ADDQ    R10, DI; \
	DECQ    R15; \
	JEQ     done

// STRIDES sets R9 to the row 8 after that at R8, and R10 to R13 to 1, 3, 5 and 7 times the distance of rows.
#define STRIDES \
	MOVQ int8SwappedCall_scalesRow(R14), R10; \
	LEAQ (R8)(R10*8), R9; \
	LEAQ (R10)(R10*2), R11; \
	LEAQ (R10)(R10*4), R12; \
	LEAQ (R11)(R10*4), R13

// STEP moves to the factors of the next unit.
#define STEP \
	ADDQ $64, DI; \
	ADDQ scalesStep-64(SP), R8; \
	ADDQ scalesStep-64(SP), R9

// CONFIGURE saves the configuration of the tiles of the thread, because C code in the process may configure them once only, and loads
// that at BX. R14 is the call, and SI memory on the stack.
#define CONFIGURE \
	ADDQ $63, SI; \
	ANDQ $~63, SI; \
	MOVQ SI, ring-16(SP); \
	LEAQ 4096(SI), AX; \
	MOVQ AX, end-8(SP); \
	STTILECFG_AX; \
	MOVQ BX, AX; \
	LDTILECFG_AX

// LOAD loads the operands of the call R14, of which R14 becomes the address to prefetch.
#define LOAD \
	MOVQ int8SwappedCall_aheadStep(R14), AX; \
	MOVQ AX, aheadStep-24(SP); \
	MOVQ int8SwappedCall_units(R14), AX; \
	MOVQ AX, units-72(SP); \
	MOVQ AX, rows-40(SP); \
	MOVQ AX, left-80(SP); \
	MOVQ int8SwappedCall_blocks(R14), BX; \
	MOVQ BX, blocks-88(SP); \
	IMULQ BX, AX; \
	MOVQ AX, sums-32(SP); \
	MOVQ $4, lead-96(SP); \
	MOVQ int8SwappedCall_step(R14), AX; \
	MOVQ AX, step-48(SP); \
	MOVQ int8SwappedCall_unit(R14), AX; \
	SHLQ $4, AX; \
	MOVQ AX, xStep-56(SP); \
	MOVQ int8SwappedCall_scalesStep(R14), AX; \
	MOVQ AX, scalesStep-64(SP); \
	MOVQ int8SwappedCall_levels(R14), AX; \
	MOVQ int8SwappedCall_row(R14), CX; \
	MOVQ int8SwappedCall_x(R14), DX; \
	MOVQ int8SwappedCall_xs(R14), DI; \
	MOVQ int8SwappedCall_scales(R14), R8; \
	STRIDES; \
	MOVQ SI, R15; \
	MOVQ int8SwappedCall_src(R14), BX; \
	MOVQ int8SwappedCall_ahead(R14), R14; \
	ADDQ BX, R14; \
	MOVQ $64, BX; \
	ZEROS

// BLOCK moves AX and DX to the first unit of the next sixteen rows of blocks.
#define BLOCK \
	MOVQ  units-72(SP), DX; \
	MOVQ  DX, left-80(SP); \
	IMULQ step-48(SP), DX; \
	SUBQ  DX, AX; \
	MOVQ  CX, DX; \
	SHLQ  $4, DX; \
	ADDQ  DX, AX; \
	MOVQ  t+0(FP), DX; \
	MOVQ  int8SwappedCall_x(DX), DX

// BIASED loads the operands for biases, or jumps to turn if there are none.
#define BIASED \
	MOVQ R14, prefetch-104(SP); \
	MOVQ R15, ready-112(SP); \
	MOVQ t+0(FP), R14; \
	MOVQ int8SwappedCall_biases(R14), BX; \
	TESTQ BX, BX; \
	JEQ  turn; \
	MOVQ R8, scales-120(SP); \
	MOVQ units-72(SP), R15; \
	MOVQ scalesStep-64(SP), DI; \
	IMULQ R15, DI; \
	SUBQ DI, R8; \
	SUBQ int8SwappedCall_scales(R14), R8; \
	ADDQ BX, R8; \
	STRIDES; \
	MOVQ int8SwappedCall_xsums(R14), DI

// RESULT loads the address of the sums in c. The next sixteen rows of blocks have the next sixteen columns.
#define RESULT \
	MOVQ int8SwappedCall_blocks(R14), DI; \
	SUBQ blocks-88(SP), DI; \
	SHLQ $6, DI; \
	ADDQ int8SwappedCall_c(R14), DI; \
	MOVQ int8SwappedCall_cRow(R14), R10; \
	MOVQ int8SwappedCall_rows(R14), R15

// AGAIN moves to the factors of the next sixteen rows of blocks. R8 is after the last unit of the first row.
#define AGAIN \
	MOVQ  units-72(SP), DI; \
	MOVQ  DI, rows-40(SP); \
	IMULQ scalesStep-64(SP), DI; \
	SUBQ  DI, R8; \
	ADDQ  int8SwappedCall_scalesBlock(R14), R8; \
	STRIDES; \
	MOVQ  int8SwappedCall_xs(R14), DI; \
	MOVQ  prefetch-104(SP), R14; \
	MOVQ  ready-112(SP), R15; \
	MOVQ  $64, BX; \
	ZEROS

// func int8SwappedAMX(t *int8SwappedCall)
TEXT ·int8SwappedAMX(SB), 0, $4416-8
	MOVQ t+0(FP), R14
	LEAQ buffer-4416(SP), SI
	LEAQ tiles32<>(SB), BX
	CMPQ int8SwappedCall_unit(R14), $32
	JEQ  configure
	LEAQ tiles16<>(SB), BX

configure:
	CONFIGURE
	LOAD

	// The tiles of later units are multiplied while the sums of a unit are scaled.
next:
	CMPQ sums-32(SP), $0
	JEQ  scale
	SUMS
	DECQ sums-32(SP)
	DECQ left-80(SP)
	JNE  same
	BLOCK

same:
	DECQ lead-96(SP)
	JNE  next
	MOVQ $1, lead-96(SP)

scale:
	PREFETCH9
	ADDQ aheadStep-24(SP), R14
	ROWS(ROW1)
	NEXT(R15)
	STEP
	DECQ rows-40(SP)
	JNE  next
	BIASED

bias:
	BIASES(BIAS1)
	STEP
	DECQ R15
	JNE  bias
	MOVQ scales-120(SP), R8

turn:
	TURN
	RESULT
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
	DECQ blocks-88(SP)
	JEQ  end
	AGAIN
	JMP  next

end:
	MOVQ end-8(SP), AX
	LDTILECFG_AX // restores the configuration of the thread
	VZEROUPPER
	RET

// func int8SwappedFewAMX(t *int8SwappedCall)
TEXT ·int8SwappedFewAMX(SB), 0, $4416-8
	MOVQ t+0(FP), R14
	LEAQ buffer-4416(SP), SI
	LEAQ tiles64<>(SB), BX
	CONFIGURE
	LOAD

	// The tiles of later units are multiplied while the sums of a unit are scaled.
next:
	CMPQ sums-32(SP), $0
	JEQ  scale
	SUMS
	DECQ sums-32(SP)
	DECQ left-80(SP)
	JNE  same
	BLOCK

same:
	DECQ lead-96(SP)
	JNE  next
	MOVQ $1, lead-96(SP)

scale:
	PREFETCH9
	PREFETCH5
	ADDQ aheadStep-24(SP), R14
	ROWS(ROW4)
	NEXT(R15)
	STEP
	DECQ rows-40(SP)
	JNE  next
	BIASED

bias:
	BIASES(BIAS4)
	STEP
	DECQ R15
	JNE  bias
	MOVQ scales-120(SP), R8

turn:
	TURN
	RESULT
	VADDPS Z2, Z0, Z0
	VADDPS Z3, Z1, Z1
	VADDPS Z6, Z4, Z4
	VADDPS Z7, Z5, Z5
	VADDPS Z10, Z8, Z8
	VADDPS Z11, Z9, Z9
	VADDPS Z14, Z12, Z12
	VADDPS Z15, Z13, Z13
	CMPQ int8SwappedCall_group(R14), $32
	JNE  sixteens
	STORE(Z0)
	STORE(Z1)
	STORE(Z4)
	STORE(Z5)
	STORE(Z8)
	STORE(Z9)
	STORE(Z12)
	STORE(Z13)

sixteens:
	VADDPS Z1, Z0, Z0
	VADDPS Z5, Z4, Z4
	VADDPS Z9, Z8, Z8
	VADDPS Z13, Z12, Z12
	STORE(Z0)
	STORE(Z4)
	STORE(Z8)
	STORE(Z12)

done:
	DECQ blocks-88(SP)
	JEQ  end
	AGAIN
	JMP  next

end:
	MOVQ end-8(SP), AX
	LDTILECFG_AX // restores the configuration of the thread
	VZEROUPPER
	RET

// LANE loads 16 words of a lane; those that are not in its mask become zero.
#define LANE(i, words) \
	MOVQ      (8*i)(R8), AX; \
	KMOVW     (128+8*i)(R8), K1; \
	VMOVUPS.Z (SI)(AX*1), K1, words

// func int8Interleave(dst, src *int32, lanes *int8Lanes, words int)
TEXT ·int8Interleave(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ lanes+16(FP), R8
	MOVQ words+24(FP), CX

loop:
	LANE(0, Z0)
	LANE(1, Z1)
	LANE(2, Z2)
	LANE(3, Z3)
	LANE(4, Z4)
	LANE(5, Z5)
	LANE(6, Z6)
	LANE(7, Z7)
	LANE(8, Z8)
	LANE(9, Z9)
	LANE(10, Z10)
	LANE(11, Z11)
	LANE(12, Z12)
	LANE(13, Z13)
	LANE(14, Z14)
	LANE(15, Z15)
	TURN
	VMOVUPS Z0, 0(DI)
	VMOVUPS Z1, 64(DI)
	VMOVUPS Z2, 128(DI)
	VMOVUPS Z3, 192(DI)
	VMOVUPS Z4, 256(DI)
	VMOVUPS Z5, 320(DI)
	VMOVUPS Z6, 384(DI)
	VMOVUPS Z7, 448(DI)
	CMPQ CX, $8
	JLE  end
	VMOVUPS Z8, 512(DI)
	VMOVUPS Z9, 576(DI)
	VMOVUPS Z10, 640(DI)
	VMOVUPS Z11, 704(DI)
	VMOVUPS Z12, 768(DI)
	VMOVUPS Z13, 832(DI)
	VMOVUPS Z14, 896(DI)
	VMOVUPS Z15, 960(DI)
	ADDQ $64, SI
	ADDQ $1024, DI
	SUBQ $16, CX
	JG   loop

end:
	VZEROUPPER
	RET
