//go:build amd64 && !noasm

package driver

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
	"github.com/rayo-go/rayo/simd/linalg"
)

// words returns the memory of x.
func words(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }

// definites returns symmetric positive definite matrices. It then makes every third matrix singular, zero or not finite.
func definites(r *rand.Rand, batch, n int) (x []float32, spoiled func(i int) bool) {
	x = make([]float32, batch*n*n)
	for m := range batch {
		a := x[m*n*n:][:n*n]
		for i := range n {
			for j := range i {
				a[i*n+j] = float32(r.Float64())
				a[j*n+i] = a[i*n+j]
			}
			a[i*n+i] = float32(n)
		}
		if m%3 == 0 {
			switch k := r.IntN(n); m % 4 {
			case 0:
				a[k*n+k] = float32(math.NaN())
			case 1:
				a[k*n+k] = float32(math.Inf(1))
			case 2:
				clear(a)
			case 3:
				clear(a[k*n : (k+1)*n])
				a[k*n+k] = -1
			}
		}
	}
	return x, func(i int) bool { return i%3 == 0 }
}

// Matrices that are not computed in lock-step have the bits that they have alone, and do not disturb those beside them.
func TestLockstep(t *testing.T) {
	testutil.Need(t, "avx2")
	if !linalg.Together(1, 1) {
		return // RAYO_SIMD names another level
	}
	r, p := testutil.Rand(t), simd.NewPool(2)
	defer p.Close()
	UseFactors()
	for o := range locksteps {
		for _, batch := range []int{3, 7, 8, 10, 43} {
			n := 1 + r.IntN(20)
			square := op.Shape{batch, n, n}
			x, spoiled := definites(r, batch, n)
			in, dims := [][]byte{words(x)}, []op.Shape{square}
			if o == op.Solve {
				in, dims = append(in, words(slices.Clone(x))), append(dims, square)
			}
			results := map[*op.Operation][]op.Shape{
				op.LU: {square, {batch, n, 1}}, op.QR: {square, square}, op.Eigh: {{batch, n, 1}, square}, op.SVD: {square, {batch, n, 1}, square},
			}[o]
			if results == nil {
				results = []op.Shape{square}
			}
			var got, want [][]byte
			for _, s := range results {
				size, _ := s.Size()
				got, want = append(got, make([]byte, 4*size)), append(want, make([]byte, 4*size))
			}
			f, ok := FactoringOf(o, new(op.Attrs), append(dims, results...))
			if !ok || f.many == nil {
				t.Fatalf("%s: not in lock-step", o.Name())
			}
			f.Run(p, in, got)
			f.many = nil
			f.Run(p, in, want)
			for k := range results {
				size := len(got[k]) / batch
				for i := range batch {
					a, b := got[k][i*size:(i+1)*size], want[k][i*size:(i+1)*size]
					if spoiled(i) && (finite(b) || string(a) == string(b)) || !spoiled(i) && finite(a) && finite(b) {
						continue
					}
					t.Fatalf("%s: result %d of matrix %d of %d, order %d: finite %v, alone %v", o.Name(), k, i, batch, n, finite(a), finite(b))
				}
			}
		}
	}
}

func finite(x []byte) bool {
	for _, v := range unsafe.Slice((*float32)(unsafe.Pointer(&x[0])), len(x)/4) {
		if v-v != 0 {
			return false
		}
	}
	return true
}
