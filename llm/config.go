package llm

import (
	"fmt"
	"math"

	"github.com/rayo-go/rayo/gguf"
)

// Config is the configuration of a model in its file's metadata.
type Config struct {
	Architecture string
	Layers       int
	Width        int // elements of a token between the layers
	Heads        int // heads of queries
	KVHeads      int // heads of keys and values
	KeyLength    int // elements of a head of queries and keys
	ValueLength  int // elements of a head of values
	FeedForward  int // width of the feed-forward part, or of one expert
	Vocabulary   int // tokens
	Context      int // positions that the model was trained for
	NormEpsilon  float32
	Causal       bool // tokens attend only to themselves and earlier tokens

	AttentionScale   float32 // factor of the scores; 0 means 1/sqrt(KeyLength)
	AttentionSoftcap float32 // 0 if unused
	LogitSoftcap     float32 // 0 if unused
	LogitScale       float32 // factor of logits, 0 if unused
	EmbeddingScale   float32 // factor of embeddings, 1 if unused
	// AttentionTemperature, if not 0, multiplies the scores of the query at position p by
	// 1 + AttentionTemperature·ln(1 + ⌊p/Rope.Scaling.OriginalContext⌋), as in Ministral 3.
	AttentionTemperature float32

	Window []int // for each layer: number of tokens that a token attends to, 0 for all

	Rope Rope

	Experts     int // 0 if unused
	ExpertsUsed int // experts for one token

	Pooling Pooling
}

// Rope has the parameters of rotary position embeddings.
type Rope struct {
	Dimensions  int     // rotated elements of a head
	Interleaved bool    // pairs are adjacent elements
	Base        float32 // base of the wavelengths
	BaseLocal   float32 // base in layers with a window
	Scaling     Scaling
}

// Scaling has the parameters of a context extension.
type Scaling struct {
	Type                  string // "linear", "yarn", "longrope", or "" if unused
	Factor                float32
	OriginalContext       int
	AttentionFactor       float32 // 0 if the file has no value
	ExtFactor             float32 // for yarn
	LogMultiplier         float32 // for yarn: reduces the growth of the magnitude with Factor; 0 if the file has no value
	BetaFast, BetaSlow    float32 // for yarn
	LocalLayersUnaffected bool    // layers with a window do not scale
}

// Pooling is the way in which an embedding is computed from the states of all tokens.
type Pooling int

// The kinds of pooling, with their numbers in files.
const (
	PoolingNone Pooling = iota // not specified; the mean of the tokens is used
	PoolingMean                // the mean of the tokens
	PoolingCLS                 // the first token
	PoolingLast                // the last token
)

// Upper limits of sizes. Without limits, products of sizes could overflow.
const (
	maxLayers     = 1024
	maxWidth      = 1 << 20
	maxVocabulary = 1 << 24
	maxContext    = 1 << 24 // the largest range of positions that float32 represents exactly
)

// configReader reads keys of one architecture. It keeps the first error.
type configReader struct {
	f    *gguf.File
	arch string
	err  error
}

func (r *configReader) fail(key, format string, args ...any) {
	if r.err == nil {
		r.err = &ConfigError{r.arch + "." + key, fmt.Sprintf(format, args...)}
	}
}

// count returns the value of a key: an integer from least to most, or an array whose elements are
// all the same such integer. If the key is absent, it returns missing; a negative missing means
// that the key is required.
func (r *configReader) count(key string, missing, least, most int) int {
	v, ok := r.f.Hyper(key)
	if !ok {
		if missing < 0 {
			r.fail(key, "missing")
			return least
		}
		return missing
	}
	if v.Kind() == gguf.Array {
		first, same := gguf.Value{}, v.Len() > 0
		for i, e := range v.All() {
			if i == 0 {
				first = e
			}
			same = same && e.Equal(first)
		}
		if !same {
			r.fail(key, "%v: numbers that differ from layer to layer are not supported", v)
			return least
		}
		v = first
	}
	n, ok := v.Uint()
	if !ok || n < uint64(least) || n > uint64(most) {
		r.fail(key, "%v: expected an integer from %d to %d", v, least, most)
		return least
	}
	return int(n)
}

// number returns the value of a key, a finite number, or missing if the key is absent.
func (r *configReader) number(key string, missing float32) float32 {
	v, ok := r.f.Hyper(key)
	if !ok {
		return missing
	}
	x, ok := v.Float()
	if !ok || math.IsNaN(x) || math.Abs(x) > math.MaxFloat32 {
		r.fail(key, "%v: expected a finite number", v)
		return missing
	}
	return float32(x)
}

// positive is number for values above 0.
func (r *configReader) positive(key string, missing float32) float32 {
	x := r.number(key, missing)
	if x <= 0 {
		r.fail(key, "%v: expected a number above 0", x)
		return 1
	}
	return x
}

// unknown are keys that change a model's computation in ways that this package does not support.
var unknown = []string{"attention.clamp_kqv", "residual_scale", "embedding_scale", "expert_shared_count", "expert_shared_feed_forward_length",
	"expert_weights_scale", "expert_group_count", "leading_dense_block_count", "use_parallel_residual", "attention.max_alibi_bias", "nextn_predict_layers"}

// known returns an error if a key requests an unsupported computation.
func (r *configReader) known(arch *architecture) {
	keys := unknown
	if !arch.temperature {
		keys = append([]string{"attention.temperature_scale"}, keys...)
	}
	for _, key := range keys {
		v, ok := r.f.Hyper(key)
		if x, number := v.Float(); ok && number && x == 0 {
			continue
		}
		if b, is := v.Bool(); ok && !(is && !b) {
			r.fail(key, "%v: not supported", v)
		}
	}
	if n := r.count("expert_gating_func", 1, 0, math.MaxInt32); n > 1 {
		r.fail("expert_gating_func", "%d: expected 1, softmax", n)
	}
}

// configOf reads the configuration from the metadata of a file.
func configOf(f *gguf.File) (Config, *architecture, error) {
	name := f.Architecture()
	if name == "" {
		return Config{}, nil, &ConfigError{"general.architecture", "missing"}
	}
	arch, ok := architectures[name]
	if !ok {
		return Config{}, nil, &ConfigError{"general.architecture", fmt.Sprintf("%q is not one of %v", name, Architectures())}
	}
	r := &configReader{f: f, arch: name}
	c := Config{Architecture: name, Causal: !arch.encoder}
	c.Layers = r.count("block_count", -1, 1, maxLayers)
	c.Width = r.count("embedding_length", -1, 1, maxWidth)
	c.Context = r.count("context_length", -1, 1, maxContext)
	c.FeedForward = r.count("feed_forward_length", -1, 1, maxWidth)
	r.known(arch)
	r.causal(&c, arch)
	r.heads(&c)
	r.experts(&c)
	c.NormEpsilon = r.positive(arch.epsilon(), 1e-5)
	c.AttentionScale = r.number("attention.scale", 0)
	c.AttentionSoftcap = max(0, r.number("attn_logit_softcapping", arch.attentionSoftcap))
	c.LogitSoftcap = max(0, r.number("final_logit_softcapping", arch.logitSoftcap))
	c.LogitScale = r.number("logit_scale", 0)
	if arch.temperature {
		c.AttentionTemperature = r.number("attention.temperature_scale", 0)
	}
	c.EmbeddingScale = 1
	if arch.scaleEmbedding {
		c.EmbeddingScale = float32(math.Sqrt(float64(c.Width)))
	}
	c.Pooling = Pooling(r.count("pooling_type", int(PoolingNone), 0, 4))
	if c.Pooling > PoolingLast {
		r.fail("pooling_type", "%d: ranking is not supported", c.Pooling)
	}
	r.windows(&c, arch)
	r.rope(&c, arch)
	if r.err != nil {
		return c, arch, r.err
	}
	if arch.adjust != nil {
		arch.adjust(&c)
	}
	return c, arch, nil
}

// causal reads whether tokens attend only to earlier tokens. Some embedders are decoders without this mask.
func (r *configReader) causal(c *Config, arch *architecture) {
	v, ok := r.f.Hyper("attention.causal")
	if !ok {
		return
	}
	b, is := v.Bool()
	switch {
	case !is:
		r.fail("attention.causal", "%v: expected a bool", v)
	case b && arch.encoder:
		r.fail("attention.causal", "true: not supported in architecture %s", c.Architecture)
	case !b && arch.period > 0:
		r.fail("attention.causal", "false: not supported in architecture %s, which has windows", c.Architecture)
	}
	c.Causal = b
}

func (r *configReader) heads(c *Config) {
	c.Heads = r.count("attention.head_count", -1, 1, maxWidth)
	c.KVHeads = r.count("attention.head_count_kv", c.Heads, 1, maxWidth)
	c.KeyLength = r.count("attention.key_length", c.Width/c.Heads, 1, maxWidth)
	c.ValueLength = r.count("attention.value_length", c.KeyLength, 1, maxWidth)
	if c.Heads%c.KVHeads != 0 {
		r.fail("attention.head_count_kv", "%d: expected a divisor of the number of heads, %d", c.KVHeads, c.Heads)
	}
	if int64(c.Heads)*int64(max(c.KeyLength, c.ValueLength)) > maxWidth {
		r.fail("attention.key_length", "%d heads of %d elements: expected at most %d elements in all", c.Heads, c.KeyLength, maxWidth)
	}
}

func (r *configReader) experts(c *Config) {
	c.Experts = r.count("expert_count", 0, 0, 1024)
	if c.Experts == 0 {
		return
	}
	c.ExpertsUsed = r.count("expert_used_count", -1, 1, c.Experts)
	c.FeedForward = r.count("expert_feed_forward_length", c.FeedForward, 1, maxWidth)
}

// windows reads the window of each layer.
func (r *configReader) windows(c *Config, arch *architecture) {
	c.Window = make([]int, c.Layers)
	window := r.count("attention.sliding_window", arch.window, 0, math.MaxInt32)
	if window == 0 || arch.period == 0 {
		return
	}
	period := arch.period
	v, ok := r.f.Hyper("attention.sliding_window_pattern")
	if ok && v.Kind() == gguf.Array {
		local, err := gguf.Slice[bool](v)
		if err != nil || len(local) < c.Layers {
			r.fail("attention.sliding_window_pattern", "%v: expected a truth value for each of %d layers", v, c.Layers)
			return
		}
		for i := range c.Window {
			if local[i] {
				c.Window[i] = window
			}
		}
		return
	}
	if ok {
		period = r.count("attention.sliding_window_pattern", period, 1, maxLayers)
	}
	for i := range c.Window {
		if i%period < period-1 {
			c.Window[i] = window
		}
	}
}

// rope reads the parameters of rope.
func (r *configReader) rope(c *Config, arch *architecture) {
	if arch.rope == noRope {
		return
	}
	p := &c.Rope
	p.Dimensions = r.count("rope.dimension_count", c.KeyLength, 2, maxWidth)
	if p.Dimensions%2 != 0 || p.Dimensions > c.KeyLength {
		r.fail("rope.dimension_count", "%d: expected an even number up to %d, the elements of a head", p.Dimensions, c.KeyLength)
	}
	p.Interleaved = arch.rope == interleavedRope
	p.Base = r.positive("rope.freq_base", 10000)
	p.BaseLocal = p.Base
	if arch.baseLocal != 0 {
		p.BaseLocal = r.positive("rope.freq_base_swa", arch.baseLocal)
	}
	s := &p.Scaling
	s.LocalLayersUnaffected = arch.baseLocal != 0
	s.Factor = r.factor()
	s.AttentionFactor = r.number("rope.scaling.attn_factor", 0)
	s.OriginalContext = r.count("rope.scaling.original_context_length", c.Context, 1, maxContext)
	if s.ExtFactor = r.number("rope.scaling.yarn_ext_factor", 1); s.ExtFactor < 0 {
		s.ExtFactor = 1 // some writers use -1 for an absent value
	}
	if s.LogMultiplier = r.number("rope.scaling.yarn_log_multiplier", 0); s.LogMultiplier < 0 {
		r.fail("rope.scaling.yarn_log_multiplier", "%v: expected 0 or more", s.LogMultiplier)
	}
	s.BetaFast = r.positive("rope.scaling.yarn_beta_fast", 32)
	s.BetaSlow = r.positive("rope.scaling.yarn_beta_slow", 1)
	s.Type = "linear"
	if v, ok := r.f.Hyper("rope.scaling.type"); ok {
		s.Type, _ = v.Text()
	}
	switch s.Type {
	case "none":
		s.Type, s.Factor = "", 1
	case "linear":
		if s.Factor == 1 {
			s.Type = ""
		}
	case "yarn", "longrope":
	default:
		r.fail("rope.scaling.type", "%q: expected none, linear, yarn or longrope", s.Type)
	}
}

// factor returns the factor of a context extension. 0 means 1, as in llama.cpp.
func (r *configReader) factor() float32 {
	for _, key := range []string{"rope.scaling.factor", "rope.scale_linear"} {
		if _, ok := r.f.Hyper(key); !ok {
			continue
		}
		if r.number(key, 1) == 0 {
			return 1
		}
		return r.positive(key, 1)
	}
	return 1
}
