//go:build js && !noasm

package simd

import (
	"math"
	"unsafe"
)

var reduceSIMD128 = reduceKernels{
	block: [numKinds]func(x, y *float32, n int) float32{
		kindSum:        blockAtPlace(placeReduceSum),
		kindSumAbs:     blockAtPlace(placeReduceSumabs),
		kindSumSquares: blockAtPlace(placeReduceSumsquares),
		kindDot:        blockAtPlace(placeReduceDot),
		kindMax:        blockAtPlace(placeReduceMax),
		kindMin:        blockAtPlace(placeReduceMin),
		kindMaxAbs:     blockAtPlace(placeReduceMaxabs),
	},
	rows: [numKinds]func(dst, x, y *float32, rows, cols int){
		kindSum:        rowsAtPlace(placeReduceSumRows),
		kindSumAbs:     rowsAtPlace(placeReduceSumabsRows),
		kindSumSquares: rowsAtPlace(placeReduceSumsquaresRows),
		kindDot:        rowsAtPlace(placeReduceDotRows),
		kindMax:        rowsAtPlace(placeReduceMaxRows),
		kindMin:        rowsAtPlace(placeReduceMinRows),
		kindMaxAbs:     rowsAtPlace(placeReduceMaxabsRows),
	},
	dotEach:        rowsAtPlace(placeReduceDotEach),
	deviations:     deviationsSIMD128,
	deviationsRows: deviationsRowsSIMD128,
	index:          indexSIMD128,
	indexRows:      indexRowsSIMD128,
}

func reduceKernelsOf(l Level) *reduceKernels {
	if l == SIMD128 {
		return &reduceSIMD128
	}
	return &reduceGeneric
}

func blockAtPlace(place uint32) func(x, y *float32, n int) float32 {
	return func(x, y *float32, n int) float32 {
		c := begin(place)
		c.Pointers[0], c.Pointers[1] = unsafe.Pointer(x), unsafe.Pointer(y)
		c.Ints[0] = n
		host.Run()
		return c.Results[0]
	}
}

func rowsAtPlace(place uint32) func(dst, x, y *float32, rows, cols int) {
	return func(dst, x, y *float32, rows, cols int) {
		c := begin(place)
		pointersTo(c, dst, x, y)
		c.Ints[0], c.Ints[1] = rows, cols
		host.Run()
	}
}

func deviationsSIMD128(x *float32, n int, m float32) (s1, s2 float32) {
	c := begin(placeReduceDeviations)
	c.Pointers[0] = unsafe.Pointer(x)
	c.Ints[0], c.Floats[0] = n, m
	host.Run()
	return c.Results[0], c.Results[1]
}

func deviationsRowsSIMD128(s1, s2, x, m *float32, rows, cols int) {
	c := begin(placeReduceDeviationsRows)
	pointersTo(c, s1, s2, x, m)
	c.Ints[0], c.Ints[1] = rows, cols
	host.Run()
}

func indexSIMD128(x *float32, n int, v float32) int {
	c := begin(placeReduceIndex)
	c.Pointers[0] = unsafe.Pointer(x)
	c.Ints[0], c.Floats[0] = n, v
	host.Run()
	return int(math.Float32bits(c.Results[0]))
}

func indexRowsSIMD128(dst *int32, x, v *float32, rows, cols int) {
	c := begin(placeReduceIndexRows)
	c.Pointers[0], c.Pointers[1], c.Pointers[2] = unsafe.Pointer(dst), unsafe.Pointer(x), unsafe.Pointer(v)
	c.Ints[0], c.Ints[1] = rows, cols
	host.Run()
}
