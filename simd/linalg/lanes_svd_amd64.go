//go:build amd64 && !noasm

package linalg

import (
	"math"
	"math/bits"
)

// laneSweeps is the number of sweeps after which lanes do not count as convergent.
const laneSweeps = 12

// SVDLanes is [SVD] of count matrices.
//
// As there, the eigenvectors of AᵀA make the columns of A·V almost orthogonal. Rotations make them orthogonal
// up to rounding. The mask has the matrices of lower rank, whose columns become too short.
func SVDLanes(u, s, vt, a []float32, rows, cols, count int) (bad uint8) {
	k, long := min(rows, cols), max(rows, cols)
	memory := takeVectors(2*k*long + spectrumVectors(k))
	defer memory.give()
	at := grid{memory.data[:k*long], long, 1}
	turned := grid{memory.data[k*long : 2*k*long], long, 1}
	if rows >= cols {
		packTransposed(at.data, a, rows, cols, count)
	} else {
		pack(at.data, a, count)
	}
	scale, bad := normalise(at.data)
	f := newSpectrum(memory.data[2*k*long:], k)
	f.a.set(at, at.t(), k, k, long)
	f.solve() // any orthogonal matrix will do
	turned.set(f.vt, at, k, long, k)
	bad |= orthogonal(turned, f.vt, k, long)
	for i := range k {
		row := turned.from(i, 0).t()
		bad |= row.lengths(&f.d[i], long)
		row.divide(&f.d[i], long)
	}
	if bad |= infinite(turned.data) | infinite(f.vt.data); bad&used(count) == used(count) {
		return used(count)
	}
	bad &= used(count)
	decomposed := &singular{turned: turned, vt: f.vt, values: f.d, k: k, long: long}
	decomposed.write(u, s, vt, rows >= cols, count, bad, scale)
	return bad
}

// orthogonal makes the k rows of x, of n vectors, orthogonal by rotations, with which it multiplies the rows of v. The mask has
// the lanes where they are not after all sweeps.
func orthogonal(x, v grid, k, n int) (bad uint8) {
	var tolerance vec
	for l := range tolerance {
		tolerance[l] = 0x1p-23 * float32(max(2, math.Sqrt(float64(n))))
	}
	for range laneSweeps {
		bad = 0
		for i := range k {
			for j := i + 1; j < k; j++ {
				bad |= uint8(lanesJacobiAVX2(&x.at(i, 0)[0], &x.at(j, 0)[0], &v.at(i, 0)[0], &v.at(j, 0)[0], &tolerance[0], n, k))
			}
		}
		if bad == 0 {
			break
		}
	}
	return bad
}

// lengths sets to to the lengths of the first n elements of column 0. The mask has the lanes where these are too short, beside 1, for
// a direction.
func (g grid) lengths(to *vec, n int) (bad uint8) {
	var sum [1]vec
	grid{sum[:], 1, 1}.set(g.t(), g, 1, 1, n)
	for l, s := range sum[0] {
		if to[l] = float32(math.Sqrt(float64(s))); !(to[l] > 0x1p-30) {
			bad |= 1 << l
		}
	}
	return bad
}

// A singular is a decomposition that is in no order: the rows of turned and vt belong to the values.
type singular struct {
	turned, vt grid
	values     []vec
	k, long    int
}

// write writes the results of the matrices that are not bad, in falling order of the singular values.
func (f *singular) write(u, s, vt []float32, tall bool, count int, bad uint8, scale [Lanes]float64) {
	k, long := f.k, f.long
	memory := take(count*k*(long+k) + k*(long+k))
	defer memory.give()
	directions, vectors := memory.data[:count*k*long], memory.data[count*k*long:][:count*k*k]
	rest := memory.data[count*k*(long+k):]
	unpack(directions, f.turned.data, count, 0)
	unpack(vectors, f.vt.data, count, 0)
	places := make([]int32, k)
	for left := used(count) &^ bad; left != 0; left &= left - 1 {
		l := bits.TrailingZeros8(left)
		sorted(f.values, l, places)
		x, y := Matrix{rest[:k*long], k, long, long}, Matrix{rest[k*long:], k, k, k}
		for i := range k {
			at := int(places[k-1-i])
			s[l*k+i] = float32(float64(f.values[at][l]) * scale[l])
			copy(x.row(i), directions[(l*k+at)*long:])
			copy(y.row(i), vectors[(l*k+at)*k:])
		}
		if tall {
			transpose(Matrix{u[l*k*long:], long, k, k}, x)
			copy(vt[l*k*k:], y.Data)
		} else {
			transpose(Matrix{u[l*k*k:], k, k, k}, y)
			copy(vt[l*k*long:], x.Data)
		}
	}
}
