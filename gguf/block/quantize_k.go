package block

import "math"

// The formats of 256 elements are made in two steps. First each group gets
// the scale, or scale and minimum, with the least sum of squared errors that a
// search finds. Then these become small integers, of which the group takes
// those that serve it best, and elements are rounded to what is left.
//
// Sums are float64; products in them are rounded one by one, as in
// dequantize.go.

// affine returns s > 0 and m >= 0 with which q·s - m for whole q from 0 to
// levels comes near x, and 0, m where all x are the same number below 0.
func affine(x *[32]float32, levels float64) (s, m float64) {
	lo, hi := 0.0, float64(x[0])
	for _, v := range x {
		lo, hi = min(lo, float64(v)), max(hi, float64(v))
	}
	if hi <= lo {
		return 0, -lo
	}
	least := math.Inf(1)
	// The range of the elements is tried with somewhat fewer and more levels
	// than there are: elements at its ends then give way to those between.
	for step := -10; step <= 10; step++ {
		a, b, e := regression(x, (hi-lo)/(levels+float64(step)/10), -lo, levels)
		if a > 0 && e < least {
			least, s, m = e, a, b
		}
	}
	for range 2 {
		if a, b, e := regression(x, s, m, levels); a > 0 && e < least {
			least, s, m = e, a, b
		}
	}
	return s, m
}

// nearest returns the whole number from 0 to levels nearest to v.
func nearest(v, levels float64) float64 {
	switch v += 0.5; {
	case !(v >= 1): // or no number
		return 0
	case v >= levels:
		return levels
	}
	return float64(int32(v))
}

// regression returns the best scale and minimum for the levels that x has
// with s and m, and the sum of the squared errors that they leave, less that
// of the squares of x.
func regression(x *[32]float32, s, m, levels float64) (scale, offset, e float64) {
	var sx, sq, sqq, sqx float64
	r := 1 / s
	for _, v := range x {
		v := float64(v)
		q := nearest(float64((v+m)*r), levels)
		sx += v
		sq += q
		sqq += float64(q * q)
		sqx += float64(q * v)
	}
	n := float64(len(x))
	if d := float64(n*sqq) - float64(sq*sq); d > 0 {
		s = (float64(n*sqx) - float64(sq*sx)) / d
		m = (float64(sq*sqx) - float64(sqq*sx)) / d
	}
	if m < 0 && sqq > 0 {
		s, m = sqx/sqq, 0
	}
	e = float64(s*s*sqq) + float64(n*m*m) - float64(2*s*sqx) + float64(2*m*sx) - float64(2*s*m*sq)
	return s, m, e
}

func affineError(x *[32]float32, s, m, levels float64) float64 {
	e, r := 0.0, 1/s
	for _, v := range x {
		v := float64(v) + m
		d := float64(s*nearest(float64(v*r), levels)) - v
		e += float64(d * d)
	}
	return e
}

// affineBlock finds the scales, minima and levels of a block whose groups
// have a scale and a minimum each.
func affineBlock(x *[superElements]float32, levels float64, g *groups, q *[superElements]uint8) (d, dmin float32) {
	const most = 63 // of a scale or minimum
	var s, m [8]float64
	var top, topMin float64
	for i := range s {
		s[i], m[i] = affine((*[32]float32)(x[32*i:]), levels)
		top, topMin = max(top, s[i]), max(topMin, m[i])
	}
	d, dmin = float32(top/most), float32(topMin/most)
	ds, dm := float64(rounded(d)), float64(rounded(dmin))
	for i := range s {
		y := (*[32]float32)(x[32*i:])
		scale, offset := pair(y, s[i], m[i], ds, dm, levels, most)
		g.scale[i], g.min[i] = uint8(scale), uint8(offset)
		a, b := scale*ds, offset*dm
		r := 1 / a
		for j, v := range y {
			if a > 0 {
				q[32*i+j] = uint8(nearest(float64((float64(v)+b)*r), levels))
			} else {
				q[32*i+j] = 0
			}
		}
	}
	return d, dmin
}

// pair returns the whole numbers near s/ds and m/dm that serve x best.
func pair(x *[32]float32, s, m, ds, dm, levels, most float64) (scale, offset float64) {
	near := func(v, unit float64) (lo, hi float64) {
		if unit == 0 {
			return 0, 0
		}
		f := math.Floor(v / unit)
		return max(0, min(most, f)), max(0, min(most, f+1))
	}
	s0, s1 := near(s, ds)
	m0, m1 := near(m, dm)
	least := math.Inf(1)
	for a := s0; a <= s1; a++ {
		for b := m0; b <= m1; b++ {
			var e float64
			if a*ds > 0 {
				e = affineError(x, a*ds, b*dm, levels)
			} else {
				for _, v := range x {
					t := float64(v) + float64(b*dm)
					e += float64(t * t)
				}
			}
			if e < least {
				least, scale, offset = e, a, b
			}
		}
	}
	return scale, offset
}

func quantizeQ4_K(dst []byte, src []float32) {
	for ; len(src) >= superElements; src, dst = src[superElements:], dst[q4_KBytes:] {
		b := (*[q4_KBytes]byte)(dst)
		var g groups
		var q [superElements]uint8
		d, dmin := affineBlock((*[superElements]float32)(src), 15, &g, &q)
		putHalf(b[:], d)
		putHalf(b[2:], dmin)
		g.pack((*[12]byte)(b[4:]))
		for i := range 4 {
			for j := range 32 {
				b[16+32*i+j] = q[64*i+j] | q[64*i+32+j]<<4
			}
		}
	}
}

func quantizeQ5_K(dst []byte, src []float32) {
	for ; len(src) >= superElements; src, dst = src[superElements:], dst[q5_KBytes:] {
		b := (*[q5_KBytes]byte)(dst)
		var g groups
		var q [superElements]uint8
		d, dmin := affineBlock((*[superElements]float32)(src), 31, &g, &q)
		putHalf(b[:], d)
		putHalf(b[2:], dmin)
		g.pack((*[12]byte)(b[4:]))
		clear(b[16:48])
		for i := range 4 {
			for j := range 32 {
				lo, hi := q[64*i+j], q[64*i+32+j]
				b[48+32*i+j] = lo&15 | hi<<4
				b[16+j] |= lo>>4<<(2*i) | hi>>4<<(2*i+1)
			}
		}
	}
}

// linear returns the s, of either sign, with which q·s for whole q from
// -levels to levels-1 comes near x.
func linear(x *[16]float32, levels float64) float64 {
	top := float64(extreme(x[:]))
	if top == 0 {
		return 0
	}
	best, s := -1.0, 0.0
	for step := -9; step <= 9; step++ {
		a := top / -(levels + float64(step)/10)
		for range 2 {
			var sqx, sqq float64
			r := 1 / a
			for _, v := range x {
				q := signedLevel(float64(v)*r, levels)
				sqx += float64(q * float64(v))
				sqq += float64(q * q)
			}
			if sqq == 0 || sqx == 0 {
				break
			}
			a = sqx / sqq
			// What the levels explain of the squares of x.
			if e := sqx * a; e > best {
				best, s = e, a
			}
		}
	}
	return s
}

// signedLevel returns the whole number from -levels to levels-1 nearest to v.
func signedLevel(v, levels float64) float64 {
	return max(-levels, min(levels-1, math.Floor(v+0.5)))
}

func quantizeQ6_K(dst []byte, src []float32) {
	const levels = 32
	for ; len(src) >= superElements; src, dst = src[superElements:], dst[q6_KBytes:] {
		b := (*[q6_KBytes]byte)(dst)
		var s [16]float64
		top := 0.0
		for i := range s {
			s[i] = linear((*[16]float32)(src[16*i:]), levels)
			if math.Abs(s[i]) > math.Abs(top) {
				top = s[i]
			}
		}
		d := float32(top / -128)
		putHalf(b[208:], d)
		unit := float64(rounded(d))
		var q [superElements]uint8
		for i := range s {
			x := (*[16]float32)(src[16*i:])
			scale := bestScale(x, s[i], unit, levels)
			b[192+i] = byte(int8(scale))
			for j, v := range x {
				q[16*i+j] = levels
				if a := scale * unit; a != 0 {
					q[16*i+j] = uint8(levels + signedLevel(float64(v)/a, levels))
				}
			}
		}
		for n := range 2 {
			y := q[128*n:]
			for j := range 32 {
				b[64*n+j] = y[j]&15 | y[j+64]<<4
				b[64*n+32+j] = y[j+32]&15 | y[j+96]<<4
				b[128+32*n+j] = y[j]>>4 | y[j+32]>>4<<2 | y[j+64]>>4<<4 | y[j+96]>>4<<6
			}
		}
	}
}

// bestScale returns the whole number near s/unit that serves x best.
func bestScale(x *[16]float32, s, unit, levels float64) (scale float64) {
	if unit == 0 {
		return 0
	}
	f := math.Floor(s / unit)
	least := math.Inf(1)
	for a := max(-128, min(127, f)); a <= max(-128, min(127, f+1)); a++ {
		e := 0.0
		for _, v := range x {
			t := float64(v)
			if w := a * unit; w != 0 {
				t -= float64(w * signedLevel(t/w, levels))
			}
			e += float64(t * t)
		}
		if e < least {
			least, scale = e, a
		}
	}
	return scale
}
