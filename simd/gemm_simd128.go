//go:build (js || wazero) && !noasm

package simd

import "unsafe"

// panelSIMD128 is the number of columns of a panel of B.
const panelSIMD128 = 8

func gemmKernelsOf(l Level) *gemmKernels {
	if hasArrays(l) {
		return &gemmKernels{
			rows: 4, cols: panelSIMD128, wholePanels: true,
			tile:  []tileFunc{tileAtPlace(1, placeGemmTile1), tileAtPlace(2, placeGemmTile2), tileAtPlace(3, placeGemmTile3), tileAtPlace(4, placeGemmTile4)},
			lanes: 4, transpose: transposeSIMD128, copyPanels: copyPanelsSIMD128,
			rowsFew: []rowsFunc{rowsFewSIMD128},
			dots:    []dotsFunc{dotsSIMD128},
			convRow: convRowSIMD128, convGather: convGatherSIMD128,
		}
	}
	return &gemmGeneric
}

func mostRowsGoes() int { return 1 }

func tileAtPlace(rows int, place uint32) tileFunc {
	return func(a, b, c, bias, _ *float32, as, bs, bp, cs, _, k, n int, add bool) {
		f := arrays.Begin(place)
		as = f.ReadRows(0, unsafe.Pointer(a), rows, 4*k, as)
		// B has either rows through all panels, or one panel after the other.
		switch panels := ceilDiv(n, panelSIMD128); bp {
		case 4 * panelSIMD128:
			bs = f.ReadRows(1, unsafe.Pointer(b), k, panels*bp, bs)
		default:
			bp = f.ReadRows(1, unsafe.Pointer(b), panels, k*bs, bp)
		}
		if add {
			cs = f.UpdateRows(2, unsafe.Pointer(c), rows, 4*n, cs)
		} else {
			cs = f.WriteRows(2, unsafe.Pointer(c), rows, 4*n, cs)
		}
		f.Read(3, unsafe.Pointer(bias), 4*n)
		f.Ints = [len(f.Ints)]int{as, bs, bp, cs, k, n, int(truth(add))}
		f.Run()
	}
}

func transposeSIMD128(dst, src *float32, ds, ss, rows, cols int) {
	c := arrays.Begin(placeGemmTranspose)
	c.Ints[0] = c.WriteRows(0, unsafe.Pointer(dst), cols, 4*rows, ds)
	c.Ints[1] = c.ReadRows(1, unsafe.Pointer(src), rows, 4*cols, ss)
	c.Ints[2], c.Ints[3] = rows, cols
	c.Run()
}

func copyPanelsSIMD128(dst, src *float32, ss, dp, k, panels int) {
	c := arrays.Begin(placeGemmCopypanels)
	c.Ints[1] = c.WriteRows(0, unsafe.Pointer(dst), panels, 4*panelSIMD128*k, dp)
	c.Ints[0] = c.ReadRows(1, unsafe.Pointer(src), k, 4*panelSIMD128*panels, ss)
	c.Ints[2], c.Ints[3] = k, panels
	c.Run()
}

func rowsFewSIMD128(a, b, c *float32, _, bs, _, k, n int) {
	f := arrays.Begin(placeGemmRows1)
	f.Read(0, unsafe.Pointer(a), 4*k)
	f.Ints[0] = f.ReadRows(1, unsafe.Pointer(b), k, 4*n, bs)
	f.UpdateRows(2, unsafe.Pointer(c), 1, 4*n, 4*n)
	f.Ints[1], f.Ints[2] = k, n
	f.Run()
}

func dotsSIMD128(s, p, c *float32, ss, cr, _, k, rows int) {
	f := arrays.Begin(placeGemmDots1)
	f.Ints[0] = f.ReadRows(0, unsafe.Pointer(s), rows, 4*k, ss)
	f.Read(1, unsafe.Pointer(p), 4*k)
	f.Ints[1] = f.UpdateRows(2, unsafe.Pointer(c), rows, 4, cr)
	f.Ints[2], f.Ints[3] = k, rows
	f.Run()
}

func convRowSIMD128(y, x *float32, offsets *int, weights *float32, start float32, taps, n int) {
	c := arrays.Begin(placeConvRow)
	c.Write(0, unsafe.Pointer(y), 4*n)
	c.Gather(1, unsafe.Pointer(x), offsets, taps, 4*n)
	c.Read(3, unsafe.Pointer(weights), 4*taps)
	c.Ints[0], c.Ints[1], c.Floats[0] = taps, n, start
	c.Run()
}

func convGatherSIMD128(dst, src *float32, offsets *int, k, n int) {
	c := arrays.Begin(placeConvGather)
	c.UpdateRows(0, unsafe.Pointer(dst), 1, 4*panelSIMD128*k, 4*panelSIMD128*k)
	c.Gather(1, unsafe.Pointer(src), offsets, k, 4*n)
	c.Ints[0], c.Ints[1] = k, n
	c.Run()
}
