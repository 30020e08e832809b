package convert

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"math"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
)

// config is config.json, with the architecture that it names.
type config struct {
	values map[string]any
	arch   *architecture
	folder fs.FS
}

// readConfig reads config.json. For a model of text and pictures it reads only text_config.
func readConfig(folder fs.FS) (*config, error) {
	c := &config{folder: folder}
	if err := readJSON(folder, "config.json", &c.values); err != nil {
		return nil, err
	}
	if text, ok := c.values["text_config"].(map[string]any); ok {
		c.values = text
	}
	kind, _ := c.values["model_type"].(string)
	a, ok := architectures[kind]
	if !ok {
		return nil, fmt.Errorf("config.json: model_type %q, expected one of %v: %w", kind, architectureNames(), ErrArchitecture)
	}
	c.arch = a
	return c, nil
}

// get returns the value of the first key that is present. It also searches rope_parameters, where newer
// versions store the parameters of rotary embeddings.
func (c *config) get(keys ...string) (any, bool) {
	rope, _ := c.values["rope_parameters"].(map[string]any)
	for _, k := range keys {
		if v, ok := c.values[k]; ok && v != nil {
			return v, true
		}
		if v, ok := rope[k]; ok && v != nil {
			return v, true
		}
	}
	return nil, false
}

// number returns the number under the first key that is present, or missing if none is.
func (c *config) number(missing float64, keys ...string) (float64, error) {
	v, ok := c.get(keys...)
	if !ok {
		return missing, nil
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, fmt.Errorf("config.json: %s is %v, expected a number: %w", keys[0], v, ErrConfig)
	}
	x, err := n.Float64()
	if err != nil {
		return 0, fmt.Errorf("config.json: %s is %v, expected a number: %w", keys[0], v, ErrConfig)
	}
	return x, nil
}

// count returns a positive integer below 2^31, or missing if no key is present.
func (c *config) count(missing int, keys ...string) (int, error) {
	x, err := c.number(float64(missing), keys...)
	if err == nil && (x != math.Trunc(x) || x < 0 || x > math.MaxInt32 || x == 0 && missing > 0) {
		err = fmt.Errorf("config.json: %s is %v, expected a positive integer: %w", keys[0], x, ErrConfig)
	}
	return int(x), err
}

// need is like count, but one of the keys must be present.
func (c *config) need(keys ...string) (int, error) {
	if _, ok := c.get(keys...); !ok {
		return 0, fmt.Errorf("config.json has no %s: %w", keys[0], ErrConfig)
	}
	return c.count(1, keys...)
}

// sizes are the extents that tensors must have.
type sizes struct {
	width, layers, heads, keyHeads, head, experts int
}

func (c *config) sizes() (s sizes, err error) {
	for _, f := range []struct {
		dst  *int
		keys []string
	}{{&s.width, []string{"hidden_size", "n_embd"}}, {&s.layers, []string{"num_hidden_layers", "n_layer"}}, {&s.heads, []string{"num_attention_heads", "n_head"}}} {
		if *f.dst, err = c.need(f.keys...); err != nil {
			return s, err
		}
	}
	if s.layers > 10_000 {
		return s, fmt.Errorf("config.json: num_hidden_layers is %d, expected at most 10000: %w", s.layers, ErrConfig)
	}
	if s.keyHeads, err = c.count(s.heads, "num_key_value_heads"); err != nil {
		return s, err
	}
	if s.head, err = c.count(max(s.width/s.heads, 1), "head_dim"); err != nil {
		return s, err
	}
	if s.heads%s.keyHeads != 0 || s.head%2 != 0 {
		return s, fmt.Errorf("config.json: %d query heads of size %d and %d heads of keys, expected a multiple of the heads of keys and an even size: %w", s.heads, s.head, s.keyHeads, ErrConfig)
	}
	s.experts, err = c.count(0, "num_local_experts", "num_experts")
	return s, err
}

// metadata returns the metadata of the model without the tokenizer.
func (c *config) metadata(o Options) (*gguf.Metadata, error) {
	m := &gguf.Metadata{}
	s, err := c.sizes()
	if err != nil {
		return nil, err
	}
	name := o.Name
	if name == "" {
		name, _ = c.values["_name_or_path"].(string)
	}
	set(m, "general.architecture", c.arch.name)
	if name != "" {
		set(m, "general.name", name)
	}
	set(m, "general.type", "model")
	for key, want := range c.arch.fixed {
		if x, err := c.number(want, key); err != nil || x != want {
			return nil, fmt.Errorf("config.json: %s is %v, expected %v for %s: %w", key, c.values[key], want, c.arch.name, ErrConfig)
		}
	}
	for _, k := range hyperparameters {
		if !k.of(c.arch) {
			continue
		}
		v, ok, err := k.value(c, s)
		if err != nil {
			return nil, err
		}
		if ok {
			set(m, c.arch.name+"."+k.key, v)
		}
	}
	return m, c.scaling(m)
}

// fileTypes are the numbers of general.file_type.
var fileTypes = map[block.Format]uint32{block.F32: 0, block.F16: 1, block.BF16: 32}

// fileType returns the number for the type that most elements have.
func fileType(list []tensor) uint32 {
	count := map[block.Format]int64{}
	most := block.F32
	for _, t := range list {
		for _, p := range t.parts {
			if p.src != nil {
				count[t.Type] += p.src.Elements()
			}
		}
		if count[t.Type] > count[most] {
			most = t.Type
		}
	}
	return fileTypes[most]
}

// set stores a value under a valid key.
func set(m *gguf.Metadata, key string, v any) {
	var x gguf.Value
	switch v := v.(type) {
	case string:
		x = gguf.NewValue(v)
	case bool:
		x = gguf.NewValue(v)
	case uint32:
		x = gguf.NewValue(v)
	case float32:
		x = gguf.NewValue(v)
	case []string:
		x = gguf.NewArray(v)
	case []float32:
		x = gguf.NewArray(v)
	case []int32:
		x = gguf.NewArray(v)
	default:
		panic(fmt.Sprintf("convert: %s has a %T", key, v))
	}
	_ = m.Set(key, x) // keys are valid
}

// scaling stores how rotary embeddings are extended beyond the context of the training. For type llama3 the
// method frequencies computes a tensor instead.
func (c *config) scaling(m *gguf.Metadata) error {
	r, kind := c.ropeScaling()
	switch kind {
	case "", "default", "llama3", "longrope", "su":
		return nil
	case "linear", "yarn":
	default:
		return fmt.Errorf("config.json: rope_scaling of type %q, expected linear, yarn, llama3 or longrope: %w", kind, ErrConfig)
	}
	factor, err := r.number(0, "factor")
	if err != nil || factor <= 0 {
		return fmt.Errorf("config.json: rope_scaling has factor %v, expected a number above 0: %w", r.values["factor"], ErrConfig)
	}
	set(m, c.arch.name+".rope.scaling.type", kind)
	set(m, c.arch.name+".rope.scaling.factor", float32(factor))
	if n, err := r.count(0, "original_max_position_embeddings"); err == nil && n > 0 {
		set(m, c.arch.name+".rope.scaling.original_context_length", uint32(n))
	}
	return nil
}

// ropeScaling returns the object under rope_scaling or rope_parameters, and its type.
func (c *config) ropeScaling() (*config, string) {
	for _, key := range []string{"rope_scaling", "rope_parameters"} {
		r, ok := c.values[key].(map[string]any)
		if !ok {
			continue
		}
		for _, k := range []string{"rope_type", "type"} {
			if s, ok := r[k].(string); ok {
				return &config{values: r}, s
			}
		}
	}
	return &config{}, ""
}

// frequencies returns the divisors of the frequencies of a head for scaling of type llama3, or nil for other types.
func (c *config) frequencies(head int) ([]float32, error) {
	r, kind := c.ropeScaling()
	if kind != "llama3" {
		return nil, nil
	}
	base, err := c.number(10000, "rope_theta")
	p := [4]float64{8, 1, 4, 8192}
	for i, k := range []string{"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"} {
		if err == nil {
			p[i], err = r.number(p[i], k)
		}
	}
	if err != nil {
		return nil, err
	}
	factor, low, high, context := p[0], p[1], p[2], p[3]
	if !(base > 1 && factor > 0 && low > 0 && high > low && context > 0) {
		return nil, fmt.Errorf("config.json: rope_scaling has factor %v, frequencies %v to %v, context %v, and rope_theta %v; expected numbers above 0, ascending frequencies, and rope_theta above 1: %w", factor, low, high, context, base, ErrConfig)
	}
	f := make([]float32, head/2)
	for i := range f {
		length := 2 * math.Pi * math.Pow(base, 2*float64(i)/float64(head))
		switch {
		case length < context/high:
			f[i] = 1
		case length > context/low:
			f[i] = float32(factor)
		default:
			smooth := (context/length - low) / (high - low)
			f[i] = float32(1 / ((1-smooth)/factor + smooth))
		}
	}
	return f, nil
}
