//go:build js && !noasm

package simd

import "unsafe"

var gemmSIMD128 = gemmKernels{
	rows: 4, cols: 8, wholePanels: true,
	tile:  []tileFunc{tileAtPlace(placeGemmTile1), tileAtPlace(placeGemmTile2), tileAtPlace(placeGemmTile3), tileAtPlace(placeGemmTile4)},
	lanes: 4, transpose: transposeSIMD128, copyPanels: copyPanelsSIMD128,
	rowsFew: []rowsFunc{rowsFewSIMD128},
	dots:    []dotsFunc{dotsSIMD128},
	convRow: convRowSIMD128, convGather: convGatherSIMD128,
}

func gemmKernelsOf(l Level) *gemmKernels {
	if l == SIMD128 {
		return &gemmSIMD128
	}
	return &gemmGeneric
}

func mostRowsGoes() int { return 1 }

func tileAtPlace(place uint32) tileFunc {
	return func(a, b, c, bias, _ *float32, as, bs, bp, cs, _, k, n int, add bool) {
		f := begin(place)
		pointersTo(f, a, b, c, bias)
		f.Ints = [len(f.Ints)]int{as, bs, bp, cs, k, n, int(truth(add))}
		host.Run()
	}
}

func transposeSIMD128(dst, src *float32, ds, ss, rows, cols int) {
	c := begin(placeGemmTranspose)
	pointersTo(c, dst, src)
	c.Ints[0], c.Ints[1], c.Ints[2], c.Ints[3] = ds, ss, rows, cols
	host.Run()
}

func copyPanelsSIMD128(dst, src *float32, ss, dp, k, panels int) {
	c := begin(placeGemmCopypanels)
	pointersTo(c, dst, src)
	c.Ints[0], c.Ints[1], c.Ints[2], c.Ints[3] = ss, dp, k, panels
	host.Run()
}

func rowsFewSIMD128(a, b, c *float32, _, bs, _, k, n int) {
	f := begin(placeGemmRows1)
	pointersTo(f, a, b, c)
	f.Ints[0], f.Ints[1], f.Ints[2] = bs, k, n
	host.Run()
}

func dotsSIMD128(s, p, c *float32, ss, cr, _, k, rows int) {
	f := begin(placeGemmDots1)
	pointersTo(f, s, p, c)
	f.Ints[0], f.Ints[1], f.Ints[2], f.Ints[3] = ss, cr, k, rows
	host.Run()
}

func convRowSIMD128(y, x *float32, offsets *int, weights *float32, start float32, taps, n int) {
	c := begin(placeConvRow)
	c.Pointers[0], c.Pointers[1] = unsafe.Pointer(y), unsafe.Pointer(x)
	c.Pointers[2], c.Pointers[3] = unsafe.Pointer(offsets), unsafe.Pointer(weights)
	c.Ints[0], c.Ints[1], c.Floats[0] = taps, n, start
	host.Run()
}

func convGatherSIMD128(dst, src *float32, offsets *int, k, n int) {
	c := begin(placeConvGather)
	c.Pointers[0], c.Pointers[1], c.Pointers[2] = unsafe.Pointer(dst), unsafe.Pointer(src), unsafe.Pointer(offsets)
	c.Ints[0], c.Ints[1] = k, n
	host.Run()
}
