package gguf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Architecture returns the model's architecture, for example "llama", or "" if the key is missing.
func (f *File) Architecture() string {
	s, _ := f.meta.Text(keyArchitecture)
	return s
}

// Hyper returns the value of a key of the architecture: in a model of the architecture
// llama, Hyper("block_count") is the value of llama.block_count.
func (f *File) Hyper(key string) (v Value, ok bool) {
	return f.meta.Get(f.Architecture() + "." + key)
}

// Parameters returns the number of elements of all tensors.
func (f *File) Parameters() int64 {
	n := int64(0)
	for _, t := range f.tensors {
		n += t.Elements()
	}
	return n
}

// Layer returns the number of the layer in a tensor's name: 7 for blk.7.attn_q.weight. It
// returns -1 for other names.
func Layer(name string) int {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return -1
	}
	digits, _, ok := strings.Cut(rest, ".")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// CheckModel checks the metadata for errors that would break a program that runs the model: sizes
// that contradict each other or the tensors, inconsistent parts of a vocabulary, numbers out of
// range. The error joins a [FormatError] for each finding. It does not report missing metadata, and
// reads no tensor: see [Tensor.Check].
func (f *File) CheckModel() error {
	c := modelCheck{f: f}
	for _, check := range []func(*modelCheck){
		(*modelCheck).sizes, (*modelCheck).heads, (*modelCheck).numbers, (*modelCheck).layers,
		(*modelCheck).embedding, (*modelCheck).vocabulary, (*modelCheck).merges,
	} {
		check(&c)
	}
	return errors.Join(c.found...)
}

// Bounds of hyperparameters. They are far beyond any model, and products of two of
// them do not overflow.
const (
	maxLayers = 1 << 14
	maxWidth  = 1 << 24
	maxTokens = 1 << 31
)

type modelCheck struct {
	f     *File
	found []error
}

// add records a finding about a key.
func (c *modelCheck) add(key, format string, args ...any) {
	name := ""
	if len(c.f.parts) > 0 {
		name = c.f.parts[0].name
	}
	c.found = append(c.found, &FormatError{File: name, Field: strconv.Quote(key), Offset: c.f.places[key],
		Err: fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)})
}

// addTensor records a finding about a tensor.
func (c *modelCheck) addTensor(t *Tensor, format string, args ...any) {
	c.found = append(c.found, &FormatError{File: t.part.name, Field: fmt.Sprintf("tensor %q", shortened(t.Name)), Offset: t.at,
		Err: fmt.Errorf("%w: "+format, append([]any{ErrFormat}, args...)...)})
}

// hyper returns a key of the architecture and its value, an integer. For an array the
// value is the greatest element.
func (c *modelCheck) hyper(name string) (key string, n uint64, ok bool) {
	key = c.f.Architecture() + "." + name
	v, there := c.f.meta.Get(key)
	if !there {
		return key, 0, false
	}
	if v.Kind() == Array {
		for _, e := range v.All() {
			if k, isInt := e.Uint(); isInt {
				n, ok = max(n, k), true
			}
		}
		return key, n, ok
	}
	n, ok = v.Uint()
	if !ok {
		c.add(key, "%v of type %v is no count", v, v.kind)
	}
	return key, n, ok
}

// sizes checks the range of each count.
func (c *modelCheck) sizes() {
	for _, s := range []struct {
		name        string
		least, most uint64
	}{
		{"block_count", 1, maxLayers}, {"embedding_length", 1, maxWidth}, {"feed_forward_length", 0, maxWidth},
		{"context_length", 1, maxTokens}, {"attention.head_count", 1, maxWidth}, {"attention.head_count_kv", 1, maxWidth},
		{"attention.key_length", 1, maxWidth}, {"attention.value_length", 1, maxWidth},
		{"rope.dimension_count", 0, maxWidth}, {"expert_count", 0, maxLayers}, {"expert_used_count", 0, maxLayers},
		{"vocab_size", 1, maxTokens}, {"attention.sliding_window", 0, maxTokens},
	} {
		if key, n, ok := c.hyper(s.name); ok && (n < s.least || n > s.most) {
			c.add(key, "%d is not in %d … %d", n, s.least, s.most)
		}
	}
}

// heads checks that the sizes of attention are consistent.
func (c *modelCheck) heads() {
	_, heads, hasHeads := c.hyper("attention.head_count")
	keyKV, kv, hasKV := c.hyper("attention.head_count_kv")
	if hasHeads && hasKV && kv > 0 && heads%kv != 0 {
		c.add(keyKV, "%d does not divide the %d heads", kv, heads)
	}
	_, width, hasWidth := c.hyper("embedding_length")
	_, size, hasSize := c.hyper("attention.key_length")
	if !hasSize && hasHeads && hasWidth && heads > 0 {
		size, hasSize = width/heads, true
	}
	if key, rope, ok := c.hyper("rope.dimension_count"); ok && (rope%2 != 0 || hasSize && rope > size) {
		c.add(key, "%d is odd or more than the head size %d", rope, size)
	}
	_, experts, hasExperts := c.hyper("expert_count")
	if key, used, ok := c.hyper("expert_used_count"); ok && hasExperts && used > experts {
		c.add(key, "%d of %d experts", used, experts)
	}
	if key, window, ok := c.hyper("attention.sliding_window"); ok && window == 0 {
		if _, pattern := c.f.Hyper("attention.sliding_window_pattern"); pattern {
			c.add(key, "0, and there is a pattern of layers with a window")
		}
	}
}

// numbers checks the range of numbers that are not counts.
func (c *modelCheck) numbers() {
	for _, name := range []string{"attention.layer_norm_rms_epsilon", "attention.layer_norm_epsilon", "rope.freq_base", "rope.scaling.factor"} {
		v, ok := c.f.Hyper(name)
		if !ok {
			continue
		}
		if x, ok := v.Float(); !ok || !(x > 0) || math.IsInf(x, 0) {
			c.add(c.f.Architecture()+"."+name, "%v of type %v is no positive number", v, v.kind)
		}
	}
}

// layers compares the number of layers with the tensors.
func (c *modelCheck) layers() {
	key, n, ok := c.hyper("block_count")
	if !ok || len(c.f.tensors) == 0 || n > maxLayers {
		return
	}
	there := make([]bool, n)
	for _, t := range c.f.tensors {
		i := Layer(t.Name)
		if i >= int(n) {
			c.addTensor(t, "%q is %d", key, n)
			return
		}
		if i >= 0 {
			there[i] = true
		}
	}
	for i, ok := range there {
		if !ok {
			c.add(key, "%d, and layer %d has no tensor", n, i)
			return
		}
	}
}

// embedding compares the width and the vocabulary with the tensor of embeddings.
func (c *modelCheck) embedding() {
	t := c.f.Tensor("token_embd.weight")
	if t == nil {
		return
	}
	length, rows := t.Row()
	if key, n, ok := c.hyper("embedding_length"); ok && n != uint64(length) {
		c.addTensor(t, "rows of %d, and %q is %d", length, key, n)
	}
	if key, n, ok := c.hyper("vocab_size"); ok && n != uint64(rows) {
		c.addTensor(t, "%d rows, and %q is %d", rows, key, n)
	}
	if v, ok := c.f.meta.Get("tokenizer.ggml.tokens"); ok && int64(v.Len()) != rows {
		c.addTensor(t, "%d rows for %d tokens", rows, v.Len())
	}
	if out := c.f.Tensor("output.weight"); out != nil {
		if l, r := out.Row(); l != length || r != rows {
			c.addTensor(out, "%v, and %q has %v", out.Dims, t.Name, t.Dims)
		}
	}
	if norm := c.f.Tensor("output_norm.weight"); norm != nil {
		if l, r := norm.Row(); l != length || r != 1 {
			c.addTensor(norm, "%v for a width of %d", norm.Dims, length)
		}
	}
}

// vocabulary checks the arrays of the tokenizer.
func (c *modelCheck) vocabulary() {
	const prefix = "tokenizer.ggml."
	tokens, ok := c.f.meta.Get(prefix + "tokens")
	if !ok {
		return
	}
	if tokens.kind != Array || tokens.elem != String {
		c.add(prefix+"tokens", "it is no array of strings")
		return
	}
	for name, kind := range map[string]Kind{"scores": Float32, "token_type": Int32} {
		v, ok := c.f.meta.Get(prefix + name)
		switch {
		case !ok:
		case v.kind != Array || v.elem != kind && !(kind == Int32 && v.elem == Uint32):
			c.add(prefix+name, "it is no array of %v", kind)
		case v.n != tokens.n:
			c.add(prefix+name, "%d for %d tokens", v.n, tokens.n)
		}
	}
	for _, name := range []string{"bos", "eos", "eot", "eom", "unknown", "seperator", "padding", "cls", "mask"} {
		key := prefix + name + "_token_id"
		if v, ok := c.f.meta.Get(key); ok {
			if id, ok := v.Uint(); !ok || id >= uint64(tokens.n) {
				c.add(key, "%v is none of %d tokens", v, tokens.n)
			}
		}
	}
	for i, v := range tokens.All() {
		if len(v.data) > 1<<20 {
			c.add(prefix+"tokens", "token %d has %d bytes", i, len(v.data))
			return
		}
	}
}

// merges checks the pairs of a byte-pair encoding, and byte tokens.
func (c *modelCheck) merges() {
	model, _ := c.f.meta.Text("tokenizer.ggml.model")
	merges, ok := c.f.meta.Get("tokenizer.ggml.merges")
	if model == "gpt2" && !ok {
		c.add("tokenizer.ggml.merges", "it is missing, and the tokenizer is gpt2")
	}
	for i, v := range merges.All() {
		if at := strings.IndexByte(v.data[min(1, len(v.data)):], ' '); at < 0 {
			c.add("tokenizer.ggml.merges", "element %d, %q, is no pair", i, shortened(v.data))
			break
		}
	}
	tokens, _ := c.f.meta.Get("tokenizer.ggml.tokens")
	types, _ := c.f.meta.Get("tokenizer.ggml.token_type")
	kinds, _ := Slice[int32](types)
	const byteToken = 6
	for i, v := range tokens.All() {
		if i >= len(kinds) || kinds[i] != byteToken {
			continue
		}
		hex, ok := strings.CutPrefix(v.data, "<0x")
		if _, err := strconv.ParseUint(strings.TrimSuffix(hex, ">"), 16, 8); !ok || err != nil || len(v.data) != 6 {
			c.add("tokenizer.ggml.tokens", "byte token %d is %q", i, shortened(v.data))
			return
		}
	}
}

// The kinds of tensors, by purpose.
var tensorKinds = []struct {
	name string
	has  func(name string) bool
}{
	{"norms", func(s string) bool { return strings.Contains(s, "norm") }},
	{"embeddings", func(s string) bool {
		return strings.HasPrefix(s, "token_") || strings.HasPrefix(s, "position_") || strings.HasPrefix(s, "per_layer_token")
	}},
	{"experts", func(s string) bool { return strings.Contains(s, "_exps") }},
	{"attention", func(s string) bool { return strings.Contains(s, "attn_") }},
	{"feed forward", func(s string) bool { return strings.Contains(s, "ffn_") }},
	{"output", func(s string) bool { return strings.HasPrefix(s, "output") }},
}

// KindOf returns the kind of a tensor by its name: norms, embeddings, experts, attention, feed
// forward, output or other.
func KindOf(name string) string {
	for _, k := range tensorKinds {
		if k.has(name) {
			return k.name
		}
	}
	return "other"
}
