package simd

import "unsafe"

// gemmGeneric are the kernels in plain Go: tests compare the assembly with them, and machines
// without assembly run them. The tile fits into the registers that compilers use.
var gemmGeneric = gemmKernels{
	rows: 3, cols: 4,
	tile:      []tileFunc{gemmTile1Generic, gemmTile2Generic, gemmTile3Generic},
	transpose: gemmTransposeGeneric,
	lanes:     4,
	rowsFew:   []rowsFunc{gemmRowsGeneric},
	dots:      []dotsFunc{gemmDotsGeneric},
	convRow:   convRowGeneric,
}

func gemmTile1Generic(a, b, c, bias, _ *float32, as, bs, bp, cs, _, k, n int, add bool) {
	tileGeneric(1, a, b, c, bias, as, bs, bp, cs, k, n, add)
}

func gemmTile2Generic(a, b, c, bias, _ *float32, as, bs, bp, cs, _, k, n int, add bool) {
	tileGeneric(2, a, b, c, bias, as, bs, bp, cs, k, n, add)
}

func gemmTile3Generic(a, b, c, bias, _ *float32, as, bs, bp, cs, _, k, n int, add bool) {
	tileGeneric(3, a, b, c, bias, as, bs, bp, cs, k, n, add)
}

func tileGeneric(rows int, a, b, c, bias *float32, as, bs, bp, cs, k, n int, add bool) {
	const cols = 4
	as, bs, bp, cs = as/4, bs/4, bp/4, cs/4
	for j := 0; j < n; j += cols {
		var t [3][cols]float32
		w := min(cols, n-j)
		if bias != nil {
			for i := range rows {
				copy(t[i][:], unsafe.Slice(step(bias, j), w))
			}
		}
		if rows == 3 && w == cols && k > 0 {
			tile3x4Generic(&t, a, step(b, j/cols*bp), as, bs, k)
		} else {
			for i := range rows {
				for p := range k {
					x := *step(a, i*as+p)
					for q, y := range unsafe.Slice(step(b, j/cols*bp+p*bs), w) {
						t[i][q] += x * y
					}
				}
			}
		}
		for i := range rows {
			row := unsafe.Slice(step(c, i*cs+j), w)
			if !add {
				copy(row, t[i][:])
				continue
			}
			for q := range row {
				row[q] += t[i][q]
			}
		}
	}
}

// tile3x4Generic adds the product of three rows and four columns to t.
func tile3x4Generic(t *[3][4]float32, a, b *float32, as, bs, k int) {
	t00, t01, t02, t03 := t[0][0], t[0][1], t[0][2], t[0][3]
	t10, t11, t12, t13 := t[1][0], t[1][1], t[1][2], t[1][3]
	t20, t21, t22, t23 := t[2][0], t[2][1], t[2][2], t[2][3]
	for p := range k {
		y := (*[4]float32)(unsafe.Pointer(step(b, p*bs)))
		x0, x1, x2 := *step(a, p), *step(a, as+p), *step(a, 2*as+p)
		y0, y1, y2, y3 := y[0], y[1], y[2], y[3]
		t00 += x0 * y0
		t01 += x0 * y1
		t02 += x0 * y2
		t03 += x0 * y3
		t10 += x1 * y0
		t11 += x1 * y1
		t12 += x1 * y2
		t13 += x1 * y3
		t20 += x2 * y0
		t21 += x2 * y1
		t22 += x2 * y2
		t23 += x2 * y3
	}
	t[0] = [4]float32{t00, t01, t02, t03}
	t[1] = [4]float32{t10, t11, t12, t13}
	t[2] = [4]float32{t20, t21, t22, t23}
}

func gemmTransposeGeneric(dst, src *float32, ds, ss, rows, cols int) {
	for i := range rows {
		for j := range cols {
			*step(dst, j*ds/4+i) = *step(src, i*ss/4+j)
		}
	}
}

func gemmRowsGeneric(a, b, c *float32, _, bs, _, k, n int) {
	row := unsafe.Slice(c, n)
	for p := range k {
		x := *step(a, p)
		for j, y := range unsafe.Slice(step(b, p*bs/4), n) {
			row[j] += x * y
		}
	}
}

func gemmDotsGeneric(s, p, c *float32, ss, cr, _, k, rows int) {
	y := unsafe.Slice(p, k)
	for r := range rows {
		// Four sums, so that an addition does not wait for the previous one.
		var t [4]float32
		x := unsafe.Slice(step(s, r*ss/4), k)[:len(y)]
		for len(x) >= 4 && len(y) >= 4 {
			t[0] += x[0] * y[0]
			t[1] += x[1] * y[1]
			t[2] += x[2] * y[2]
			t[3] += x[3] * y[3]
			x, y = x[4:], y[4:]
		}
		for i, v := range x {
			t[0] += v * y[i]
		}
		y = unsafe.Slice(p, k)
		*step(c, r*cr/4) += t[0] + t[1] + (t[2] + t[3])
	}
}

func convRowGeneric(y, x *float32, offsets *int, weights *float32, start float32, taps, n int) {
	out := unsafe.Slice(y, n)
	for i := range out {
		out[i] = start
	}
	for t, w := range unsafe.Slice(weights, taps) {
		from := unsafe.Slice(step(x, unsafe.Slice(offsets, taps)[t]/4), n)
		for i, v := range from {
			out[i] += w * v
		}
	}
}
