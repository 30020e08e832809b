package llm

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
)

// variants are models of random weights that the goldens do not cover.
var variants = map[string]variant{
	"llama biases":      {arch: "llama", extra: withBiases},
	"llama partial":     {arch: "llama", keys: map[string]any{"rope.dimension_count": uint32(8)}},
	"llama yarn":        {arch: "llama", keys: yarn(40, 8)},
	"llama squeezed":    {arch: "llama", keys: yarn(40, 0.5)},
	"llama flat":        {arch: "llama", keys: flat()},
	"llama unscaled":    {arch: "llama", keys: map[string]any{"rope.scale_linear": float32(0)}},
	"llama longrope":    {arch: "llama", keys: longRope(), extra: withLongFactors},
	"llama embedder":    {arch: "llama", keys: map[string]any{"attention.causal": false}},
	"qwen2 embedder":    {arch: "qwen2", keys: map[string]any{"attention.causal": false}, extra: withBiases},
	"mistral3":          {arch: "mistral3", keys: ministral()},
	"mistral3 flat":     {arch: "mistral3", keys: yarn(40, 8)},
	"smollm3":           {arch: "smollm3"},
	"qwen2 yarn":        {arch: "qwen2", keys: yarn(32, 4), extra: withBiases},
	"qwen3":             {arch: "qwen3", extra: withHeadNorms},
	"qwen3moe":          {arch: "qwen3moe", keys: map[string]any{"expert_count": uint32(5), "expert_used_count": uint32(3), "expert_feed_forward_length": uint32(24)}, extra: withHeadNorms},
	"phi3":              {arch: "phi3"},
	"phi3 long":         {arch: "phi3", keys: map[string]any{"rope.dimension_count": uint32(12), "rope.scaling.attn_factor": float32(1.19), "rope.scaling.original_context_length": uint32(500)}, extra: withLongFactors},
	"gemma":             {arch: "gemma"},
	"gemma2":            {arch: "gemma2", keys: map[string]any{"attention.sliding_window": uint32(6)}, extra: withPostNorms},
	"gemma2 caps":       {arch: "gemma2", keys: map[string]any{"attn_logit_softcapping": float32(2), "final_logit_softcapping": float32(3)}, extra: withPostNorms},
	"gemma3 4B":         {arch: "gemma3", keys: map[string]any{"attention.sliding_window": uint32(4), "rope.scaling.type": "linear", "rope.scaling.factor": float32(8), "rope.freq_base": float32(1e6)}, extra: withGemma3},
	"nomic-bert":        {arch: "nomic-bert", keys: map[string]any{"rope.freq_base": float32(1000)}},
	"bert without kind": {arch: "bert"},
}

func yarn(original uint32, factor float32) map[string]any {
	return map[string]any{"rope.scaling.type": "yarn", "rope.scaling.factor": factor, "rope.scaling.original_context_length": original}
}

// flat has the keys for yarn that scales all frequencies alike, and then no magnitude.
func flat() map[string]any {
	keys := yarn(40, 8)
	keys["rope.scaling.yarn_ext_factor"] = float32(0)
	return keys
}

// longRope has the keys for LongRoPE with all of a head's elements in use, and a factor.
func longRope() map[string]any {
	return map[string]any{"rope.scaling.type": "longrope", "rope.scaling.factor": float32(3), "rope.scaling.attn_factor": float32(1.2), "rope.dimension_count": uint32(12),
		"rope.scaling.original_context_length": uint32(100)}
}

// ministral has the keys of Ministral 3. The scores grow at every 20th position.
func ministral() map[string]any {
	keys := yarn(20, 16)
	maps.Copy(keys, map[string]any{"rope.scaling.yarn_beta_fast": float32(4), "rope.scaling.yarn_beta_slow": float32(0.5),
		"rope.scaling.yarn_log_multiplier": float32(1), "attention.temperature_scale": float32(0.4)})
	return keys
}

func withBiases(m *randomModel) {
	for i, t := range m.tensors {
		name, is := strings.CutSuffix(t.Name, ".weight")
		if is && strings.Contains(name, ".attn_") && len(t.Dims) == 2 {
			m.add(name+".bias", 0, 0.3, m.tensors[i].Dims[1])
		}
	}
}

func withHeadNorms(m *randomModel) {
	for l := range m.sizes.layers {
		m.norm(fmt.Sprintf("blk.%d.attn_q_norm", l), m.sizes.key, false)
		m.norm(fmt.Sprintf("blk.%d.attn_k_norm", l), m.sizes.key, false)
	}
}

func withPostNorms(m *randomModel) {
	for l := range m.sizes.layers {
		m.norm(fmt.Sprintf("blk.%d.post_attention_norm", l), m.sizes.width, false)
		m.norm(fmt.Sprintf("blk.%d.post_ffw_norm", l), m.sizes.width, false)
	}
}

func withGemma3(m *randomModel) {
	withHeadNorms(m)
	withPostNorms(m)
}

func withLongFactors(m *randomModel) {
	m.add("rope_factors_short.weight", 1.5, 0.1, 6)
	m.add("rope_factors_long.weight", 9, 0.4, 6)
}

// model makes the tensors of a variant.
func (v variant) model(t *testing.T, rnd *rand.Rand) *randomModel {
	m := &randomModel{sizes: v.sizes, rnd: rnd, meta: &gguf.Metadata{}}
	if m.sizes == (variantSizes{}) {
		m.sizes = usualSizes
	}
	set := func(key string, x any) {
		var val gguf.Value
		switch x := x.(type) {
		case uint32:
			val = gguf.NewValue(x)
		case float32:
			val = gguf.NewValue(x)
		case bool:
			val = gguf.NewValue(x)
		case string:
			val = gguf.NewValue(x)
		}
		if err := m.meta.Set(key, val); err != nil {
			t.Fatal(err)
		}
	}
	set("general.architecture", v.arch)
	traits := refArchs[v.arch]
	for key, n := range map[string]int64{"block_count": m.sizes.layers, "embedding_length": m.sizes.width, "context_length": 1000, "feed_forward_length": m.sizes.ff,
		"attention.head_count": m.sizes.heads, "attention.head_count_kv": m.sizes.kv, "attention.key_length": m.sizes.key, "attention.value_length": m.sizes.value} {
		set(v.arch+"."+key, uint32(n))
	}
	set(v.arch+"."+map[bool]string{true: "attention.layer_norm_epsilon", false: "attention.layer_norm_rms_epsilon"}[traits.encoder], float32(1e-5))
	for key, x := range v.keys {
		set(v.arch+"."+key, x)
	}
	m.matrix("token_embd", m.sizes.width, m.sizes.vocabulary)
	if traits.encoder {
		m.norm("token_embd_norm", m.sizes.width, true)
		m.matrix("token_types", m.sizes.width, 2)
		if traits.noRope {
			m.matrix("position_embd", m.sizes.width, 1000)
		}
	} else {
		m.norm("output_norm", m.sizes.width, false)
		if !v.tied {
			m.matrix("output", m.sizes.width, m.sizes.vocabulary)
		}
	}
	for l := range m.sizes.layers {
		v.layer(m, traits, fmt.Sprintf("blk.%d.", l))
	}
	if v.extra != nil {
		v.extra(m)
	}
	return m
}

func (v variant) layer(m *randomModel, traits refTraits, p string) {
	linear := m.matrix
	if traits.noRope {
		linear = m.linear
	}
	if v.arch == "phi3" || v.arch == "nomic-bert" {
		linear(p+"attn_qkv", m.sizes.width, m.sizes.heads*m.sizes.key+m.sizes.kv*(m.sizes.key+m.sizes.value))
	} else {
		linear(p+"attn_q", m.sizes.width, m.sizes.heads*m.sizes.key)
		linear(p+"attn_k", m.sizes.width, m.sizes.kv*m.sizes.key)
		linear(p+"attn_v", m.sizes.width, m.sizes.kv*m.sizes.value)
	}
	linear(p+"attn_output", m.sizes.heads*m.sizes.value, m.sizes.width)
	if traits.encoder {
		m.norm(p+"attn_output_norm", m.sizes.width, true)
		m.norm(p+"layer_output_norm", m.sizes.width, true)
	} else {
		m.norm(p+"attn_norm", m.sizes.width, false)
		m.norm(p+"ffn_norm", m.sizes.width, false)
	}
	switch {
	case v.keys["expert_count"] != nil:
		n, f := int64(v.keys["expert_count"].(uint32)), int64(v.keys["expert_feed_forward_length"].(uint32))
		m.add(p+"ffn_gate_inp.weight", 0, 0.5, m.sizes.width, n)
		m.add(p+"ffn_gate_exps.weight", 0, 0.15, m.sizes.width, f, n)
		m.add(p+"ffn_up_exps.weight", 0, 0.15, m.sizes.width, f, n)
		m.add(p+"ffn_down_exps.weight", 0, 0.15, f, m.sizes.width, n)
		return
	case v.arch == "phi3":
		linear(p+"ffn_up", m.sizes.width, 2*m.sizes.ff)
	default:
		if v.arch != "bert" {
			linear(p+"ffn_gate", m.sizes.width, m.sizes.ff)
		}
		linear(p+"ffn_up", m.sizes.width, m.sizes.ff)
	}
	linear(p+"ffn_down", m.sizes.ff, m.sizes.width)
}

// TestModelVariants compares random models of every architecture with the reference.
func TestModelVariants(t *testing.T) {
	dev := openCPU(t)
	seen := make(map[string]bool)
	for name, v := range variants {
		seen[v.arch] = true
		t.Run(name, func(t *testing.T) {
			rnd := testutil.Rand(t)
			f := v.model(t, rnd).file(t)
			agrees(t, dev, f, rnd, 1e-5)
		})
	}
	page, err := os.ReadFile("../docs/llm.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Architectures() {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/llm.md does not name %s", name)
		}
		if _, same := refArchs[name]; same && !seen[name] {
			t.Errorf("no variant of %s", name)
		}
	}
}

// TestReference compares the reference with the results of llama.cpp.
func TestReference(t *testing.T) {
	for _, name := range []string{"llama-ropefreqs", "llama-linear", "llama-moe", "qwen2", "qwen3", "gemma3"} {
		g, f := readGolden(t, name), modelFile(t, name)
		got := (&reference{t: t, f: f, refTraits: refArchs[f.Architecture()]}).forward(g.Tokens)
		for i := range got {
			row := make([]float32, len(got[i]))
			for j, v := range got[i] {
				row[j] = float32(v)
			}
			if d := worst(row, g.Logits[i], greatest(g.Logits...)); d > goldens[name] {
				t.Fatalf("%s: logits after token %d are off by %.3g", name, i, d)
			}
		}
	}
}

// TestRandomSizes compares models of random sizes, with and without the optional parts of their architecture.
func TestRandomSizes(t *testing.T) {
	dev := openCPU(t)
	rnd := testutil.Rand(t)
	trials := 4
	if testing.Short() {
		trials = 1
	}
	for name := range refArchs {
		for range trials {
			v := randomVariant(rnd, name)
			f := v.model(t, rnd).file(t)
			if !t.Run(fmt.Sprintf("%s %v %v", name, v.sizes, v.keys), func(t *testing.T) { agrees(t, dev, f, rnd, 1e-3) }) {
				return
			}
		}
	}
}

// randomVariant chooses random sizes and optional parts of an architecture.
func randomVariant(rnd *rand.Rand, arch string) variant {
	pick := func(least, most int) int64 { return int64(least + rnd.IntN(most-least+1)) }
	coin := func() bool { return rnd.IntN(2) == 0 }
	kv := pick(1, 3)
	v := variant{arch: arch, keys: make(map[string]any), tied: coin(), sizes: variantSizes{layers: pick(1, 7), width: pick(9, 90), heads: kv * pick(1, 4), kv: kv,
		key: 2 * pick(2, 23), value: pick(3, 40), ff: pick(5, 80), vocabulary: pick(4, 120)}}
	var extras []func(m *randomModel)
	traits := refArchs[arch]
	if !traits.encoder {
		if coin() && arch != "phi3" {
			extras = append(extras, withBiases)
		}
		if coin() && arch != "phi3" {
			extras = append(extras, withHeadNorms)
		}
		if coin() || traits.gemma {
			extras = append(extras, withPostNorms)
		}
		if coin() && arch != "phi3" || arch == "qwen3moe" {
			n := pick(1, 9)
			v.keys["expert_count"], v.keys["expert_used_count"], v.keys["expert_feed_forward_length"] = uint32(n), uint32(pick(1, int(n))), uint32(pick(3, 40))
		}
	}
	if !traits.noRope && coin() {
		v.keys["rope.dimension_count"] = uint32(2 * pick(1, int(v.sizes.key/2)))
	}
	if coin() && !traits.noRope {
		maps.Copy(v.keys, yarn(uint32(pick(20, 60)), float32(pick(2, 8))))
	}
	if traits.period > 0 && coin() {
		v.keys["attention.sliding_window"] = uint32(pick(1, 40))
	}
	if traits.gemma {
		v.keys["attn_logit_softcapping"], v.keys["final_logit_softcapping"] = float32(pick(1, 30)), float32(pick(2, 30))
	}
	if coin() {
		v.keys["attention.scale"] = float32(0.2)
	}
	v.extra = func(m *randomModel) {
		for _, f := range extras {
			f(m)
		}
	}
	return v
}

// agrees feeds random tokens in random pieces and compares the logits with the reference.
func agrees(t *testing.T, dev *device.Device, f *gguf.File, rnd *rand.Rand, tol float64) {
	t.Helper()
	m, err := Load(t.Context(), dev, f, Options{Context: variantContext, Cache: 500, Chunk: 32})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	tokens := make([]int32, 30+rnd.IntN(60))
	for i := range tokens {
		tokens[i] = int32(rnd.IntN(m.config.Vocabulary))
	}
	r := &reference{t: t, f: f, refTraits: refArchs[f.Architecture()]}
	want := r.forward(tokens)
	if r.close {
		return
	}
	top := 0.0
	for _, row := range want {
		for _, v := range row {
			top = max(top, math.Abs(v))
		}
	}
	check := func(what string, got []float32, want []float64) {
		t.Helper()
		for i, v := range want {
			if d := math.Abs(float64(got[i])-v) / top; !(d <= tol) {
				t.Fatalf("%s: element %d is %v, not %v: off by %.3g", what, i, got[i], v, d)
			}
		}
	}
	if m.cache == nil {
		mean := make([]float64, m.config.Width)
		for _, row := range want {
			for i, v := range row {
				mean[i] += v / float64(len(want))
			}
		}
		got, err := m.pooled(t.Context(), tokens)
		if err != nil {
			t.Fatal(err)
		}
		check("mean", got, mean)
		return
	}
	s := m.NewSession()
	defer s.Close()
	for at := 0; at < len(tokens); {
		n := min(1+rnd.IntN(40)*rnd.IntN(2), len(tokens)-at)
		if err := s.Feed(t.Context(), tokens[at:at+n]); err != nil {
			t.Fatal(err)
		}
		at += n
		check(fmt.Sprintf("behind token %d", at-1), s.Logits(), want[at-1])
	}
}

// TestDamagedModels loads models whose metadata or tensors are missing or wrong. Each must give an
// error or a working model.
func TestDamagedModels(t *testing.T) {
	dev := openCPU(t)
	rnd := testutil.Rand(t)
	odd := []gguf.Value{gguf.NewValue("text"), gguf.NewValue(uint64(math.MaxUint64)), gguf.NewValue(int32(-1)), gguf.NewValue(uint32(0)), gguf.NewValue(uint32(1 << 20)), gguf.NewValue(uint32(7)),
		gguf.NewValue(float32(math.NaN())), gguf.NewValue(float32(math.Inf(1))), gguf.NewValue(float32(-2)), gguf.NewArray([]uint32{1, 2, 3}), gguf.NewArray([]uint32{}), gguf.NewArray([]string{"a"}), gguf.NewArray([]bool{true})}
	for name, v := range variants {
		whole := v.model(t, rnd)
		var keys []string
		for k := range whole.meta.All() {
			keys = append(keys, k)
		}
		for _, extra := range []string{"rope.freq_base", "rope.scaling.type", "attention.sliding_window_pattern", "pooling_type", "logit_scale", "attention.scale", "expert_count"} {
			keys = append(keys, v.arch+"."+extra)
		}
		for range 8 {
			m := &randomModel{meta: whole.meta.Clone(), tensors: slices.Clone(whole.tensors), data: slices.Clone(whole.data)}
			i := rnd.IntN(len(m.tensors))
			switch rnd.IntN(5) {
			case 4:
				m.tensors[i].Name = fmt.Sprintf("blk.%d.attn_something.weight", rnd.IntN(int(usualSizes.layers)))
			case 0:
				m.tensors, m.data = slices.Delete(m.tensors, i, i+1), slices.Delete(m.data, i, i+1)
			case 1:
				m.tensors[i].Dims = append([]int64{1}, m.tensors[i].Dims...)
			case 2:
				m.meta.Delete(keys[rnd.IntN(len(keys))])
			case 3:
				if err := m.meta.Set(keys[rnd.IntN(len(keys))], odd[rnd.IntN(len(odd))]); err != nil {
					t.Fatal(err)
				}
			}
			tryDamaged(t, dev, name, m.file(t))
		}
	}
}

func tryDamaged(t *testing.T, dev *device.Device, name string, f *gguf.File) {
	t.Helper()
	before := dev.Stats().Buffers
	m, err := Load(t.Context(), dev, f, Options{Context: 70, Chunk: 16})
	if err != nil {
		if !errors.Is(err, ErrModel) && !errors.Is(err, device.ErrShape) && !errors.Is(err, device.ErrOutOfMemory) {
			t.Errorf("%s: %v", name, err)
		}
	} else {
		if _, err := m.Embed(t.Context(), []int32{1, 2, 3}); err != nil {
			t.Errorf("%s loads, and then: %v", name, err)
		}
		m.Close()
	}
	if n := dev.Stats().Buffers; n != before {
		t.Errorf("%s: %d buffers are left open", name, n-before)
	}
}
