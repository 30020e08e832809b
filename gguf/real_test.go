package gguf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestRealModels opens published models and checks every block of them. Some rows of each are
// converted to every type and back to F32: the tensors are then the same, and their numbers near.
func TestRealModels(t *testing.T) {
	for _, c := range []struct {
		file, architecture, pre string
		parameters              int64
		tensors, tokens         int
		types                   []block.Format
	}{
		{testutil.Gemma3, "gemma3", "", 268098176, 236, 262144, []block.Format{block.F32, block.Q5_0, block.Q8_0, block.Q4_K, block.Q6_K}},
		{testutil.SmolLM2, "llama", "smollm", 134515008, 272, 49152, []block.Format{block.Q4_1, block.F32, block.Q8_0}},
	} {
		t.Run(c.file, func(t *testing.T) {
			f, err := Open(testutil.Model(t, c.file))
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if err := f.CheckModel(); err != nil {
				t.Error(err)
			}
			tokens, _ := f.Metadata().Get("tokenizer.ggml.tokens")
			pre, _ := f.Metadata().Text("tokenizer.ggml.pre")
			if f.Architecture() != c.architecture || f.Parameters() != c.parameters || f.NumTensors() != c.tensors || tokens.Len() != c.tokens || c.pre != "" && pre != c.pre {
				t.Errorf("%s, %d parameters, %d tensors, %d tokens, %q; want %+v", f.Architecture(), f.Parameters(), f.NumTensors(), tokens.Len(), pre, c)
			}
			for x := range f.Tensors() {
				if err := x.Check(); err != nil {
					t.Errorf("%s: %v", x.Name, err)
				}
				if !slices.Contains(c.types, x.Type) {
					t.Errorf("%s is of type %v", x.Name, x.Type)
				}
			}
			part := excerpt(t, f)
			for _, r := range Recipes() {
				thereAndBack(t, part, r)
			}
		})
	}
}

// excerpt returns some rows of the first layer, the embeddings and the last norm of a model.
func excerpt(t *testing.T, f *File) *File {
	t.Helper()
	meta := &Metadata{}
	for k, v := range f.Metadata().All() {
		if !strings.HasPrefix(k, "tokenizer.") {
			if err := meta.Set(k, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	var infos []TensorInfo
	data := map[string][]byte{}
	for x := range f.Tensors() {
		if n := Layer(x.Name); n > 0 {
			continue
		}
		info := TensorInfo{x.Name, x.Type, slices.Clone(x.Dims)}
		if len(info.Dims) > 1 {
			info.Dims[1] = min(info.Dims[1], 8)
		}
		size, err := info.Size()
		if err != nil {
			t.Fatal(err)
		}
		data[x.Name] = make([]byte, size)
		if _, err := x.ReadAt(data[x.Name], 0); err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	part, err := NewBytes(write(t, meta, infos, data))
	if err != nil {
		t.Fatal(err)
	}
	return part
}

// listed writes the names and extents of the tensors of a file.
func listed(f *File) string {
	var b strings.Builder
	for x := range f.Tensors() {
		fmt.Fprintln(&b, x.Name, x.Dims)
	}
	return b.String()
}

// quantized returns the file that results from applying a recipe to another file.
func quantized(t *testing.T, f *File, r Recipe) *File {
	t.Helper()
	o := QuantizeOptions{Pure: true, Importance: map[string][]float32{}}
	for x := range f.Tensors() {
		o.Importance[x.Name] = slices.Repeat([]float32{1}, int(x.Dims[0]))
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := Quantize(context.Background(), path, f, r, o); err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	g, err := Open(path)
	if err != nil {
		t.Fatalf("%s: %v", r.Name, err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// thereAndBack converts a file by a recipe, and the result back to F32.
func thereAndBack(t *testing.T, f *File, r Recipe) {
	t.Helper()
	there := quantized(t, f, r)
	plain, _ := RecipeOf("F32")
	back := quantized(t, there, plain)
	if listed(back) != listed(f) {
		t.Errorf("%s and back: the tensors are\n%s\nwere\n%s", r.Name, listed(back), listed(f))
	}
	for x := range f.Tensors() {
		was, is := make([]float32, x.Elements()), make([]float32, x.Elements())
		if err := errors.Join(x.Dequantize(was, 0), there.Tensor(x.Name).Dequantize(is, 0)); err != nil {
			t.Fatal(err)
		}
		exact := make([]byte, 4*len(is))
		if err := block.F32.Quantize(exact, is); err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, len(exact))
		if _, err := back.Tensor(x.Name).ReadAt(raw, 0); err != nil || !bytes.Equal(raw, exact) {
			t.Errorf("%s: %s as F32 has other numbers, %v", r.Name, x.Name, err)
		}
		var d, s float64
		for i := range is {
			d += math.Pow(float64(is[i]-was[i]), 2)
			s += math.Pow(float64(was[i]), 2)
		}
		// One bit a weight leaves 0.6 of normal numbers.
		if there.Tensor(x.Name).Type == x.Type && d > 0.01*s || !(d <= 0.6*s) {
			t.Errorf("%s: %s of type %v is off by %.3f", r.Name, x.Name, there.Tensor(x.Name).Type, math.Sqrt(d/s))
		}
	}
}
