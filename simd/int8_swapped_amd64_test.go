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

// TestInt8Swapped compares swapped products with float64: every number of rounded rows, and numbers of columns around those of one call. The
// blocks end where memory ends. A result must not depend on the columns of a call.
func TestInt8Swapped(t *testing.T) {
	k := int8KernelsOf(active)
	if k.swapped == nil {
		t.Log("the processor has no AMX")
		return
	}
	r := testutil.Rand(t)
	memory, err := syscall.Mmap(-1, 0, 1<<21, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	if err := syscall.Mprotect(memory[len(memory)-page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	few, many := 0, 0
	for _, f := range []block.Format{block.Q4_0, block.Q8_0, block.Q4_K, block.Q6_K, block.Q2_K, block.Q5_1} {
		for m := swappedMin8; m <= 35; m++ {
			e := f.Elements()
			depth := e * (1 + r.IntN(1400/e))
			n := 1 + r.IntN(2*swappedSpan)
			n = min(n, (len(memory)-page)/(depth/e*f.Bytes()))
			p := newInt8Product(&k, f, m, depth, n)
			if p.unit == 0 {
				continue
			}
			if p.unit > p.group {
				few++
			} else {
				many++
			}
			a, from := int8Rows(r, m*depth), anyBlocks(r, f, n*depth/e, true)
			w := memory[len(memory)-page-len(from):][:len(from):len(from)]
			copy(w, from)
			got := multiplyInt8(&k, f, m, depth, n, a, w, nil)
			want, mag := wantInt8(f, m, depth, n, a, w, nil)
			for i := range want {
				if !(math.Abs(float64(got[i])-want[i]) <= 0x1p-24*mag[i]*float64(depth/16+12)+0x1p-149*float64(depth*127*127)) {
					t.Fatalf("%v, %d×%d×%d: element %d is %v, want %v", f, m, depth, n, i, got[i], want[i])
				}
			}
			j, row := r.IntN(n), len(w)/n
			for i, v := range multiplyInt8(&k, f, m, depth, 1, a, w[j*row:][:row:row], nil) {
				if v != got[i*n+j] {
					t.Fatalf("%v, %d×%d×%d: element %d of column %d is %v, alone %v", f, m, depth, n, i, j, got[i*n+j], v)
				}
			}
		}
	}
	if few == 0 || many == 0 {
		t.Fatalf("%d products of few rows and %d of many", few, many)
	}
	if err := syscall.Munmap(memory); err != nil {
		t.Fatal(err)
	}
}
