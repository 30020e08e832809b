package llm

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/simd"
)

// TestInt8 compares the logits of rounded and of exact activations. They must be similar but not
// equal. The models are the same in each run.
func TestInt8(t *testing.T) {
	dev := openCPU(t)
	for _, typ := range []block.Format{block.Q4_0, block.Q8_0, block.Q4_K, block.Q6_K, block.IQ4_XS, block.TQ2_0} {
		path := filepath.Join(t.TempDir(), typ.String()+".gguf")
		writeLlama(t, path, benchSizes{layers: 2, width: 256, heads: 4, kvHeads: 2, ff: 512, vocabulary: 300}, typ)
		var all [2][][]float32
		for i, exact := range []bool{true, false} {
			m, err := Open(t.Context(), dev, path, Options{Context: 64, Exact: exact})
			if err != nil {
				t.Fatal(err)
			}
			s := m.NewSession()
			for _, n := range []int{20, 1, 1, 5} {
				tokens := make([]int32, n)
				for j := range tokens {
					tokens[j] = int32((s.Len()*31 + j*77 + n) % 300)
				}
				if err := s.Feed(t.Context(), tokens); err != nil {
					t.Fatal(err)
				}
				all[i] = append(all[i], slices.Clone(s.Logits()))
			}
			_ = s.Close()
			_ = m.Close()
		}
		for i, want := range all[0] {
			d := worst(all[1][i], want, greatest(want))
			if d > 0.03 || (d > 0) != simd.FastInt8(typ, 1, 256) {
				t.Errorf("%v: logits %d are off by %.3g of the greatest, want at most 0.03, and 0 only without kernels", typ, i, d)
			}
		}
	}
}
