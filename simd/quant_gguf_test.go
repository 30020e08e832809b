package simd

import (
	"bytes"
	"math"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

func init() { UseBlocks() } // pages call it with package batch

// TestTensorsOfFiles has files read by this package's kernels: the same bits as package block's.
func TestTensorsOfFiles(t *testing.T) {
	r := testutil.Rand(t)
	for _, f := range block.Formats() {
		rows := 1100 // more than are read at a time
		if f == block.Q4_K || f == block.Q6_K || f == block.Q8_0 || f == block.TQ1_0 {
			rows = 1<<20/f.Elements() + 100 // several goroutines decode them
		}
		info := gguf.TensorInfo{Name: "x", Type: f, Dims: []int64{int64(f.Elements()), int64(rows)}}
		raw := anyBlocks(r, f, rows, true)
		var b bytes.Buffer
		w, err := gguf.NewWriter(&b, nil, []gguf.TensorInfo{info})
		if err != nil {
			t.Fatal(err)
		}
		dst, err := w.Tensor("x")
		if err == nil {
			_, err = dst.Write(raw)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		file, err := gguf.NewBytes(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, want := make([]float32, (rows-1)*f.Elements()), make([]float32, rows*f.Elements())
		if err := f.Dequantize(want, raw); err != nil {
			t.Fatal(err)
		}
		if err := file.Tensor("x").Dequantize(got, int64(f.Elements())); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if w := want[f.Elements()+i]; math.Float32bits(v) != math.Float32bits(w) && !(v == 0 && w == 0) {
				t.Fatalf("%v: element %d is %v, want %v", f, i, v, w)
			}
		}
	}
}
