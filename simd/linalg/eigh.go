package linalg

import (
	"cmp"
	"math"
	"slices"

	"github.com/rayo-go/rayo/simd"
)

// Eigh writes the eigenvalues of the symmetric matrix a to w in ascending order, and orthonormal eigenvectors
// to the columns of v. It reads the lower triangle of a and does not change a. It reports whether a is finite;
// if not, the contents of w and v are undefined.
func Eigh(p *simd.Pool, a Matrix, w []float32, v Matrix) bool {
	a.check("A")
	v.check("V")
	order := a.Rows
	if order == 0 {
		return true
	}
	s := take(2 * order * order)
	defer s.give()
	work := Matrix{s.data[:order*order], order, order, order}
	scale, ok := scaledCopy(work, a, true)
	if !ok {
		return false
	}
	vt := Matrix{s.data[order*order:], order, order, order}
	d := eighRows(p, work, vt)
	for i, x := range d {
		w[i] = float32(x * scale)
	}
	transpose(v, vt)
	return true
}

// eighRows returns the eigenvalues of the symmetric matrix a, which it overwrites, and writes the
// eigenvectors to the rows of vt.
func eighRows(p *simd.Pool, a, vt Matrix) []float64 {
	t := reduceSymmetric(p, a)
	clear(vt.Data)
	d := newDivider(p, vt)
	d.solve(t.d, t.e, 0)
	t.multiplyQ(p, vt)
	return t.d
}

// scaledCopy copies a to dst, which is contiguous, divided by a power of two, so that the
// greatest magnitude is about 1. It returns this power. With lower it reads only the lower
// triangle and copies it to both triangles. ok reports whether all elements read are finite.
func scaledCopy(dst, a Matrix, lower bool) (scale float64, ok bool) {
	greatest := float32(0)
	for i := range a.Rows {
		x := a.row(i)
		if lower {
			x = x[:i+1]
		}
		for _, v := range x {
			if v-v != 0 {
				return 0, false
			}
			greatest = max(greatest, v, -v)
		}
	}
	scale = 1
	if greatest > 0 {
		_, e := math.Frexp(float64(greatest))
		scale = math.Ldexp(1, e)
	}
	for i := range a.Rows {
		x, y := a.row(i), dst.row(i)
		if lower {
			x = x[:i+1]
		}
		if inverse := 1 / scale; inverse >= 0x1p-126 && inverse <= 0x1p126 {
			simd.Scale(y[:len(x)], x, float32(inverse))
		} else {
			for j, v := range x {
				y[j] = float32(float64(v) * inverse)
			}
		}
	}
	if lower {
		for i := range a.Rows {
			for j, v := range dst.row(i)[:i] {
				dst.Data[j*dst.Stride+i] = v
			}
		}
	}
	return scale, true
}

// sortRows sorts values in ascending order, and the rows of vt with them. memory has room
// for vt.
func sortRows(values []float64, vt Matrix, memory []float32) {
	place := make([]int, len(values))
	for i := range place {
		place[i] = i
	}
	slices.SortFunc(place, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	old := slices.Clone(values)
	m := Matrix{memory, vt.Rows, vt.Cols, vt.Cols}
	for i, at := range place {
		values[i] = old[at]
		copy(m.row(i), vt.row(at))
	}
	for i := range vt.Rows {
		copy(vt.row(i), m.row(i))
	}
}
