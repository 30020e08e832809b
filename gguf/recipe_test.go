package gguf

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// layered returns a file of some layers with random float32 weights.
func layered(t *testing.T, layers, width int64) *File {
	m := &Metadata{}
	for k, v := range map[string]Value{keyArchitecture: NewValue("llama"), "llama.block_count": NewValue(uint32(layers)),
		"llama.attention.head_count": NewValue(uint32(8)), "llama.attention.head_count_kv": NewValue(uint32(2))} {
		if err := m.Set(k, v); err != nil {
			t.Fatal(err)
		}
	}
	infos := []TensorInfo{{"token_embd.weight", block.F32, []int64{width, 8}}}
	for i := range layers {
		for _, name := range []string{"attn_norm", "attn_q", "attn_v", "attn_output", "ffn_down", "ffn_gate_inp"} {
			dims := []int64{width, 4}
			if name == "attn_norm" {
				dims = dims[:1]
			}
			infos = append(infos, TensorInfo{"blk." + string(rune('0'+i)) + "." + name + ".weight", block.F32, dims})
		}
	}
	r := testutil.Rand(t)
	data := map[string][]byte{}
	for _, i := range infos {
		n, _ := i.Size()
		x := make([]float32, n/4)
		for j := range x {
			x[j] = float32(r.NormFloat64())
		}
		data[i.Name] = make([]byte, n)
		if err := block.F32.Quantize(data[i.Name], x); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewBytes(write(t, m, infos, data))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRecipes(t *testing.T) {
	f := layered(t, 8, 512)
	for _, c := range []struct {
		recipe, tensor string
		want           block.Format
	}{
		{"q4_k_m", "token_embd.weight", block.Q6_K}, {"Q4_K", "blk.0.attn_q.weight", block.Q4_K},
		{"Q4_K_M", "blk.0.attn_v.weight", block.Q6_K}, {"Q4_K_M", "blk.1.attn_v.weight", block.Q4_K},
		{"Q4_K_M", "blk.3.ffn_down.weight", block.Q6_K}, {"Q4_K_M", "blk.7.ffn_down.weight", block.Q6_K},
		{"Q4_K_S", "blk.0.attn_v.weight", block.Q4_K}, {"Q4_K_M", "blk.0.attn_norm.weight", block.F32},
		{"Q4_K_M", "blk.0.ffn_gate_inp.weight", block.F32}, {"Q3_K_M", "blk.1.attn_v.weight", block.Q5_K},
		{"Q3_K_M", "blk.2.attn_v.weight", block.Q4_K}, {"Q2_K", "blk.2.attn_v.weight", block.Q4_K},
		{"Q2_K", "blk.2.attn_output.weight", block.Q3_K}, {"Q8_0", "token_embd.weight", block.Q8_0},
	} {
		r, ok := RecipeOf(c.recipe)
		if !ok {
			t.Fatalf("no recipe %s", c.recipe)
		}
		if got := r.TypeFor(f, f.Tensor(c.tensor), false); got != c.want {
			t.Errorf("%s: %s becomes %v, want %v", c.recipe, c.tensor, got, c.want)
		}
	}
	narrow := layered(t, 1, 96)
	odd := layered(t, 1, 72)
	for _, r := range Recipes() {
		if back, ok := RecipeByFileType(uint64(r.FileType)); !ok || back.Name != r.Name {
			t.Errorf("%s has the file type of %s", r.Name, back.Name)
		}
		for _, f := range []*File{narrow, odd} {
			x := f.Tensor("blk.0.attn_q.weight")
			if got := r.TypeFor(f, x, true); x.Dims[0]%int64(got.Elements()) != 0 {
				t.Errorf("%s: rows of %d become %v", r.Name, x.Dims[0], got)
			}
		}
	}
	if _, ok := RecipeOf("Q9"); ok {
		t.Error("there is a recipe Q9")
	}
}

// TestQuantizeFile converts a file to every type, with importances for the types that need them, and back. The numbers
// must be near the original ones.
func TestQuantizeFile(t *testing.T) {
	f := layered(t, 2, 256)
	for _, r := range Recipes() {
		path := filepath.Join(t.TempDir(), "out.gguf")
		read := int64(0)
		o := QuantizeOptions{Pure: true, Progress: func(n int64) { read += n }}
		err := Quantize(context.Background(), path, f, r, o)
		if r.Base.Layout().Weighted {
			if !errors.Is(err, block.ErrImportance) {
				t.Errorf("%s without importances: %v", r.Name, err)
			}
			o.Importance = map[string][]float32{}
			for x := range f.Tensors() {
				o.Importance[x.Name] = make([]float32, x.Dims[0])
				for i := range o.Importance[x.Name] {
					o.Importance[x.Name][i] = 1
				}
			}
			read = 0
			err = Quantize(context.Background(), path, f, r, o)
		}
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		all := int64(0)
		for x := range f.Tensors() {
			all += x.Size()
		}
		if read != all {
			t.Errorf("%s: %d bytes read of %d", r.Name, read, all)
		}
		g, err := Open(path)
		if err != nil {
			t.Fatalf("%s: %v", r.Name, err)
		}
		if n, _ := g.Metadata().Uint("general.file_type"); n != uint64(r.FileType) {
			t.Errorf("%s: file type %d", r.Name, n)
		}
		for x := range g.Tensors() {
			got, want := make([]float32, x.Elements()), make([]float32, x.Elements())
			if err := errors.Join(x.Dequantize(got, 0), f.Tensor(x.Name).Dequantize(want, 0)); err != nil {
				t.Fatal(err)
			}
			var d, s float64
			for i := range got {
				d += math.Pow(float64(got[i]-want[i]), 2)
				s += math.Pow(float64(want[i]), 2)
			}
			if x.Type == block.F32 && d != 0 || !(d <= 0.5*s) {
				t.Errorf("%s: %s of type %v is off by %.3f", r.Name, x.Name, x.Type, math.Sqrt(d/s))
			}
		}
		g.Close()
	}
}

// TestQuantizeCanceled checks that a cancelled conversion leaves no files.
func TestQuantizeCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	dir := t.TempDir()
	r, _ := RecipeOf("Q8_0")
	o := QuantizeOptions{Progress: func(int64) { cancel() }}
	if err := Quantize(ctx, filepath.Join(dir, "out.gguf"), layered(t, 2, 256), r, o); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if names, _ := os.ReadDir(dir); len(names) != 0 {
		t.Errorf("left: %v", names)
	}
}
