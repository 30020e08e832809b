package convert

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
)

// architecture describes how the weights of a kind of model are named and stored.
type architecture struct {
	name string // in GGUF
	// names maps names of tensors in safetensors files to names in GGUF. N stands for the number of a layer
	// and X for the number of an expert. A name stands for the tensors NAME.weight and NAME.bias.
	names [][2]string
	// prefixes of names in safetensors files, which are removed before names are looked up.
	prefixes []string
	// ignored tensors are computed from other tensors, or belong to parts that are not converted.
	ignored []string
	// interleaved rotary embeddings: the rows of queries and keys are permuted.
	interleaved bool
	// the weights of norms are stored minus 1.
	shiftedNorms bool
	// features choose the hyperparameters.
	features feature
	// fixed has numbers that the keys of config.json must have, if they are present.
	fixed map[string]float64
}

// feature is a set of properties that have hyperparameters.
type feature uint

const (
	decoder feature = 1 << iota
	encoder
	experts
	window  // attention to the nearest keys in some layers
	softcap // bounded scores and logits
	local   // another base of rotary embeddings in layers with a window
	turned  // rotary embeddings, of all decoders and this kind of encoder
)

var decoderNames = [][2]string{
	{"model.embed_tokens", "token_embd"},
	{"model.norm", "output_norm"},
	{"lm_head", "output"},
	{"model.layers.N.input_layernorm", "blk.N.attn_norm"},
	{"model.layers.N.self_attn.q_proj", "blk.N.attn_q"},
	{"model.layers.N.self_attn.k_proj", "blk.N.attn_k"},
	{"model.layers.N.self_attn.v_proj", "blk.N.attn_v"},
	{"model.layers.N.self_attn.qkv_proj", "blk.N.attn_qkv"},
	{"model.layers.N.self_attn.o_proj", "blk.N.attn_output"},
	{"model.layers.N.self_attn.q_norm", "blk.N.attn_q_norm"},
	{"model.layers.N.self_attn.k_norm", "blk.N.attn_k_norm"},
	{"model.layers.N.post_attention_layernorm", "blk.N.ffn_norm"},
	{"model.layers.N.mlp.gate_proj", "blk.N.ffn_gate"},
	{"model.layers.N.mlp.up_proj", "blk.N.ffn_up"},
	{"model.layers.N.mlp.gate_up_proj", "blk.N.ffn_up"},
	{"model.layers.N.mlp.down_proj", "blk.N.ffn_down"},
}

var expertNames = [][2]string{
	{"model.layers.N.block_sparse_moe.gate", "blk.N.ffn_gate_inp"},
	{"model.layers.N.block_sparse_moe.experts.X.w1", "blk.N.ffn_gate_exps"},
	{"model.layers.N.block_sparse_moe.experts.X.w3", "blk.N.ffn_up_exps"},
	{"model.layers.N.block_sparse_moe.experts.X.w2", "blk.N.ffn_down_exps"},
	{"model.layers.N.mlp.gate", "blk.N.ffn_gate_inp"},
	{"model.layers.N.mlp.experts.X.gate_proj", "blk.N.ffn_gate_exps"},
	{"model.layers.N.mlp.experts.X.up_proj", "blk.N.ffn_up_exps"},
	{"model.layers.N.mlp.experts.X.down_proj", "blk.N.ffn_down_exps"},
}

// gemmaNames come before the names of other decoders, which use post_attention_layernorm for a different norm.
var gemmaNames = [][2]string{
	{"model.layers.N.post_attention_layernorm", "blk.N.post_attention_norm"},
	{"model.layers.N.pre_feedforward_layernorm", "blk.N.ffn_norm"},
	{"model.layers.N.post_feedforward_layernorm", "blk.N.post_ffw_norm"},
}

var bertNames = [][2]string{
	{"embeddings.word_embeddings", "token_embd"},
	{"embeddings.token_type_embeddings", "token_types"},
	{"embeddings.position_embeddings", "position_embd"},
	{"embeddings.LayerNorm", "token_embd_norm"},
	{"encoder.layer.N.attention.self.query", "blk.N.attn_q"},
	{"encoder.layer.N.attention.self.key", "blk.N.attn_k"},
	{"encoder.layer.N.attention.self.value", "blk.N.attn_v"},
	{"encoder.layer.N.attention.output.dense", "blk.N.attn_output"},
	{"encoder.layer.N.attention.output.LayerNorm", "blk.N.attn_output_norm"},
	{"encoder.layer.N.intermediate.dense", "blk.N.ffn_up"},
	{"encoder.layer.N.output.dense", "blk.N.ffn_down"},
	{"encoder.layer.N.output.LayerNorm", "blk.N.layer_output_norm"},
}

var nomicNames = [][2]string{
	{"embeddings.word_embeddings", "token_embd"},
	{"embeddings.token_type_embeddings", "token_types"},
	{"emb_ln", "token_embd_norm"},
	{"encoder.layers.N.attn.Wqkv", "blk.N.attn_qkv"},
	{"encoder.layers.N.attn.out_proj", "blk.N.attn_output"},
	{"encoder.layers.N.norm1", "blk.N.attn_output_norm"},
	{"encoder.layers.N.mlp.fc11", "blk.N.ffn_up"},
	{"encoder.layers.N.mlp.fc12", "blk.N.ffn_gate"},
	{"encoder.layers.N.mlp.fc2", "blk.N.ffn_down"},
	{"encoder.layers.N.norm2", "blk.N.layer_output_norm"},
}

var rotary = []string{"rotary_emb.inv_freq"}

var (
	llama = &architecture{name: "llama", names: slices.Concat(decoderNames, expertNames), ignored: rotary, interleaved: true, features: decoder | experts}
	gemma = func(name string, f feature) *architecture {
		return &architecture{name: name, names: slices.Concat(gemmaNames, decoderNames), prefixes: []string{"language_model."},
			ignored: slices.Concat(rotary, []string{"vision_tower.", "multi_modal_projector."}), shiftedNorms: true, features: decoder | window | f}
	}
	plain = func(name string, f feature) *architecture {
		return &architecture{name: name, names: slices.Concat(decoderNames, expertNames), ignored: rotary, features: decoder | f}
	}
)

// architectures has the architectures by model_type of config.json.
var architectures = map[string]*architecture{
	"llama":   llama,
	"mistral": llama,
	"mixtral": llama,
	"smollm3": {name: "smollm3", names: decoderNames, ignored: rotary, interleaved: true, features: decoder,
		fixed: map[string]float64{"no_rope_layer_interval": 4}},
	"qwen2":       plain("qwen2", 0),
	"qwen3":       plain("qwen3", 0),
	"qwen3_moe":   plain("qwen3moe", experts),
	"phi3":        plain("phi3", window),
	"gemma2":      gemma("gemma2", softcap),
	"gemma3_text": gemma("gemma3", local),
	"bert": {name: "bert", names: bertNames, prefixes: []string{"bert."}, features: encoder,
		ignored: []string{"position_ids", "pooler.", "cls."}},
	"nomic_bert": {name: "nomic-bert", names: nomicNames, prefixes: []string{"bert."}, features: encoder | turned,
		ignored: slices.Concat(rotary, []string{"pooler.", "cls."})},
}

func architectureNames() []string { return slices.Sorted(maps.Keys(architectures)) }

// hyperparameter is a key of the metadata.
type hyperparameter struct {
	key     string
	feature feature // only architectures with one of these features have the key
	value   func(c *config, s sizes) (v any, ok bool, err error)
}

func (h *hyperparameter) of(a *architecture) bool { return a.features&h.feature != 0 }

// whole returns a function that reads an integer of config.json under one of the keys. If needed is false, the
// integer may be missing.
func whole(needed bool, keys ...string) func(*config, sizes) (any, bool, error) {
	return func(c *config, _ sizes) (any, bool, error) {
		if _, ok := c.get(keys...); !ok && !needed {
			return nil, false, nil
		}
		n, err := c.need(keys...)
		return uint32(n), true, err
	}
}

// fraction returns a function that reads a number of config.json. missing is the default; NaN means no value.
func fraction(missing float64, keys ...string) func(*config, sizes) (any, bool, error) {
	return func(c *config, _ sizes) (any, bool, error) {
		x, err := c.number(missing, keys...)
		return float32(x), x == x && x != 0, err
	}
}

// size is one of the sizes.
func size(f func(s sizes) int) func(*config, sizes) (any, bool, error) {
	return func(_ *config, s sizes) (any, bool, error) {
		n := f(s)
		return uint32(n), n > 0, nil
	}
}

var hyperparameters = []hyperparameter{
	{"context_length", decoder | encoder, whole(true, "max_trained_positions", "max_position_embeddings")},
	{"embedding_length", decoder | encoder, size(func(s sizes) int { return s.width })},
	{"block_count", decoder | encoder, size(func(s sizes) int { return s.layers })},
	{"feed_forward_length", decoder | encoder, whole(true, "intermediate_size", "n_inner")},
	{"vocab_size", decoder, whole(false, "vocab_size")},
	{"attention.head_count", decoder | encoder, size(func(s sizes) int { return s.heads })},
	{"attention.head_count_kv", decoder, size(func(s sizes) int { return s.keyHeads })},
	{"attention.key_length", decoder, size(func(s sizes) int { return s.head })},
	{"attention.value_length", decoder, size(func(s sizes) int { return s.head })},
	{"attention.layer_norm_rms_epsilon", decoder, fraction(1e-6, "rms_norm_eps")},
	{"attention.layer_norm_epsilon", encoder, fraction(1e-12, "layer_norm_eps", "layer_norm_epsilon")},
	{"attention.causal", encoder, func(*config, sizes) (any, bool, error) { return false, true, nil }},
	{"pooling_type", encoder, (*config).pooling},
	{"rope.freq_base", decoder | turned, fraction(10000, "rope_theta", "rotary_emb_base")},
	{"rope.freq_base_swa", local, fraction(10000, "rope_local_base_freq")},
	{"rope.dimension_count", decoder, func(c *config, s sizes) (any, bool, error) {
		part, err := c.number(1, "partial_rotary_factor")
		if err == nil && !(part > 0 && part <= 1) {
			err = fmt.Errorf("config.json: partial_rotary_factor is %v, expected above 0 and at most 1: %w", part, ErrConfig)
		}
		return uint32(part * float64(s.head)), true, err
	}},
	{"rope.scaling.original_context_length", window, whole(false, "original_max_position_embeddings")},
	{"attention.sliding_window", window, whole(false, "sliding_window")},
	{"attn_logit_softcapping", softcap, fraction(50, "attn_logit_softcapping")},
	{"final_logit_softcapping", softcap, fraction(30, "final_logit_softcapping")},
	{"expert_count", experts, size(func(s sizes) int { return s.experts })},
	{"expert_used_count", experts, whole(false, "num_experts_per_tok")},
	{"expert_feed_forward_length", experts, whole(false, "moe_intermediate_size")},
}

// pooling returns how the vector of a text is computed from those of its tokens: 1 means their mean, 2 the
// first vector.
func (c *config) pooling(sizes) (any, bool, error) {
	var p struct {
		First bool `json:"pooling_mode_cls_token"`
	}
	if err := readJSON(c.folder, "1_Pooling/config.json", &p); err != nil && !isMissing(err) {
		return nil, false, err
	}
	if p.First {
		return uint32(2), true, nil
	}
	return uint32(1), true, nil
}

// target returns the name in GGUF of a tensor, its expert or -1, and whether the tensor is ignored. The name
// is "" for an unknown tensor.
func (a *architecture) target(name string) (to string, expert int, ignored bool) {
	for _, p := range a.prefixes {
		name = strings.TrimPrefix(name, p)
	}
	for _, part := range a.ignored {
		if strings.Contains(name, part) {
			return "", -1, true
		}
	}
	base, suffix := name, ""
	for _, s := range []string{".weight", ".bias", ".gamma", ".beta"} {
		if b, ok := strings.CutSuffix(name, s); ok {
			base, suffix = b, map[string]string{".gamma": ".weight", ".beta": ".bias"}[s]
			if suffix == "" {
				suffix = s
			}
		}
	}
	words := strings.Split(base, ".")
	for _, pair := range a.names {
		// In published embedding models, the names lack the prefix model.
		for _, pattern := range []string{pair[0], strings.TrimPrefix(pair[0], "model.")} {
			if layer, expert, ok := matches(strings.Split(pattern, "."), words); ok {
				return strings.Replace(pair[1], ".N.", "."+layer+".", 1) + suffix, expert, false
			}
		}
	}
	return "", -1, false
}

// matches reports whether words follow the pattern, and which layer and expert they name.
func matches(pattern, words []string) (layer string, expert int, ok bool) {
	expert = -1
	if len(pattern) != len(words) {
		return "", -1, false
	}
	for i, p := range pattern {
		n, isNumber := decimal(words[i])
		switch {
		case p == "N" && isNumber:
			layer = words[i]
		case p == "X" && isNumber:
			expert = n
		case p != words[i]:
			return "", -1, false
		}
	}
	return layer, expert, true
}

// decimal returns a number of at most five digits.
func decimal(s string) (n int, ok bool) {
	if s == "" || len(s) > 5 || s[0] == '0' && len(s) > 1 {
		return 0, false
	}
	for _, r := range s {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = 10*n + int(r-'0')
	}
	return n, true
}

func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
