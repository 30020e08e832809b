package llm

import (
	"maps"
	"slices"

	"github.com/rayo-go/rayo/op"
)

// ropeKind says which elements of a head form pairs.
type ropeKind int

const (
	noRope          ropeKind = iota
	interleavedRope          // adjacent elements
	halvedRope               // elements i and i + half of the rotated elements
)

// architecture has the differences of an architecture from llama. Biases, norms of queries and
// keys, norms after a block, one matrix for queries, keys and values, a separate output matrix, and
// experts are recognised by their tensors.
type architecture struct {
	rope       ropeKind
	activation *op.Operation // of the feed-forward part
	// encoder means that all tokens attend to each other, and that norms come after the residual
	// sum, as in bert. layerNorm means that norms subtract the mean.
	encoder, layerNorm bool
	// fused means that ffn_up also contains the gate, whose rows come first.
	fused bool
	// scaleEmbedding multiplies embeddings by the root of the width.
	scaleEmbedding bool
	// period, if not 0, means that all layers except each period-th use a sliding window; window is
	// its default size. In these layers baseLocal, if not 0, is the default base of rope.
	period, window int
	baseLocal      float32
	// ropeless, if not 0, means that each ropeless-th layer does not use positions.
	ropeless                       int
	attentionSoftcap, logitSoftcap float32 // default if the file has no value
	// temperature means that scores grow with the position if the file has a scale.
	temperature bool
	// adjust sets fields that depend on the sizes.
	adjust func(c *Config)
}

// architectures are the supported architectures, by their name in files.
var architectures = map[string]*architecture{
	"llama":      {rope: interleavedRope, activation: op.Silu},
	"mistral":    {rope: interleavedRope, activation: op.Silu},
	"mistral3":   {rope: interleavedRope, activation: op.Silu, temperature: true},
	"smollm3":    {rope: interleavedRope, activation: op.Silu, ropeless: 4},
	"qwen2":      {rope: halvedRope, activation: op.Silu},
	"qwen3":      {rope: halvedRope, activation: op.Silu},
	"qwen3moe":   {rope: halvedRope, activation: op.Silu},
	"phi3":       {rope: halvedRope, activation: op.Silu, fused: true},
	"gemma":      {rope: halvedRope, activation: op.GeluTanh, scaleEmbedding: true},
	"gemma2":     {rope: halvedRope, activation: op.GeluTanh, scaleEmbedding: true, period: 2, window: 4096, attentionSoftcap: 50, logitSoftcap: 30, adjust: wideGemma(46)},
	"gemma3":     {rope: halvedRope, activation: op.GeluTanh, scaleEmbedding: true, period: 6, baseLocal: 10000, adjust: wideGemma(62)},
	"bert":       {activation: op.GeluTanh, encoder: true, layerNorm: true},
	"nomic-bert": {rope: halvedRope, activation: op.Silu, encoder: true, layerNorm: true},
}

// wideGemma returns an adjust function that sets the attention scale of 27B models, which it
// recognises by their number of layers.
func wideGemma(layers int) func(c *Config) {
	return func(c *Config) {
		if c.Layers == layers && c.AttentionScale == 0 {
			c.AttentionScale = reciprocalRoot(c.Width / c.Heads)
		}
	}
}

// Architectures returns the names of the supported architectures, sorted.
func Architectures() []string { return slices.Sorted(maps.Keys(architectures)) }

// epsilon returns the key of the epsilon of norms.
func (a *architecture) epsilon() string {
	if a.layerNorm {
		return "attention.layer_norm_epsilon"
	}
	return "attention.layer_norm_rms_epsilon"
}
