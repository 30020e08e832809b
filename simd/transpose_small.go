package simd

import "unsafe"

// A smallTile is a kernel that transposes tall rows of at least wide elements. Distances are in bytes.
type smallTile struct {
	tall, wide int
	turn       func(dst, x *byte, ds, ss, cols int)
}

// smallSide is the number of bytes of a row that are transposed before the next rows: whole cache lines.
const smallSide = 128

// TransposeSmall is [TransposeTile] for elements of size bytes: 1, 2 or 8.
func TransposeSmall(dst, x unsafe.Pointer, size, ds, ss, rows, cols int) {
	for _, k := range smallTilesOf(size) {
		if rows < k.tall || cols < k.wide {
			continue
		}
		for j := 0; j < cols; {
			n := min(smallSide/size, cols-j)
			if rest := cols - j - n; rest < k.wide {
				n += rest
			}
			for i := 0; i < rows; i += k.tall {
				r := min(i, rows-k.tall) // the last tile overlaps the one before
				k.turn((*byte)(unsafe.Add(dst, (j*ds+r)*size)), (*byte)(unsafe.Add(x, (r*ss+j)*size)), ds*size, ss*size, n)
			}
			j += n
		}
		return
	}
	switch size {
	case 1:
		transposeEach((*uint8)(dst), (*uint8)(x), ds, ss, rows, cols)
	case 2:
		transposeEach((*uint16)(dst), (*uint16)(x), ds, ss, rows, cols)
	default:
		transposeEach((*uint64)(dst), (*uint64)(x), ds, ss, rows, cols)
	}
}

// transposeEach is TransposeSmall without kernels. The inner loop is along the longer side.
func transposeEach[T uint8 | uint16 | uint64](dst, x *T, ds, ss, rows, cols int) {
	if cols >= rows {
		for i := range rows {
			copyEach(place(dst, i), place(x, i*ss), ds, 1, cols)
		}
		return
	}
	for j := range cols {
		copyEach(place(dst, j*ds), place(x, j), 1, ss, rows)
	}
}

// place returns the address of element i from p on.
func place[T any](p *T, i int) *T {
	return (*T)(unsafe.Add(unsafe.Pointer(p), i*int(unsafe.Sizeof(*p))))
}

// copyEach copies n elements, which are ss apart in x, to elements ds apart in dst.
func copyEach[T uint8 | uint16 | uint64](dst, x *T, ds, ss, n int) {
	i := 0
	for ; i+4 <= n; i += 4 {
		a, b, c, d := *place(x, i*ss), *place(x, (i+1)*ss), *place(x, (i+2)*ss), *place(x, (i+3)*ss)
		*place(dst, i*ds), *place(dst, (i+1)*ds), *place(dst, (i+2)*ds), *place(dst, (i+3)*ds) = a, b, c, d
	}
	for ; i < n; i++ {
		*place(dst, i*ds) = *place(x, i*ss)
	}
}
