package kernels

import (
	"bytes"
	"testing"

	"github.com/rayo-go/rayo/internal/wasm"
	"github.com/rayo-go/rayo/internal/wasm/frame"
)

// TestRelaxed: products with sums that MulAdd writes are replaced, with variables whose numbers take one byte and two, and
// nothing else is. The lengths of all parts stay.
func TestRelaxed(t *testing.T) {
	const few, many = 3, 200 // more than 127 variables have numbers of two bytes
	for _, locals := range []int{few, many} {
		m := &wasm.Module{}
		f := m.Func(wasm.Signature{})
		var l wasm.Local
		for range locals {
			l = f.Local(wasm.V128)
		}
		write := func(fused bool) {
			f.Get(l)
			f.Get(l)
			if fused {
				f.MulAdd(l)
			} else {
				f.Op(wasm.F32x4Mul)
				f.Get(l)
				f.Op(wasm.F32x4Add)
			}
			f.Set(l)
		}
		write(true)
		write(false)
		write(true)
		m.Export("f", f)
		before := m.Bytes()
		kept := bytes.Clone(before)
		after := frame.Relaxed(before)
		if !bytes.Equal(before, kept) {
			t.Error("Relaxed has changed its argument")
		}
		if len(after) != len(before) {
			t.Fatalf("%d bytes became %d", len(before), len(after))
		}
		mul, add, madd := []byte{0xfd, 0xe6, 1}, []byte{0xfd, 0xe4, 1}, []byte{0xfd, 0x85, 2}
		if n := bytes.Count(after, madd); n != 2 {
			t.Errorf("%d variables: %d relaxed instructions, not 2", locals, n)
		}
		if n, k := bytes.Count(after, mul), bytes.Count(after, add); n != 1 || k != 1 {
			t.Errorf("%d variables: %d products and %d sums are left, not one", locals, n, k)
		}
		// But for the nops, the product became nothing and the sum the new instruction.
		want := bytes.ReplaceAll(before, append(mul, 1), []byte{1, 1, 1, 1})
		want = bytes.Replace(want, add, madd, 1)
		i := bytes.LastIndex(want, add)
		copy(want[i:], madd)
		if !bytes.Equal(after, want) {
			t.Errorf("%d variables: % x, not % x", locals, after, want)
		}
	}
}

// TestRelaxedParts: no part of a module makes Relaxed read beyond its end.
func TestRelaxedParts(t *testing.T) {
	m := New().Bytes()
	first := bytes.Index(m, []byte{0xfd, 0xe6, 1, 1, 0x20})
	if first < 0 {
		t.Fatal("the module has no product and sum")
	}
	for n := first; n < first+12; n++ {
		if got := frame.Relaxed(m[:n:n]); len(got) != n {
			t.Errorf("%d bytes became %d", n, len(got))
		}
		long := append(bytes.Clone(m[:first+5]), bytes.Repeat([]byte{0xff}, n-first)...)
		frame.Relaxed(long[:len(long):len(long)])
	}
	if bytes.Equal(frame.Relaxed(m), m) {
		t.Error("Relaxed changes nothing")
	}
}
