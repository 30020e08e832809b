package simd

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestMixPlanes interleaves planes of elements of each size, and the reverse. Bytes around the result must not change.
func TestMixPlanes(t *testing.T) {
	eachLevel(t, func(t *testing.T) {
		r := testutil.Rand(t)
		for i := range 1500 {
			size, planes, split := 1<<(i%4), 2+r.IntN(PlanesMost-1), r.IntN(2) == 0
			if !HasPlanes(size) {
				continue
			}
			n := lineBytes/size + r.IntN(300)
			if i%50 == 0 {
				n += 70_000
			}
			pitch := n + r.IntN(9)
			flat, mixed := make([]byte, size*pitch*planes+16), make([]byte, size*n*planes+16)
			lead := r.IntN(8)
			x, dst := flat, mixed
			if split {
				x, dst = mixed, flat
			}
			for i := range x {
				x[i] = byte(r.Uint32())
			}
			for i := range dst {
				dst[i] = 77
			}
			want := slices.Clone(dst)
			for k := range planes {
				for j := range n {
					a, b := lead+size*(k*pitch+j), lead+size*(j*planes+k)
					if split {
						copy(want[a:a+size], x[b:])
					} else {
						copy(want[b:b+size], x[a:])
					}
				}
			}
			MixPlanes(unsafe.Pointer(&dst[lead]), unsafe.Pointer(&x[lead]), size, n, planes, pitch, split)
			if !slices.Equal(dst, want) {
				t.Fatalf("%d planes of %d elements of %d bytes, %d apart, split %v: other bytes", planes, n, size, pitch, split)
			}
		}
	})
}
