//go:build linux && amd64 && !noasm && !wazero

package simd

import (
	"math"
	"os"
	"syscall"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestInt8Streams compares kernels with streams with float64: rows of every length from columnSuper on, and numbers
// of rows that are not a multiple of the number of streams. The blocks end where memory ends. A result must not depend on the
// number of rows, which depends on the number of threads.
func TestInt8Streams(t *testing.T) {
	r := testutil.Rand(t)
	k := int8KernelsOf(active)
	memory, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	if err := syscall.Mprotect(memory[len(memory)-page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	for f := range k.columns {
		f, c := block.Format(f), &k.columns[f]
		if c.streams == 0 {
			continue
		}
		for depth := columnSuper; depth <= 3*columnSuper; depth += max(columnTail, f.Elements()) {
			n := 1 + r.IntN(25)
			if k.columnsFor(f, 1, depth) != c {
				t.Fatalf("%v: the kernel does not multiply rows of %d elements", f, depth)
			}
			a, from := int8Rows(r, depth), anyBlocks(r, f, n*depth/f.Elements(), true)
			if f == block.MXFP4 {
				for i := 0; i < len(from); i += f.Bytes() {
					from[i] = byte(100 + r.IntN(50)) // products stay in range
				}
			}
			w := memory[len(memory)-page-len(from):][:len(from):len(from)]
			copy(w, from)
			got := multiplyInt8(&k, f, 1, depth, n, a, w, nil)
			want, mag := wantInt8(f, 1, depth, n, a, w, nil)
			for i := range want {
				bound := 0x1p-24*mag[i]*float64(depth/16+12) + 0x1p-149*float64(depth*127*127)
				if !(math.Abs(float64(got[i])-want[i]) <= bound) {
					t.Fatalf("%v, %d×%d: element %d is %v, want %v: the bound is %g", f, depth, n, i, got[i], want[i], bound)
				}
				row := len(w) / n
				if alone := multiplyInt8(&k, f, 1, depth, 1, a, w[i*row:][:row:row], nil); alone[0] != got[i] {
					t.Fatalf("%v, %d×%d: element %d is %v, alone %v", f, depth, n, i, got[i], alone[0])
				}
			}
		}
	}
	if err := syscall.Munmap(memory); err != nil {
		t.Fatal(err)
	}
}
