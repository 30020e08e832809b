package convert_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/gguf/convert"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/safetensors"
)

// TestRealFolder converts a published folder and quantises the result.
func TestRealFolder(t *testing.T) {
	dir := testutil.Model(t, testutil.MiniLM)
	f := converted(t, os.DirFS(dir), convert.Options{})
	pooling, _ := f.Hyper("pooling_type")
	layers, _ := f.Hyper("block_count")
	tokens, _ := f.Metadata().Get("tokenizer.ggml.tokens")
	if f.Architecture() != "bert" || layers.String() != "6" || pooling.String() != "1" || tokens.Len() != 30522 || f.Parameters() < 22e6 {
		t.Errorf("%s of %v layers, %v pooling, %d tokens, %d parameters", f.Architecture(), layers, pooling, tokens.Len(), f.Parameters())
	}
	src, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	for name, from := range map[string]string{
		"token_embd.weight":     "embeddings.word_embeddings.weight",
		"blk.5.ffn_down.weight": "encoder.layer.5.output.dense.weight",
		"blk.0.attn_q.bias":     "encoder.layer.0.attention.self.query.bias",
	} {
		x := src.Tensor(from)
		if x == nil {
			t.Fatalf("no tensor %s", from)
		}
		want := make([]float32, x.Elements())
		if err := x.Float32(want, 0); err != nil {
			t.Fatal(err)
		}
		dims := slices.Clone(x.Shape)
		slices.Reverse(dims)
		wantFloats(t, f, name, want, dims...)
	}
	r, _ := gguf.RecipeOf("Q8_0")
	path := filepath.Join(t.TempDir(), "q8.gguf")
	if err := gguf.Quantize(context.Background(), path, f, r, gguf.QuantizeOptions{}); err != nil {
		t.Fatal(err)
	}
	q, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	err = q.CheckModel()
	for x := range q.Tensors() {
		err = errors.Join(err, x.Check())
	}
	if err != nil {
		t.Error(err)
	}
	if x := q.Tensor("blk.0.attn_q.weight"); x == nil || x.Type != block.Q8_0 {
		t.Errorf("a matrix has become %+v, not a quantised tensor", x)
	}
}
