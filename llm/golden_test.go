package llm

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// golden has the results of llama.cpp for a model.
type golden struct {
	Tokens []int32
	Logits [][]float32
	Mean   []float32 `json:"mean_embedding"`
}

// goldens maps the models of testdata to the tolerance of their results, relative to the greatest
// result. It is larger for models with GELU, because llama.cpp uses a table of half floats.
var goldens = map[string]float64{
	"llama": 1e-5, "llama-tied": 1e-5, "llama-ropefreqs": 1e-5, "llama-linear": 1e-5, "llama-moe": 1e-5,
	"qwen2": 1e-5, "qwen3": 1e-5, "gemma3": 2e-4, "bert": 2e-4,
}

func readGolden(t testing.TB, name string) *golden {
	t.Helper()
	var g golden
	if err := json.NewDecoder(bytes.NewReader(testutil.Unzip(t, "testdata/"+name+".json.gz"))).Decode(&g); err != nil {
		t.Fatal(err)
	}
	return &g
}

// modelFile opens a model of testdata.
func modelFile(t testing.TB, name string) *gguf.File {
	t.Helper()
	f, err := gguf.NewBytes(testutil.Unzip(t, "testdata/"+name+".gguf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func openCPU(t testing.TB) *device.Device {
	t.Helper()
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

func openModel(t testing.TB, dev *device.Device, name string, o Options) *Model {
	t.Helper()
	m, err := Load(t.Context(), dev, modelFile(t, name), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// worst returns the greatest difference, relative to the greatest element of want.
func worst(got, want []float32, greatest float64) float64 {
	d := 0.0
	for i := range want {
		if e := math.Abs(float64(got[i]) - float64(want[i])); !(e <= d) {
			d = e
		}
	}
	if len(got) != len(want) {
		d = math.Inf(1)
	}
	return d / greatest
}

func greatest(rows ...[]float32) float64 {
	g := 0.0
	for _, r := range rows {
		for _, v := range r {
			g = max(g, math.Abs(float64(v)))
		}
	}
	return g
}

// cuts are ways to feed 40 tokens: in one chunk, in several, and token by token.
var cuts = [][]int{{40}, {17, 1, 22}, slices.Repeat([]int{1}, 40)}

// matches computes a golden model, fed in several ways, and with all logits at once.
func matches(t *testing.T, dev *device.Device, name string, typ op.DType, tol float64, cuts ...[]int) {
	t.Helper()
	g := readGolden(t, name)
	m := openModel(t, dev, name, Options{Context: 100, Cache: 256, Chunk: 64, CacheType: typ})
	if g.Mean != nil {
		y, err := m.pooled(t.Context(), g.Tokens)
		if err != nil {
			t.Fatal(err)
		}
		if d := worst(y, g.Mean, greatest(g.Mean)); d > tol {
			t.Errorf("embedding is off by %.3g, not within %g", d, tol)
		}
		return
	}
	scale := greatest(g.Logits...)
	for _, cut := range cuts {
		s := m.NewSession()
		at := 0
		for _, n := range cut {
			if err := s.Feed(t.Context(), g.Tokens[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
			if d := worst(s.Logits(), g.Logits[at-1], scale); d > tol {
				t.Fatalf("fed %v: logits after token %d are off by %.3g, not within %g", cut, at-1, d, tol)
			}
		}
		_ = s.Close()
	}
	if len(cuts) == 1 {
		return // the device is slow
	}
	s := m.NewSession()
	defer s.Close()
	err := s.Evaluate(t.Context(), g.Tokens, func(i int, logits []float32) error {
		if d := worst(logits, g.Logits[i], scale); d > tol {
			t.Fatalf("evaluated: logits after token %d are off by %.3g, not within %g", i, d, tol)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestGolden(t *testing.T) {
	dev := openCPU(t)
	for name, tol := range goldens {
		t.Run(name, func(t *testing.T) { matches(t, dev, name, op.F32, tol, cuts...) })
		t.Run(name+" q8_0", func(t *testing.T) { matches(t, dev, name, op.Q8_0, max(tol, 3e-2), cuts...) })
	}
}

// onDevice computes models of each kind, in chunks and by single tokens, and in a cache of
// half floats.
func onDevice(t *testing.T, dev *device.Device) {
	names := []string{"llama", "llama-moe", "qwen3", "gemma3", "bert"}
	if testing.Short() {
		rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		names = names[:3]
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { matches(t, dev, name, op.F32, max(goldens[name], 5e-5), []int{12, 1, 1, 16}) })
	}
	t.Run("halves", func(t *testing.T) { matches(t, dev, "llama", op.F16, 3e-3, []int{12, 1, 1, 16}) })
	t.Run("q8_0", func(t *testing.T) { matches(t, dev, "llama", op.Q8_0, 3e-2, []int{12, 1, 1, 16}) })
	t.Run("choice", func(t *testing.T) { choosesOn(t, dev) })
	t.Run("prompts", func(t *testing.T) { packsOn(t, dev) })
}
