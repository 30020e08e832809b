package block

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// unseen returns numbers of a distribution, the same in every run: those that
// testdata/unseen.json was measured with. Only sums of integers and powers of two
// go into them, so they are the same on every machine.
func unseen(kind string) []float32 {
	r := rand.New(rand.NewPCG(2026, 11))
	x := make([]float32, 1<<14)
	scale := float32(1)
	for i := range x {
		sum := int64(0)
		for range 12 {
			sum += int64(r.Uint64() >> 48)
		}
		v := float32(sum-6<<16) / (1 << 16) // nearly normal
		switch kind {
		case "shifted":
			v += 0.5
		case "uniform":
			v = float32(r.Uint64()>>40) / (1 << 24)
		case "groups":
			if i%16 == 0 {
				scale = float32(uint32(1)<<r.Uint32N(7)) / 8
			}
			v *= scale
		}
		x[i] = v
	}
	return x
}

// TestQuantizeUnseen compares with llama.cpp's errors on other numbers than those
// of golden.json. Short runs take a third of the formats at random.
func TestQuantizeUnseen(t *testing.T) {
	text, err := os.ReadFile("testdata/unseen.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]map[string]float64
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	if len(want) != 4 {
		t.Fatalf("%d distributions", len(want))
	}
	r := testutil.Rand(t)
	for kind, bounds := range want {
		x := unseen(kind)
		if len(bounds) != len(quantised()) {
			t.Fatalf("%s: %d formats", kind, len(bounds))
		}
		for name, reference := range bounds {
			if testing.Short() && r.IntN(3) > 0 {
				continue
			}
			f := ByName(name)
			b := make([]byte, len(x)/f.Elements()*f.Bytes())
			if err := f.QuantizeWeighted(b, x, ones(f)); err != nil {
				t.Fatal(err)
			}
			y := poisoned(len(x))
			if err := f.Dequantize(y, b); err != nil {
				t.Fatal(err)
			}
			if got := rmse(x, y); !(got <= 1.02*reference) {
				t.Errorf("%s, %v: rmse %.6g, the reference's is %.6g", kind, f, got, reference)
			}
		}
	}
}
