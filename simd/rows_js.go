//go:build js && !noasm

package simd

import "unsafe"

var rowsSIMD128 = rowKernels{
	expStore: expStoreSIMD128, expStoreRows: expStoreRowsSIMD128,
	expSum: expSumSIMD128, expSumRows: expSumRowsSIMD128,
	affine: affineSIMD128, affineRows: affineRowsSIMD128,
	ropeHalves: ropeHalvesGeneric, ropePairs: ropePairsGeneric,
	cumsum: rowsCumsumGeneric,
}

func rowKernelsOf(l Level) *rowKernels {
	if l == SIMD128 {
		return &rowsSIMD128
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
	c := begin(place)
	c.Pointers[0], c.Pointers[1] = unsafe.Pointer(dst), unsafe.Pointer(x)
	c.Ints[0], c.Floats[0] = n, m
	host.Run()
	return c.Results[0]
}

func expStoreRowsSIMD128(dst, x, m, sum *float32, rows, cols int) {
	exponentialRows(placeExpStoreRows, dst, x, m, sum, rows, cols)
}

func expSumRowsSIMD128(x, m, sum *float32, rows, cols int) {
	exponentialRows(placeExpSumRows, nil, x, m, sum, rows, cols)
}

func exponentialRows(place uint32, dst, x, m, sum *float32, rows, cols int) {
	c := begin(place)
	pointersTo(c, dst, x, m, sum)
	c.Ints[0], c.Ints[1] = rows, cols
	host.Run()
}

func affineSIMD128(dst, x, gamma, beta *float32, n int, m, s, b float32) {
	c := begin(placeAffine)
	pointersTo(c, dst, x, gamma, beta)
	c.Ints[0] = n
	c.Floats[0], c.Floats[1], c.Floats[2] = m, s, b
	host.Run()
}

func affineRowsSIMD128(dst, x, gamma, beta, msb *float32, rows, cols int) {
	c := begin(placeAffineRows)
	pointersTo(c, dst, x, gamma, beta, msb)
	c.Ints[0], c.Ints[1] = rows, cols
	host.Run()
}
