//go:build (js || wazero) && !noasm

package simd

import "unsafe"

func rowKernelsOf(l Level) *rowKernels {
	if hasArrays(l) {
		return &rowKernels{
			expStore: expStoreSIMD128, expStoreRows: expStoreRowsSIMD128,
			expSum: expSumSIMD128, expSumRows: expSumRowsSIMD128,
			softmaxRows: softmaxRowsSIMD128,
			affine:      affineSIMD128, affineRows: affineRowsSIMD128,
			ropeHalves: ropeHalvesGeneric, ropePairs: ropePairsGeneric,
			cumsum: rowsCumsumGeneric,
		}
	}
	return &rowsGeneric
}

func expStoreSIMD128(dst, x *float32, n int, m float32) float32 {
	return exponentials(placeExpStore, dst, x, n, m)
}

func expSumSIMD128(x *float32, n int, m float32) float32 {
	return exponentials(placeExpSum, nil, x, n, m)
}

func exponentials(place uint32, dst, x *float32, n int, m float32) float32 {
	c := arrays.Begin(place)
	c.Write(0, unsafe.Pointer(dst), 4*n)
	c.Read(1, unsafe.Pointer(x), 4*n)
	c.Ints[0], c.Floats[0] = n, m
	return c.Run()[0]
}

func expStoreRowsSIMD128(dst, x, m, sum *float32, rows, cols int) {
	exponentialRows(placeExpStoreRows, dst, x, m, sum, rows, cols)
}

func expSumRowsSIMD128(x, m, sum *float32, rows, cols int) {
	exponentialRows(placeExpSumRows, nil, x, m, sum, rows, cols)
}

func exponentialRows(place uint32, dst, x, m, sum *float32, rows, cols int) {
	c := arrays.Begin(place)
	c.Write(0, unsafe.Pointer(dst), 4*rows*cols)
	c.Read(1, unsafe.Pointer(x), 4*rows*cols)
	c.Read(2, unsafe.Pointer(m), 4*rows)
	c.Write(3, unsafe.Pointer(sum), 4*rows)
	c.Ints[0], c.Ints[1] = rows, cols
	c.Run()
}

func softmaxRowsSIMD128(dst, x *float32, rows, cols int) {
	c := arrays.Begin(placeSoftmaxRows)
	c.Write(0, unsafe.Pointer(dst), 4*rows*cols)
	c.Read(1, unsafe.Pointer(x), 4*rows*cols)
	c.Ints[0], c.Ints[1] = rows, cols
	c.Run()
}

func affineSIMD128(dst, x, gamma, beta *float32, n int, m, s, b float32) {
	c := arrays.Begin(placeAffine)
	c.Write(0, unsafe.Pointer(dst), 4*n)
	c.Read(1, unsafe.Pointer(x), 4*n)
	c.Read(2, unsafe.Pointer(gamma), 4*n)
	c.Read(3, unsafe.Pointer(beta), 4*n)
	c.Ints[0] = n
	c.Floats[0], c.Floats[1], c.Floats[2] = m, s, b
	c.Run()
}

func affineRowsSIMD128(dst, x, gamma, beta, msb *float32, rows, cols int) {
	c := arrays.Begin(placeAffineRows)
	c.Write(0, unsafe.Pointer(dst), 4*rows*cols)
	c.Read(1, unsafe.Pointer(x), 4*rows*cols)
	c.Read(2, unsafe.Pointer(gamma), 4*cols)
	c.Read(3, unsafe.Pointer(beta), 4*cols)
	c.Read(4, unsafe.Pointer(msb), 12*rows)
	c.Ints[0], c.Ints[1] = rows, cols
	c.Run()
}
