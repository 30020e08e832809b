package cpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// TestLines copies permuted arrays of elements of 1 to 8 bytes by whole cache lines and by planes, in any order of the boxes, and compares them
// with an index loop. Bytes around the result must not change.
func TestLines(t *testing.T) {
	r := testutil.Rand(t)
	kinds := map[string]int{}
	for i := range 400 {
		size := 1 << (i % 4)
		if !simd.HasLines(size) || !simd.HasPlanes(size) {
			continue
		}
		s, order := randomOrder(r)
		if i%8 < 4 { // planes
			places, planes := 1+r.IntN(70_000/size), 2+r.IntN(4)
			s, order = op.Shape{places, planes}, []int{1, 0}
			if r.IntN(2) == 0 {
				slices.Reverse(s)
			}
			if n := 1 + r.IntN(4); n > 1 {
				s, order = append(op.Shape{n}, s...), []int{0, 2, 1}
			}
		}
		l := permuted(s, order)
		b := planesOf(&l, size)
		if b == nil {
			b = linesOf(&l, size)
		}
		if b == nil {
			continue
		}
		switch {
		case b.split:
			kinds["split"]++
		case b.planes > 0:
			kinds["mixed"]++
		case b.tables == nil:
			kinds["located"]++
		case len(b.rows) > 1:
			kinds["rows"]++
		case b.inner > 1:
			kinds["columns"]++
		default:
			kinds["lines"]++
		}
		testLines(t, r, &l, b, size)
	}
	for _, k := range []string{"split", "mixed", "rows", "columns", "lines"} {
		if simd.HasLines(1) && kinds[k] == 0 {
			t.Errorf("no copy was %s", k)
		}
	}
}

// TestLinesMatrices checks which arrays are copied by whole cache lines.
func TestLinesMatrices(t *testing.T) {
	for _, c := range []struct {
		s     op.Shape
		order []int
		size  int
		lines bool
	}{
		{op.Shape{271, 768}, []int{1, 0}, 1, false}, {op.Shape{271, 500}, []int{1, 0}, 1, true}, {op.Shape{90, 90}, []int{1, 0}, 1, false},
		{op.Shape{31, 93, 55}, []int{2, 1, 0}, 1, true}, {op.Shape{73, 39, 61}, []int{0, 2, 1}, 2, false}, {op.Shape{326, 525}, []int{1, 0}, 2, true},
		{op.Shape{62, 62}, []int{1, 0}, 4, false}, {op.Shape{96, 96}, []int{1, 0}, 4, false}, {op.Shape{100, 90}, []int{1, 0}, 4, true},
		{op.Shape{14, 16, 6, 16}, []int{3, 1, 2, 0}, 4, true}, {op.Shape{19, 37, 14}, []int{0, 2, 1}, 4, false}, {op.Shape{90, 90}, []int{1, 0}, 8, true},
	} {
		l := permuted(c.s, c.order)
		if got := linesOf(&l, c.size) != nil; got != (c.lines && simd.HasLines(c.size)) {
			t.Errorf("%v by %v, %d bytes: by whole cache lines: %v, want %v", c.s, c.order, c.size, got, c.lines)
		}
	}
}

// testLines copies an array with the boxes b.
func testLines(t *testing.T, r *rand.Rand, l *op.Layout, b *boxes, size int) {
	t.Helper()
	n := l.Size()
	x := make([]byte, n*size)
	for i := range x {
		x[i] = byte(r.Uint32())
	}
	for _, past := range []bool{false, true} {
		lead := r.IntN(70)
		dst := make([]byte, lead+n*size+64)
		for i := range dst {
			dst[i] = 0xa5
		}
		want := slices.Clone(dst)
		for k := range n {
			at, _ := l.At(k)
			copy(want[lead+k*size:][:size], x[at*size:])
		}
		for _, i := range r.Perm(b.count) {
			b.copy((*uint32)(unsafe.Pointer(&dst[lead])), (*uint32)(unsafe.Pointer(&x[0])), i, past)
		}
		simd.StreamFence()
		if !slices.Equal(dst, want) {
			t.Fatalf("%v of %d bytes, %d bytes after a line, past %v: other bytes", l, size, lead, past)
		}
	}
}

// TestSmallBoxes copies small permuted arrays that consist of several boxes, with one call of the device.
func TestSmallBoxes(t *testing.T) {
	d := open(t, 2)
	for _, c := range []struct {
		s     op.Shape
		order []int
		typ   op.DType
	}{
		{op.Shape{2, 3, 300}, []int{0, 2, 1}, op.U8}, {op.Shape{3, 300, 2}, []int{0, 2, 1}, op.U8}, {op.Shape{3, 128, 3}, []int{0, 2, 1}, op.F16},
		{op.Shape{2, 20, 40}, []int{0, 2, 1}, op.F32}, {op.Shape{2, 64, 16}, []int{0, 2, 1}, op.U8}, {op.Shape{3, 32, 16}, []int{0, 2, 1}, op.F32},
	} {
		l := permuted(c.s, c.order)
		n, w := l.Size(), c.typ.Size()
		src, x := alloc(t, d, n)
		dst, y := alloc(t, d, n)
		from, to := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*n), unsafe.Slice((*byte)(unsafe.Pointer(&y[0])), 4*n)
		for i := range from {
			from[i] = byte(i * 7)
		}
		p := &driver.Program{Ext: 2, Slots: []driver.Slot{
			{Type: c.typ, Shape: op.Shape{n}, Bytes: int64(w * n)}, {Type: c.typ, Shape: op.Shape{n}, Bytes: int64(w * n), Ext: 1, Written: true},
		}}
		f := &driver.Fused{In: []driver.Operand{{Slot: 0, Type: c.typ, Broadcast: op.Strided, Layout: &l}}, Shape: op.Shape{n}, Out: []int{0}}
		p.Steps = []driver.Step{{Post: f, Out: []driver.Operand{{Slot: 1, Type: c.typ, N: n}}}}
		if _, err := prepare(t, d, p).Submit(context.Background(), &driver.Submission{Ext: []driver.Binding{{Mem: src}, {Mem: dst}}, Wait: true}); err != nil {
			t.Fatal(err)
		}
		for k := range n {
			at, _ := l.At(k)
			if got, want := string(to[k*w:][:w]), string(from[at*w:][:w]); got != want {
				t.Fatalf("%v by %v, %v: element %d is %x, not %x", c.s, c.order, c.typ, k, got, want)
			}
		}
		src.Free()
		dst.Free()
	}
}
