package simd

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestTransposeSmall transposes elements of each size, with all kinds of sides and distances. Bytes around the result must not change.
func TestTransposeSmall(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for i := range 600 {
			size, rows, cols := []int{1, 2, 8}[i%3], 1+r.IntN(90), 1+r.IntN(90)
			if i%20 == 0 {
				cols += 300
			}
			ss, ds := cols+r.IntN(4), rows+r.IntN(4)
			x, dst := make([]byte, size*((rows-1)*ss+cols)), make([]byte, 16+size*((cols-1)*ds+rows))
			for i := range x {
				x[i] = byte(r.Uint32())
			}
			for i := range dst {
				dst[i] = 77
			}
			want := slices.Clone(dst)
			for i := range rows {
				for j := range cols {
					copy(want[8+size*(j*ds+i):][:size], x[size*(i*ss+j):])
				}
			}
			TransposeSmall(unsafe.Pointer(&dst[8]), unsafe.Pointer(&x[0]), size, ds, ss, rows, cols)
			if !slices.Equal(dst, want) {
				t.Fatalf("%d×%d elements of %d bytes, distances %d and %d: other bytes", rows, cols, size, ss, ds)
			}
		}
	})
}

// TestJoinPieces joins rows of several parts, of any number of bytes from 32 on, at any distances. Bytes around the result must not change.
func TestJoinPieces(t *testing.T) {
	r := testutil.Rand(t)
	for range 200 {
		parts, count := make([]JoinPart, 1+r.IntN(4)), 1+r.IntN(20)
		from := make([][]byte, len(parts))
		row := 0
		for k := range parts {
			n := 32 + r.IntN(200)
			p := JoinPart{At: r.IntN(9), Bytes: n, Stride: n + r.IntN(9)}
			from[k] = make([]byte, p.At+count*p.Stride)
			for i := range from[k] {
				from[k][i] = byte(r.Uint32())
			}
			p.X = unsafe.Pointer(&from[k][0])
			parts[k] = p
			row += n
		}
		dst := make([]byte, 8+count*row+8)
		want := slices.Clone(dst)
		for i, at := 0, 8; i < count; i++ {
			for k, p := range parts {
				at += copy(want[at:at+p.Bytes], from[k][p.At+i*p.Stride:])
			}
		}
		if !JoinPieces(&dst[8], parts, count) {
			return
		}
		if !slices.Equal(dst, want) {
			t.Fatalf("%d rows of parts %v: other bytes", count, parts)
		}
	}
}
