package cpu

import (
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// TestAttentionAfterPanic checks that a panic leaves nothing behind that the next attention of the frame would compute. The sequences are
// queries of one sequence in the first call only.
func TestAttentionAfterPanic(t *testing.T) {
	const heads, pages, page, dim = 4, 128, 64, 8
	attrs := op.AttentionOpts{Causal: true}.Attrs()
	keys := op.Shape{pages, page, heads, dim}
	dims := []op.Shape{{3, heads, 1, dim}, keys, keys, {3}, nil, {3, pages}, {3, heads, 1, dim}}
	task := attentionTask{d: open(t, 1)}
	if err := task.configure(op.Attention, &attrs, dims); err != nil {
		t.Fatal(err)
	}
	q, k, v := make([]float32, 3*heads*dim), make([]float32, pages*page*heads*dim), make([]float32, pages*page*heads*dim)
	for i := range v {
		v[i] = 1
	}
	lengths, table, dst := []int32{1, 2, 3}, make([]int32, 3*pages), make([]float32, len(q))
	for i := range table {
		table[i] = int32(i % pages)
	}
	in := []unsafe.Pointer{unsafe.Pointer(&q[0]), unsafe.Pointer(&k[0]), unsafe.Pointer(&v[0]), unsafe.Pointer(&lengths[0]), nil, unsafe.Pointer(&table[0])}
	run := func() (panicked bool) {
		defer func() { panicked = recover() != nil }()
		if err := task.compute(t.Context(), in, []unsafe.Pointer{unsafe.Pointer(&dst[0])}); err != nil {
			t.Error(err)
		}
		return false
	}
	n := task.q[op.AttentionV].n
	task.q[op.AttentionV].n = 1
	if !run() {
		t.Fatal("no panic for values that are too short")
	}
	task.q[op.AttentionV].n = n
	lengths[0], lengths[1], lengths[2] = pages*page, 1, 1
	if run() {
		t.Fatal("the second call panicked")
	}
	for i, x := range dst {
		if x != 1 {
			t.Fatalf("element %d of attention to ones is %v", i, x)
		}
	}
}
