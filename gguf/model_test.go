package gguf

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
)

// tiny returns a valid model.
func tiny(t *testing.T) (*Metadata, []TensorInfo) {
	m := &Metadata{}
	for _, kv := range []struct {
		key string
		v   Value
	}{
		{keyArchitecture, NewValue("llama")},
		{"llama.block_count", NewValue(uint32(2))}, {"llama.embedding_length", NewValue(uint32(64))},
		{"llama.context_length", NewValue(uint32(128))}, {"llama.vocab_size", NewValue(uint32(4))},
		{"llama.attention.head_count", NewValue(uint32(4))}, {"llama.attention.head_count_kv", NewValue(uint64(2))},
		{"llama.rope.dimension_count", NewValue(uint32(16))}, {"llama.attention.layer_norm_rms_epsilon", NewValue(float32(1e-5))},
		{"llama.expert_count", NewValue(uint32(4))}, {"llama.expert_used_count", NewValue(uint32(2))},
		{"tokenizer.ggml.model", NewValue("llama")}, {"tokenizer.ggml.tokens", NewArray([]string{"a", "b", "<0x0A>", "d"})},
		{"tokenizer.ggml.scores", NewArray([]float32{1, 2, 3, 4})}, {"tokenizer.ggml.token_type", NewArray([]int32{1, 1, 6, 1})},
		{"tokenizer.ggml.merges", NewArray([]string{"a b"})}, {"tokenizer.ggml.bos_token_id", NewValue(uint32(3))},
	} {
		if err := m.Set(kv.key, kv.v); err != nil {
			t.Fatal(err)
		}
	}
	return m, []TensorInfo{
		{"token_embd.weight", block.F32, []int64{64, 4}}, {"blk.0.attn_q.weight", block.F32, []int64{64, 64}},
		{"blk.1.attn_q.weight", block.F32, []int64{64, 64}}, {"output_norm.weight", block.F32, []int64{64}},
	}
}

// TestCheckModel damages one thing at a time.
func TestCheckModel(t *testing.T) {
	set := func(key string, v Value) func(*Metadata, *[]TensorInfo) {
		return func(m *Metadata, _ *[]TensorInfo) {
			if err := m.Set(key, v); err != nil {
				t.Fatal(err)
			}
		}
	}
	for want, damage := range map[string]func(*Metadata, *[]TensorInfo){
		"":                      func(*Metadata, *[]TensorInfo) {},
		"attention.head_count":  set("llama.attention.head_count", NewValue(uint32(0))),
		"head_count_kv":         set("llama.attention.head_count_kv", NewValue(uint32(3))),
		`head_count_kv" `:       set("llama.attention.head_count_kv", NewValue(uint32(0))),
		"block_count":           set("llama.block_count", NewValue(uint32(1<<31))),
		"layer 2":               set("llama.block_count", NewValue(uint32(3))),
		"blk.1.attn_q":          set("llama.block_count", NewValue(uint32(1))),
		"no count":              set("llama.block_count", NewValue("2")),
		"rows of 64":            set("llama.embedding_length", NewValue(uint32(128))),
		"is odd":                set("llama.rope.dimension_count", NewValue(uint32(15))),
		"rope.dimension_count":  set("llama.rope.dimension_count", NewValue(uint32(18))),
		"scores":                set("tokenizer.ggml.scores", NewArray([]float32{1})),
		"array of f32":          set("tokenizer.ggml.scores", NewArray([]float64{1, 2, 3, 4})),
		"array of i32":          set("tokenizer.ggml.token_type", NewArray([]uint8{1, 1, 6, 1})),
		"bos_token_id":          set("tokenizer.ggml.bos_token_id", NewValue(uint32(4))),
		"no pair":               set("tokenizer.ggml.merges", NewArray([]string{"ab"})),
		`byte token 2 is "<0xZ`: set("tokenizer.ggml.tokens", NewArray([]string{"a", "b", "<0xZZ>", "d"})),
		`byte token 2 is "<0x-`: set("tokenizer.ggml.tokens", NewArray([]string{"a", "b", "<0x-1>", "d"})),
		"4 rows for 5":          set("tokenizer.ggml.tokens", NewArray([]string{"a", "b", "<0x0A>", "d", "e"})),
		"NaN":                   set("llama.attention.layer_norm_rms_epsilon", NewValue(float32(math.NaN()))),
		"epsilon":               set("llama.attention.layer_norm_rms_epsilon", NewValue(float32(0))),
		"4 rows, and":           set("llama.vocab_size", NewValue(uint32(5))),
		"5 of 4 experts":        set("llama.expert_used_count", NewValue(uint32(5))),
		"context_length":        set("llama.context_length", NewValue(uint64(1<<32-1))),
		"merges": func(m *Metadata, _ *[]TensorInfo) {
			m.Delete("tokenizer.ggml.merges")
			set("tokenizer.ggml.model", NewValue("gpt2"))(m, nil)
		},
		"output_norm":           func(_ *Metadata, x *[]TensorInfo) { (*x)[3].Dims = []int64{32} },
		"layer 1 has no tensor": func(_ *Metadata, x *[]TensorInfo) { *x = slices.Delete(*x, 2, 3) },
		"no array of strings":   set("tokenizer.ggml.tokens", NewArray([]int32{1, 2, 3, 4})),
		"pattern": func(m *Metadata, _ *[]TensorInfo) {
			set("llama.attention.sliding_window", NewValue(uint32(0)))(m, nil)
			set("llama.attention.sliding_window_pattern", NewValue(uint32(6)))(m, nil)
		},
		"attention.value_length": set("llama.attention.value_length", NewValue(int32(-1))),
	} {
		m, infos := tiny(t)
		damage(m, &infos)
		data := map[string][]byte{}
		for _, i := range infos {
			n, _ := i.Size()
			data[i.Name] = make([]byte, n)
		}
		f, err := open(write(t, m, infos, data))
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		err = f.CheckModel()
		if want == "" {
			if err != nil {
				t.Errorf("a sound model: %v", err)
			}
			continue
		}
		var e *FormatError
		if !errors.As(err, &e) || !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
			continue
		}
		if _, there := m.Get(strings.Trim(e.Field, `"`)); there && e.Offset == 0 {
			t.Errorf("%s: no offset in %v", want, e)
		}
	}
}
