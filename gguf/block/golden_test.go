package block

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// goldenType has llama.cpp's results for one format: see testdata/README.md.
type goldenType struct {
	ID       uint32  `json:"type_id"`
	Elements int     `json:"block_elems"`
	Bytes    int     `json:"block_bytes"`
	Random   hexText `json:"random_blocks_hex"`
	Values   hexText `json:"random_dequant_f32_le_hex"`
	Weighted hexText `json:"quantized_ones_imatrix_hex"`
	Back     hexText `json:"quantized_dequant_f32_le_hex"`
	Ref      hexText `json:"quantized_ref_hex"`
	RMSE     float64 `json:"rmse"`
}

type goldenFile struct {
	Input hexText               `json:"input_f32_le_hex"`
	Types map[string]goldenType `json:"types"`
}

type hexText []byte

func (h *hexText) UnmarshalText(text []byte) (err error) {
	*h, err = hex.DecodeString(string(text))
	return err
}

func (h hexText) floats() []float32 {
	x := make([]float32, len(h)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(h[4*i:]))
	}
	return x
}

func golden(t testing.TB) goldenFile {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatal(err)
	}
	delete(g.Types, "Q8_1") // activations only
	delete(g.Types, "Q8_K")
	if n := len(quantised()); len(g.Types) != n {
		t.Fatalf("golden values of %d formats, there are %d", len(g.Types), n)
	}
	return g
}

// quantised returns the formats that are not scalars.
func quantised() []Format {
	return slices.DeleteFunc(Formats(), Format.Scalar)
}

// poisoned returns n NaNs.
func poisoned(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

func TestLayoutsAreGGMLs(t *testing.T) {
	for name, want := range golden(t).Types {
		f := ByName(name)
		if f == Invalid || f.String() != name || f.ID() != want.ID || ByID(want.ID) != f || f.Elements() != want.Elements || f.Bytes() != want.Bytes {
			t.Errorf("%s: %v with id %d, %d elements, %d bytes; want %d, %d, %d", name, f, f.ID(), f.Elements(), f.Bytes(), want.ID, want.Elements, want.Bytes)
		}
	}
}

// TestDequantizeGolden compares bits: the values are those of llama.cpp's
// reference, on random blocks and on numbers that it quantized.
func TestDequantizeGolden(t *testing.T) {
	for name, g := range golden(t).Types {
		f := ByName(name)
		for _, c := range []struct{ blocks, values hexText }{{g.Random, g.Values}, {g.Weighted, g.Back}} {
			want := c.values.floats()
			got := poisoned(len(want))
			if err := f.Dequantize(got, c.blocks); err != nil {
				t.Fatal(err)
			}
			for i, w := range want {
				// +0 and -0 count as equal, because the reference may have either.
				if math.Float32bits(got[i]) != math.Float32bits(w) && !(got[i] == 0 && w == 0) {
					t.Fatalf("%s: element %d is %v, want %v", name, i, got[i], w)
				}
			}
		}
	}
}

// TestQuantizeGolden checks that formats without a search give llama.cpp's bytes, and that the error of every format
// with equal importances is within 2% of the error of llama.cpp's search.
func TestQuantizeGolden(t *testing.T) {
	file := golden(t)
	x := file.Input.floats()
	for name, g := range file.Types {
		f := ByName(name)
		for _, importance := range [][]float32{nil, equal(f)} {
			if importance == nil && f.Layout().Weighted {
				continue
			}
			b := bytes.Repeat([]byte{0xa5}, len(x)/f.Elements()*f.Bytes())
			if err := f.QuantizeWeighted(b, x, importance); err != nil {
				t.Fatal(err)
			}
			if importance == nil && simple[f] != nil {
				if !bytes.Equal(b, g.Ref) {
					t.Errorf("%s: other bytes than the reference", name)
				}
				continue
			}
			y := poisoned(len(x))
			if err := f.Dequantize(y, b); err != nil {
				t.Fatal(err)
			}
			if got, bound := rmse(x, y), 1.02*g.RMSE; !(got <= bound) {
				t.Errorf("%s: rmse %.6f, more than %.6f", name, got, bound)
			} else {
				t.Logf("%s: rmse %.6f, %.3f of the reference's", name, got, got/g.RMSE)
			}
		}
	}
}

// equal returns equal importances.
func equal(f Format) []float32 {
	return slices.Repeat([]float32{1}, f.Elements())
}

// ones returns equal importances for the formats that need some.
func ones(f Format) []float32 {
	if f.Layout().Weighted {
		return equal(f)
	}
	return nil
}

func rmse(x, y []float32) float64 {
	s := 0.0
	for i := range x {
		d := float64(x[i]) - float64(y[i])
		s += d * d
	}
	return math.Sqrt(s / float64(len(x)))
}
