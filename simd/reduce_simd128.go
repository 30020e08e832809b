//go:build (js || wazero) && !noasm

package simd

import (
	"math"
	"unsafe"
)

func reduceKernelsOf(l Level) *reduceKernels {
	if hasArrays(l) {
		return &reduceKernels{
			block: [numKinds]func(x, y *float32, n int) float32{
				kindSum:        blockAtPlace(placeReduceSum),
				kindSumAbs:     blockAtPlace(placeReduceSumabs),
				kindSumSquares: blockAtPlace(placeReduceSumsquares),
				kindDot:        blockAtPlace(placeReduceDot),
				kindMax:        blockAtPlace(placeReduceMax),
				kindMin:        blockAtPlace(placeReduceMin),
				kindMaxAbs:     maxAbsSIMD128,
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
	}
	return reduceGeneric()
}

func blockAtPlace(place uint32) func(x, y *float32, n int) float32 {
	return func(x, y *float32, n int) float32 {
		c := arrays.Begin(place)
		c.Read(0, unsafe.Pointer(x), 4*n)
		c.Read(1, unsafe.Pointer(y), 4*n)
		c.Ints[0] = n
		return c.Run()[0]
	}
}

func rowsAtPlace(place uint32) func(dst, x, y *float32, rows, cols int) {
	return func(dst, x, y *float32, rows, cols int) {
		c := arrays.Begin(place)
		c.Write(0, unsafe.Pointer(dst), 4*rows)
		c.Read(1, unsafe.Pointer(x), 4*rows*cols)
		if place == placeReduceDotEach {
			c.Read(2, unsafe.Pointer(y), 4*cols)
		} else {
			c.Read(2, unsafe.Pointer(y), 4*rows*cols)
		}
		c.Ints[0], c.Ints[1] = rows, cols
		c.Run()
	}
}

func deviationsSIMD128(x *float32, n int, m float32) (s1, s2 float32) {
	c := arrays.Begin(placeReduceDeviations)
	c.Read(0, unsafe.Pointer(x), 4*n)
	c.Ints[0], c.Floats[0] = n, m
	s := c.Run()
	return s[0], s[1]
}

func deviationsRowsSIMD128(s1, s2, x, m *float32, rows, cols int) {
	c := arrays.Begin(placeReduceDeviationsRows)
	c.Write(0, unsafe.Pointer(s1), 4*rows)
	c.Write(1, unsafe.Pointer(s2), 4*rows)
	c.Read(2, unsafe.Pointer(x), 4*rows*cols)
	c.Read(3, unsafe.Pointer(m), 4*rows)
	c.Ints[0], c.Ints[1] = rows, cols
	c.Run()
}

func indexSIMD128(x *float32, n int, v float32) int {
	c := arrays.Begin(placeReduceIndex)
	c.Read(0, unsafe.Pointer(x), 4*n)
	c.Ints[0], c.Floats[0] = n, v
	return int(math.Float32bits(c.Run()[0]))
}

func indexRowsSIMD128(dst *int32, x, v *float32, rows, cols int) {
	c := arrays.Begin(placeReduceIndexRows)
	c.Write(0, unsafe.Pointer(dst), 4*rows)
	c.Read(1, unsafe.Pointer(x), 4*rows*cols)
	c.Read(2, unsafe.Pointer(v), 4*rows)
	c.Ints[0], c.Ints[1] = rows, cols
	c.Run()
}

// maxAbsOf returns a kernel of reduceKernelsOf. Pages that only compute elementwise do not link the others.
func maxAbsOf(l Level) func(x, y *float32, n int) float32 {
	if l == SIMD128 {
		return maxAbsSIMD128
	}
	return reduceMaxAbsGeneric
}

func maxAbsSIMD128(x, _ *float32, n int) float32 {
	c := elements.Begin(elementReduceMaxabs)
	c.Read(0, unsafe.Pointer(x), 4*n)
	c.Ints[0] = n
	return c.Run()[0]
}
