package llm

import (
	"math"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestStoreOfBlocks compares the values of an 8-bit store with those of q8_0 blocks in files.
func TestStoreOfBlocks(t *testing.T) {
	dev := openCPU(t)
	rnd := testutil.Rand(t)
	const rows, width, n = 40, 96, 17
	s, err := newStore(t.Context(), dev, op.Q8_0, rows, width)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	x := make([]float32, n*width)
	for i := range x {
		x[i] = float32(rnd.NormFloat64() * math.Exp2(float64(i/width-8)))
	}
	clear(x[:groupSize])
	for i := range groupSize {
		x[groupSize+i] *= 1e-7 // the factor is subnormal and has few bits
	}
	places := make([]int32, n)
	for i, p := range rnd.Perm(rows)[:n] {
		places[i] = int32(p)
	}
	b := batch.New(dev)
	s.put(b, batch.Upload(b, places), batch.Upload(b, x, n, width))
	y := s.get(b, batch.Upload(b, places))
	if err := b.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := batch.Read[float32](t.Context(), b, y)
	if err != nil {
		t.Fatal(err)
	}
	size, err := block.Q8_0.Size(len(x))
	if err != nil {
		t.Fatal(err)
	}
	raw, want := make([]byte, size), make([]float32, len(x))
	if err := block.Q8_0.Quantize(raw, x); err != nil {
		t.Fatal(err)
	}
	if err := block.Q8_0.Dequantize(want, raw); err != nil {
		t.Fatal(err)
	}
	other := 0
	for i, v := range want {
		group := x[i/groupSize*groupSize:][:groupSize]
		step := greatest(group)/127 + 6e-8 // plus the smallest half float
		if d := math.Abs(float64(got[i] - v)); d > 1.01*step {
			t.Fatalf("element %d: %v, not %v", i, got[i], v)
		}
		if got[i] != v {
			other++ // package block divides by the unrounded factor
		}
	}
	if other > len(x)/8 {
		t.Errorf("%d of %d elements differ from those of blocks", other, len(x))
	}
	if _, err := newStore(t.Context(), dev, op.Q8_0, 4, 48); err == nil {
		t.Error("rows of no whole blocks are taken")
	}
}
