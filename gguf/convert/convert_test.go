package convert_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/gguf/convert"
	"github.com/rayo-go/rayo/safetensors"
)

// weights are tensors of F32 by name.
type weights map[string]array

type array struct {
	shape []int64
	data  []float32
}

func random(shape ...int64) array {
	n := int64(1)
	for _, d := range shape {
		n *= d
	}
	a := array{shape, make([]float32, n)}
	for i := range a.data {
		a.data[i] = float32(rand.NormFloat64())
	}
	return a
}

// file returns a safetensors file of the tensors.
func (w weights) file(t testing.TB, typ safetensors.DType) []byte {
	t.Helper()
	var infos []safetensors.TensorInfo
	for _, name := range slices.Sorted(maps.Keys(w)) {
		infos = append(infos, safetensors.TensorInfo{Name: name, Type: typ, Shape: w[name].shape})
	}
	var b bytes.Buffer
	f, err := safetensors.NewWriter(&b, nil, infos)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		dst, err := f.Tensor(i.Name)
		if err == nil {
			raw := make([]byte, len(w[i.Name].data)*typ.Size())
			if err = typ.Format().Quantize(raw, w[i.Name].data); err == nil {
				_, err = dst.Write(raw)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// decoder returns the weights of a model of two layers of 4 heads of 8, 2 for keys, and a width of 24.
func decoder() weights {
	w := weights{"model.embed_tokens.weight": random(10, 24), "model.norm.weight": random(24), "lm_head.weight": random(10, 24)}
	for l := range 2 {
		p := fmt.Sprintf("model.layers.%d.", l)
		maps.Copy(w, weights{
			p + "input_layernorm.weight": random(24), p + "post_attention_layernorm.weight": random(24),
			p + "self_attn.q_proj.weight": random(32, 24), p + "self_attn.k_proj.weight": random(16, 24),
			p + "self_attn.v_proj.weight": random(16, 24), p + "self_attn.o_proj.weight": random(24, 32),
			p + "mlp.gate_proj.weight": random(40, 24), p + "mlp.up_proj.weight": random(40, 24), p + "mlp.down_proj.weight": random(24, 40),
		})
	}
	return w
}

const decoderConfig = `"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
	"intermediate_size": 40, "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "vocab_size": 10`

// folder returns a folder with a configuration and weights.
func folder(t testing.TB, config string, w weights) fstest.MapFS {
	return fstest.MapFS{"config.json": {Data: []byte("{" + config + "}")}, "model.safetensors": {Data: w.file(t, "F32")}}
}

// converted converts a folder and opens the result.
func converted(t testing.TB, folder fs.FS, o convert.Options) *gguf.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := convert.Folder(context.Background(), folder, path, o); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.CheckModel(); err != nil {
		t.Error(err)
	}
	return f
}

// floats returns the elements of a tensor, which has the extents.
func floats(t testing.TB, f *gguf.File, name string, dims ...int64) []float32 {
	t.Helper()
	x := f.Tensor(name)
	if x == nil || !slices.Equal(x.Dims, dims) {
		t.Fatalf("%s is %+v, want %v", name, x, dims)
		return nil
	}
	v := make([]float32, x.Elements())
	if err := x.Dequantize(v, 0); err != nil {
		t.Fatal(err)
	}
	return v
}

func wantFloats(t testing.TB, f *gguf.File, name string, want []float32, dims ...int64) {
	t.Helper()
	if got := floats(t, f, name, dims...); !slices.Equal(got, want) {
		t.Errorf("%s differs", name)
	}
}

// TestLlama checks that the scores of queries and keys are the same before and after, each with the rotary
// embedding of its file format, and that the other tensors do not change.
func TestLlama(t *testing.T) {
	w := decoder()
	f := converted(t, folder(t, `"model_type": "llama", `+decoderConfig, w), convert.Options{Name: "tiny"})
	for key, want := range map[string]float64{"context_length": 512, "embedding_length": 24, "block_count": 2, "feed_forward_length": 40, "attention.head_count": 4,
		"attention.head_count_kv": 2, "attention.key_length": 8, "rope.dimension_count": 8, "rope.freq_base": 500000, "vocab_size": 10} {
		v, ok := f.Hyper(key)
		got, _ := v.Float()
		if n, isInt := v.Uint(); isInt {
			got = float64(n)
		}
		if !ok || got != want {
			t.Errorf("%s is %v, want %v", key, v, want)
		}
	}
	if name, _ := f.Metadata().Text("general.name"); name != "tiny" {
		t.Errorf("name %q", name)
	}
	wantFloats(t, f, "token_embd.weight", w["model.embed_tokens.weight"].data, 24, 10)
	wantFloats(t, f, "output.weight", w["lm_head.weight"].data, 24, 10)
	wantFloats(t, f, "blk.1.attn_v.weight", w["model.layers.1.self_attn.v_proj.weight"].data, 24, 16)
	wantFloats(t, f, "blk.1.ffn_down.weight", w["model.layers.1.mlp.down_proj.weight"].data, 40, 24)
	wantFloats(t, f, "blk.0.ffn_norm.weight", w["model.layers.0.post_attention_layernorm.weight"].data, 24)

	x, y := random(24).data, random(24).data
	halves := func(i int) (int, int) { return i, i + 4 }
	neighbours := func(i int) (int, int) { return 2 * i, 2*i + 1 }
	before := scores(turned(w["model.layers.0.self_attn.q_proj.weight"].data, x, 17, halves), turned(w["model.layers.0.self_attn.k_proj.weight"].data, y, 3, halves))
	after := scores(turned(floats(t, f, "blk.0.attn_q.weight", 24, 32), x, 17, neighbours), turned(floats(t, f, "blk.0.attn_k.weight", 24, 16), y, 3, neighbours))
	for h := range before {
		if math.Abs(before[h]-after[h]) > 1e-4 {
			t.Errorf("head %d: score %v before and %v after", h, before[h], after[h])
		}
	}
}

// turned returns matrix·x in heads of 8, each rotated by a rotary embedding at a position.
func turned(matrix, x []float32, position float64, pair func(i int) (int, int)) []float64 {
	v := make([]float64, len(matrix)/len(x))
	for i := range matrix {
		v[i/len(x)] += float64(matrix[i]) * float64(x[i%len(x)])
	}
	for h := 0; h < len(v); h += 8 {
		for i := range 4 {
			a, b := pair(i)
			s, c := math.Sincos(position * math.Pow(500000, -float64(i)/4))
			v[h+a], v[h+b] = v[h+a]*c-v[h+b]*s, v[h+a]*s+v[h+b]*c
		}
	}
	return v
}

// scores returns the scores q·k of the four heads of queries. Heads 0 and 1 use the first head of
// keys, heads 2 and 3 the second.
func scores(q, k []float64) []float64 {
	s := make([]float64, 4)
	for i := range q {
		s[i/8] += q[i] * k[i/16*8+i%8]
	}
	return s
}

// TestVariants checks the differences between architectures: experts in one tensor, norms stored minus 1, types,
// tied embeddings, factors of rotary embeddings.
func TestVariants(t *testing.T) {
	t.Run("experts", func(t *testing.T) {
		w := decoder()
		var all []float32
		for l := range 2 {
			for x := range 3 {
				for name, shape := range map[string][]int64{"gate_proj": {5, 24}, "up_proj": {5, 24}, "down_proj": {24, 5}} {
					a := random(shape...)
					w[fmt.Sprintf("model.layers.%d.mlp.experts.%d.%s.weight", l, x, name)] = a
					if l == 1 && name == "down_proj" {
						all = append(all, a.data...)
					}
				}
			}
			for _, name := range []string{"gate", "up", "down"} {
				delete(w, fmt.Sprintf("model.layers.%d.mlp.%s_proj.weight", l, name))
			}
			w[fmt.Sprintf("model.layers.%d.mlp.gate.weight", l)] = random(3, 24)
		}
		f := converted(t, folder(t, `"model_type": "qwen3_moe", "num_experts": 3, "num_experts_per_tok": 2, "moe_intermediate_size": 5, `+decoderConfig, w), convert.Options{})
		wantFloats(t, f, "blk.1.ffn_down_exps.weight", all, 5, 24, 3)
		wantFloats(t, f, "blk.0.ffn_gate_inp.weight", w["model.layers.0.mlp.gate.weight"].data, 24, 3)
		wantFloats(t, f, "blk.0.attn_q.weight", w["model.layers.0.self_attn.q_proj.weight"].data, 24, 32)
		if v, _ := f.Hyper("expert_count"); !v.Equal(gguf.NewValue(uint32(3))) {
			t.Errorf("expert_count is %v", v)
		}
	})
	t.Run("norms less 1, tied", func(t *testing.T) {
		w := decoder()
		for l := range 2 {
			w[fmt.Sprintf("model.layers.%d.pre_feedforward_layernorm.weight", l)] = random(24)
			w[fmt.Sprintf("model.layers.%d.post_feedforward_layernorm.weight", l)] = random(24)
		}
		f := converted(t, folder(t, `"model_type": "gemma3_text", "tie_word_embeddings": true, "sliding_window": 64, `+decoderConfig, w), convert.Options{Type: block.F16})
		want := slices.Clone(w["model.layers.1.post_attention_layernorm.weight"].data)
		for i := range want {
			want[i]++
		}
		wantFloats(t, f, "blk.1.post_attention_norm.weight", want, 24)
		if f.Tensor("output.weight") != nil || f.Tensor("token_embd.weight").Type != block.F16 || f.Tensor("output_norm.weight").Type != block.F32 {
			t.Error("tied embeddings or types are wrong")
		}
		if n, _ := f.Metadata().Uint("general.file_type"); n != 1 {
			t.Errorf("general.file_type is %d, want 1 for F16", n)
		}
	})
	t.Run("factors", func(t *testing.T) {
		scaling := `"rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64}, `
		f := converted(t, folder(t, `"model_type": "llama", `+scaling+decoderConfig, decoder()), convert.Options{})
		v := floats(t, f, "rope_freqs.weight", 4)
		if v[0] != 1 || v[3] != 8 || !slices.IsSorted(v) {
			t.Errorf("factors %v", v)
		}
	})
	t.Run("linear", func(t *testing.T) {
		f := converted(t, folder(t, `"model_type": "qwen2", "rope_scaling": {"type": "linear", "factor": 4}, `+decoderConfig, decoder()), convert.Options{})
		if x, _ := f.Metadata().Float("qwen2.rope.scaling.factor"); x != 4 {
			t.Errorf("factor %v", x)
		}
	})
	t.Run("smollm3", func(t *testing.T) {
		f := converted(t, folder(t, `"model_type": "smollm3", "no_rope_layer_interval": 4, `+decoderConfig, decoder()), convert.Options{})
		if f.Architecture() != "smollm3" {
			t.Errorf("architecture %q", f.Architecture())
		}
		err := convert.Folder(t.Context(), folder(t, `"model_type": "smollm3", "no_rope_layer_interval": 3, `+decoderConfig, decoder()), filepath.Join(t.TempDir(), "x.gguf"), convert.Options{})
		if !errors.Is(err, convert.ErrConfig) || !strings.Contains(err.Error(), "no_rope_layer_interval") {
			t.Errorf("another interval: %v", err)
		}
	})
	t.Run("without the word model", func(t *testing.T) {
		w := weights{}
		for name, a := range decoder() {
			w[strings.TrimPrefix(name, "model.")] = a
		}
		f := converted(t, folder(t, `"model_type": "qwen3", `+decoderConfig, w), convert.Options{})
		wantFloats(t, f, "token_embd.weight", w["embed_tokens.weight"].data, 24, 10)
		wantFloats(t, f, "blk.1.attn_q.weight", w["layers.1.self_attn.q_proj.weight"].data, 24, 32)
	})
	t.Run("nomic", func(t *testing.T) {
		w := weights{"embeddings.word_embeddings.weight": random(10, 8), "embeddings.token_type_embeddings.weight": random(2, 8), "emb_ln.weight": random(8), "emb_ln.bias": random(8),
			"encoder.layers.0.attn.Wqkv.weight": random(24, 8), "encoder.layers.0.attn.out_proj.weight": random(8, 8), "encoder.layers.0.norm1.weight": random(8), "encoder.layers.0.norm1.bias": random(8),
			"encoder.layers.0.mlp.fc11.weight": random(12, 8), "encoder.layers.0.mlp.fc12.weight": random(12, 8), "encoder.layers.0.mlp.fc2.weight": random(8, 12),
			"encoder.layers.0.norm2.weight": random(8), "encoder.layers.0.norm2.bias": random(8)}
		config := `"model_type": "nomic_bert", "n_embd": 8, "n_layer": 1, "n_head": 2, "n_inner": 12, "n_positions": 64, "max_trained_positions": 32, "layer_norm_epsilon": 1e-12, "rotary_emb_base": 1000, "vocab_size": 10`
		f := converted(t, folder(t, config, w), convert.Options{})
		if x, _ := f.Metadata().Float("nomic-bert.rope.freq_base"); x != 1000 || f.NumTensors() != len(w) {
			t.Errorf("base %v, %d tensors", x, f.NumTensors())
		}
		wantFloats(t, f, "blk.0.ffn_gate.weight", w["encoder.layers.0.mlp.fc12.weight"].data, 8, 12)
		wantFloats(t, f, "blk.0.attn_qkv.weight", w["encoder.layers.0.attn.Wqkv.weight"].data, 8, 24)
	})
	t.Run("several files of BF16", func(t *testing.T) {
		w := decoder()
		one := weights{"lm_head.weight": w["lm_head.weight"]}
		delete(w, "lm_head.weight")
		files := fstest.MapFS{"config.json": {Data: []byte(`{"model_type": "qwen3", ` + decoderConfig + "}")}, "a.safetensors": {Data: w.file(t, "BF16")}, "b.safetensors": {Data: one.file(t, "BF16")},
			"model.safetensors.index.json": {Data: []byte(`{"weight_map": {"lm_head.weight": "b.safetensors", "model.norm.weight": "a.safetensors"}}`)}}
		f := converted(t, files, convert.Options{})
		if f.Tensor("output.weight").Type != block.BF16 || f.NumTensors() != len(w)+1 {
			t.Errorf("%v, %d tensors", f.Tensor("output.weight").Type, f.NumTensors())
		}
		if n, err := convert.Size(files); err != nil || n <= 0 {
			t.Errorf("Size: %d, %v", n, err)
		}
	})
}

// TestTokenizers checks the three kinds of tokenizers.
func TestTokenizers(t *testing.T) {
	base := func(tokenizer, config string) fstest.MapFS {
		f := folder(t, `"model_type": "qwen2", "bos_token_id": 7, "eos_token_id": [8, 9], `+decoderConfig, decoder())
		f["tokenizer.json"] = &fstest.MapFile{Data: []byte(tokenizer)}
		f["tokenizer_config.json"] = &fstest.MapFile{Data: []byte(config)}
		return f
	}
	text := func(f *gguf.File, key string) string {
		v, _ := f.Metadata().Get("tokenizer." + key)
		if v.Kind() == gguf.Array {
			b, _ := v.MarshalJSON()
			return string(b)
		}
		return v.String()
	}
	check := func(t *testing.T, f *gguf.File, want map[string]string) {
		t.Helper()
		for key, w := range want {
			if got := text(f, key); got != w {
				t.Errorf("%s is %s, want %s", key, got, w)
			}
		}
	}
	t.Run("byte pairs", func(t *testing.T) {
		f := converted(t, base(`{"added_tokens": [{"id": 8, "content": "<end>", "special": true}, {"id": 9, "content": "<tool>", "special": false}],
			"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "ByteLevel", "use_regex": true}]},
			"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}`,
			`{"eos_token": "<end>", "add_bos_token": false, "chat_template": [{"name": "tool", "template": "x"}, {"name": "default", "template": "y"}]}`), convert.Options{})
		check(t, f, map[string]string{"ggml.model": `gpt2`, "ggml.pre": "smollm", "ggml.merges": `["a b"]`, "ggml.bos_token_id": "7", "ggml.eos_token_id": "8", "chat_template": "y",
			"ggml.tokens": `["a","b","ab","[PAD3]","[PAD4]","[PAD5]","[PAD6]","[PAD7]","<end>","<tool>"]`, "ggml.token_type": "[1,1,1,5,5,5,5,5,3,4]", "ggml.add_bos_token": "false"})
	})
	t.Run("byte fallback", func(t *testing.T) {
		f := converted(t, base(`{"model": {"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "vocab": {"<unk>": 0, "<0x0A>": 1, "▁a": 2}, "merges": [["▁", "a"]]}}`, `{}`), convert.Options{})
		check(t, f, map[string]string{"ggml.model": "llama", "ggml.scores": "[0,-1,-2,-3,-4,-5,-6,-7,-8,-9]", "ggml.token_type": "[2,6,1,5,5,5,5,5,5,5]"})
	})
	t.Run("words", func(t *testing.T) {
		f := converted(t, base(`{"added_tokens": [{"id": 0, "content": "[CLS]", "special": true}], "model": {"type": "WordPiece", "unk_token": "[UNK]", "vocab": {"[CLS]": 0, "[UNK]": 1, "run": 2, "##ning": 3}}}`, `{"cls_token": {"content": "[CLS]"}}`), convert.Options{})
		check(t, f, map[string]string{"ggml.model": "bert", "ggml.token_type": "[3,2,1,1,5,5,5,5,5,5]", "ggml.cls_token_id": "0", "ggml.bos_token_id": "0"})
	})
}

// TestRefused checks that a folder that cannot be converted gives a typed error with the position of the mistake,
// and no file.
func TestRefused(t *testing.T) {
	good := func() fstest.MapFS { return folder(t, `"model_type": "llama", `+decoderConfig, decoder()) }
	config := func(old, new string) func(f fstest.MapFS) {
		return func(f fstest.MapFS) {
			f["config.json"] = &fstest.MapFile{Data: []byte(strings.Replace(string(f["config.json"].Data), old, new, 1))}
		}
	}
	tensors := func(change func(w weights)) func(f fstest.MapFS) {
		return func(f fstest.MapFS) {
			w := decoder()
			change(w)
			f["model.safetensors"] = &fstest.MapFile{Data: w.file(t, "F32")}
		}
	}
	tokenizer := func(text string) func(f fstest.MapFS) {
		return func(f fstest.MapFS) { f["tokenizer.json"] = &fstest.MapFile{Data: []byte(text)} }
	}
	for name, c := range map[string]struct {
		change func(f fstest.MapFS)
		want   error
		text   string
	}{
		"no config":         {func(f fstest.MapFS) { delete(f, "config.json") }, fs.ErrNotExist, "config.json"},
		"no weights":        {func(f fstest.MapFS) { delete(f, "model.safetensors") }, fs.ErrNotExist, "model.safetensors"},
		"config cut":        {config("}", ""), convert.ErrConfig, "config.json"},
		"architecture":      {config(`"llama"`, `"mamba"`), convert.ErrArchitecture, "mamba"},
		"no width":          {config(`"hidden_size"`, `"x"`), convert.ErrConfig, "hidden_size"},
		"width of text":     {config(`"hidden_size": 24`, `"hidden_size": "24"`), convert.ErrConfig, "hidden_size"},
		"no heads":          {config(`"num_attention_heads": 4`, `"num_attention_heads": 0`), convert.ErrConfig, "num_attention_heads"},
		"half a head":       {config(`"num_attention_heads": 4`, `"num_attention_heads": 4.5`), convert.ErrConfig, "num_attention_heads"},
		"heads of keys":     {config(`"num_key_value_heads": 2`, `"num_key_value_heads": 3`), convert.ErrConfig, "heads of keys"},
		"many layers":       {config(`"num_hidden_layers": 2`, `"num_hidden_layers": 2000000000`), convert.ErrConfig, "num_hidden_layers"},
		"scaling":           {config(`"vocab_size"`, `"rope_scaling": {"type": "new"}, "vocab_size"`), convert.ErrConfig, "rope_scaling"},
		"scaling by 0":      {config(`"vocab_size"`, `"rope_scaling": {"type": "linear", "factor": 0}, "vocab_size"`), convert.ErrConfig, "factor"},
		"unknown tensor":    {tensors(func(w weights) { w["model.layers.0.self_attn.z_proj.weight"] = random(2) }), convert.ErrTensor, "z_proj"},
		"rows":              {tensors(func(w weights) { w["model.layers.0.self_attn.q_proj.weight"] = random(30, 24) }), convert.ErrTensor, "30"},
		"a scalar":          {tensors(func(w weights) { w["model.layers.0.self_attn.q_proj.weight"] = random() }), convert.ErrTensor, "rows"},
		"an expert missing": {tensors(func(w weights) { w["model.layers.0.mlp.experts.1.up_proj.weight"] = random(2, 2) }), convert.ErrTensor, "experts"},
		"weights cut":       {func(f fstest.MapFS) { f["model.safetensors"].Data = f["model.safetensors"].Data[:500] }, safetensors.ErrTruncated, "model.safetensors"},
		"outside": {func(f fstest.MapFS) {
			f["model.safetensors.index.json"] = &fstest.MapFile{Data: []byte(`{"weight_map": {"x": "../x"}}`)}
		}, convert.ErrConfig, "../x"},
		"unigram":           {tokenizer(`{"model": {"type": "Unigram", "vocab": [["a", 0.5]]}}`), convert.ErrTokenizer, "Unigram"},
		"number of a token": {tokenizer(`{"model": {"type": "BPE", "vocab": {"a": 4000000000}}}`), convert.ErrTokenizer, "4000000000"},
		"token below 0":     {tokenizer(`{"model": {"type": "BPE", "vocab": {"a": -1}}}`), convert.ErrTokenizer, "-1"},
		"merge":             {tokenizer(`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": [7]}}`), convert.ErrTokenizer, "merge 0"},
		"pre-tokenizer":     {tokenizer(`{"pre_tokenizer": {"type": "New"}, "model": {"type": "BPE", "vocab": {"a": 1}}}`), convert.ErrTokenizer, "New"},
	} {
		t.Run(name, func(t *testing.T) {
			f := good()
			c.change(f)
			dir := t.TempDir()
			err := convert.Folder(context.Background(), f, filepath.Join(dir, "model.gguf"), convert.Options{})
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v and %q", err, c.want, c.text)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("%v is left", left[0].Name())
			}
		})
	}
	if err := convert.Folder(context.Background(), good(), "x.gguf", convert.Options{Type: block.Q4_0}); !errors.Is(err, convert.ErrConfig) {
		t.Errorf("Q4_0: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := convert.Folder(ctx, good(), filepath.Join(t.TempDir(), "x.gguf"), convert.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzFolder converts folders with any configuration and tokenizer. Nothing may panic, and errors must be typed.
func FuzzFolder(f *testing.F) {
	f.Add([]byte(`{"model_type": "llama", `+decoderConfig+`}`), []byte(`{"model": {"type": "BPE", "vocab": {"a": 1}, "merges": ["a a"]}}`))
	f.Add([]byte(`{"model_type": "bert", "hidden_size": 4}`), []byte(`{"model": {"type": "WordPiece"}}`))
	model := decoder().file(f, "F32")
	f.Fuzz(func(t *testing.T, config, tokenizer []byte) {
		files := fstest.MapFS{"config.json": {Data: config}, "tokenizer.json": {Data: tokenizer}, "model.safetensors": {Data: model}}
		_ = convert.Folder(t.Context(), files, filepath.Join(t.TempDir(), "m.gguf"), convert.Options{})
	})
}
