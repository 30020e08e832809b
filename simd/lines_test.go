package simd

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestTransposeLines transposes matrices of elements of each size, with rows and columns at any places and any alignment.
// Bytes around the result must not change.
func TestTransposeLines(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		var m LinesMemory
		for i := range 3000 {
			size := 1 << (i % 4)
			if !HasLines(size) {
				continue
			}
			rows, cols := lineBytes/size*(1+r.IntN(6))+r.IntN(64), 16/size+r.IntN(90)
			ss, ds := cols+r.IntN(9), rows+r.IntN(20)
			x, xok := guarded(t, (rows*ss*size+3)/4, r.IntN(16))
			from := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), rows*ss*size)
			for i := range from {
				from[i] = byte(r.Uint32())
			}
			offs := make([]int, rows+LinesAhead)
			for k, row := range r.Perm(rows) {
				offs[k] = row * ss * size
			}
			lead := 0
			if i%3 == 0 {
				lead = r.IntN(8) // addresses that are not multiples of the size
			}
			dst, ok := guarded(t, (lead+cols*ds*size+3)/4, r.IntN(16))
			to := unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), lead+cols*ds*size)
			for i := range to {
				to[i] = 77
			}
			want, at := slices.Clone(to), make([]int, cols)
			for j, row := range r.Perm(cols) {
				at[j] = row * ds * size
				for i := range rows {
					copy(want[lead+at[j]+i*size:][:size], from[offs[i]+j*size:])
				}
			}
			TransposeLines(unsafe.Pointer(&to[lead]), unsafe.Pointer(&from[0]), size, offs, at, &m, r.IntN(2) == 0, r.IntN(2) == 0)
			StreamFence()
			xok()
			ok()
			if !slices.Equal(to, want) {
				t.Fatalf("%d rows, %d columns %d apart, of %d bytes, %d bytes after a word: other bytes", rows, cols, ds, size, lead)
			}
		}
	})
}
