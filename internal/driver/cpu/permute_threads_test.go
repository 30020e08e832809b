package cpu

import (
	"context"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestPermuteThreads copies permuted arrays and parts of them, with steps and in reverse, with 1 to 8 threads, and compares the results
// with the addresses that the layouts return.
func TestPermuteThreads(t *testing.T) {
	r := testutil.Rand(t)
	for i := range 40 {
		d := open(t, 1+i%8)
		s, order := randomOrder(r)
		if i%2 == 0 {
			order = reversed(len(s))
		}
		l := viewOf(r, permuted(s, order))
		n, typ := l.Size(), []op.DType{op.F32, op.I32, op.F32, op.F16, op.U8}[r.IntN(5)]
		src, x := alloc(t, d, size(s))
		dst, y := alloc(t, d, n+1)
		bytes := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))
		for j := range bytes {
			bytes[j] = byte(r.Uint32())
		}
		result := unsafe.Slice((*byte)(unsafe.Pointer(&y[0])), 4*len(y))
		p := &driver.Program{Ext: 2, Slots: []driver.Slot{
			{Type: typ, Shape: op.Shape{size(s)}, Bytes: int64(typ.Size() * size(s))},
			{Type: typ, Shape: op.Shape{n}, Bytes: int64(typ.Size() * n), Ext: 1, Written: true},
		}}
		f := &driver.Fused{In: []driver.Operand{{Slot: 0, Type: typ, Broadcast: op.Strided, Layout: &l}}, Shape: op.Shape{n}, Out: []int{0}}
		p.Steps = []driver.Step{{Post: f, Out: []driver.Operand{{Slot: 1, Type: typ, N: n}}}}
		e := prepare(t, d, p)
		for range 3 { // with ordinary and with non-temporal stores
			for j := range result {
				result[j] = 0xa5
			}
			if _, err := e.Submit(context.Background(), &driver.Submission{Ext: []driver.Binding{{Mem: src}, {Mem: dst}}, Wait: true}); err != nil {
				t.Fatal(err)
			}
			w := typ.Size()
			for k := range n {
				at, _ := l.At(k)
				if got, want := string(result[k*w:][:w]), string(bytes[at*w:][:w]); got != want {
					t.Fatalf("%v by %v, %v, %d threads: element %d is %x, not %x", s, order, typ, 1+i%8, k, got, want)
				}
			}
			for k, b := range result[n*w:] {
				if b != 0xa5 {
					t.Fatalf("%v by %v, %v: byte %d after the result was written", s, order, typ, k)
				}
			}
		}
		src.Free()
		dst.Free()
	}
}

// reversed returns the order of axes that reverses n axes.
func reversed(n int) []int {
	order := make([]int, n)
	for k := range order {
		order[k] = n - 1 - k
	}
	return order
}

// viewOf returns the layout of a random part of an array: some factors are shorter, have a step, or are reversed.
func viewOf(r *rand.Rand, l op.Layout) op.Layout {
	for k := range int(l.Rank) {
		f := &l.F[k]
		switch n := f.N; r.IntN(8) {
		case 0: // a part
			lo := r.IntN((n + 1) / 2)
			l.Off += lo * f.Stride
			f.N = n - lo - r.IntN((n-lo+1)/2)
		case 1: // every second one
			f.N, f.Stride = (n+1)/2, 2*f.Stride
		case 2: // in reverse
			l.Off += (n - 1) * f.Stride
			f.Stride = -f.Stride
		}
		f.Hi = f.N
	}
	return l
}
