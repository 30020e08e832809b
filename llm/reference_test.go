package llm

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
)

// The reference computes models in float64, one token after the other. It follows the definitions
// of the architectures and uses no code of this package.

// refTraits are the properties of an architecture that the reference needs.
type refTraits struct {
	neighbours, gelu, encoder, gemma, noRope bool
	period, skip                             int
	localBase, scoreCap, logitCap            float64
}

var refArchs = map[string]refTraits{
	"llama": {neighbours: true}, "smollm3": {neighbours: true, skip: 4},
	"mistral3": {neighbours: true},
	"qwen2":    {}, "qwen3": {}, "qwen3moe": {}, "phi3": {},
	"gemma":      {gelu: true, gemma: true},
	"gemma2":     {gelu: true, gemma: true, period: 2, scoreCap: 50, logitCap: 30},
	"gemma3":     {gelu: true, gemma: true, period: 6, localBase: 10000},
	"bert":       {gelu: true, encoder: true, noRope: true},
	"nomic-bert": {encoder: true},
}

type reference struct {
	t testing.TB
	f *gguf.File
	refTraits
	// close means that two experts had almost the same score, so rounding may choose the other one.
	close bool
}

func (r *reference) num(key string, missing float64) float64 {
	if v, ok := r.f.Hyper(key); ok {
		x, _ := v.Float()
		return x
	}
	return missing
}

func (r *reference) int(key string, missing int) int { return int(r.num(key, float64(missing))) }

// rows returns a matrix, or nil.
func (r *reference) rows(name string) [][]float64 {
	t := r.f.Tensor(name)
	if t == nil {
		return nil
	}
	x := make([]float32, t.Elements())
	if err := t.Dequantize(x, 0); err != nil {
		r.t.Fatal(err)
	}
	n := int(t.Dims[0])
	var rows [][]float64
	for i := 0; i < len(x); i += n {
		row := make([]float64, n)
		for j := range row {
			row[j] = float64(x[i+j])
		}
		rows = append(rows, row)
	}
	return rows
}

func (r *reference) vector(name string) []float64 {
	if x := r.rows(name); x != nil {
		return x[0]
	}
	return nil
}

func multiply(w [][]float64, x []float64) []float64 {
	y := make([]float64, len(w))
	for i, row := range w {
		for j, v := range row {
			y[i] += v * x[j]
		}
	}
	return y
}

func plus(x, y []float64) []float64 {
	z := append([]float64(nil), x...)
	for i, v := range y {
		z[i] += v
	}
	return z
}

// linear is a matrix and an optional bias.
func (r *reference) linear(name string, x []float64) []float64 {
	return plus(multiply(r.rows(name+".weight"), x), r.vector(name+".bias"))
}

func (r *reference) norm(name string, x []float64) []float64 {
	w, b := r.vector(name+".weight"), r.vector(name+".bias")
	if w == nil {
		return x
	}
	mean, square, n := 0.0, 0.0, float64(len(x))
	if r.encoder {
		for _, v := range x {
			mean += v / n
		}
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / n
	}
	eps := r.num("attention.layer_norm_rms_epsilon", r.num("attention.layer_norm_epsilon", 0))
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(square+eps) * w[i]
	}
	return plus(y, b)
}

func (r *reference) activate(x float64) float64 {
	if r.gelu {
		return 0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
	}
	return x / (1 + math.Exp(-x))
}

// local reports whether a layer has a window.
func (r *reference) local(layer int) bool {
	return r.period > 0 && r.int("attention.sliding_window", 0) > 0 && (layer+1)%r.period != 0
}

// angles returns the rotation angles of the pairs at a position, and the factor by which the
// rotated pairs are scaled.
func (r *reference) angles(layer, pos, n int) (angles []float64, factor float64) {
	base, scale := r.num("rope.freq_base", 10000), r.num("rope.scaling.factor", 1)
	if scale == 0 {
		scale = 1
	}
	kind := "linear"
	if v, ok := r.f.Hyper("rope.scaling.type"); ok {
		kind, _ = v.Text()
	}
	factor = r.num("rope.scaling.attn_factor", 1)
	if r.localBase != 0 && r.local(layer) {
		base, kind, factor = r.num("rope.freq_base_swa", r.localBase), "none", 1
	}
	original := r.num("rope.scaling.original_context_length", 0)
	factors := r.vector("rope_freqs.weight")
	if factors == nil {
		factors = r.vector("rope_factors_short.weight")
		if original < variantContext {
			factors = r.vector("rope_factors_long.weight")
		}
	}
	ext := r.num("rope.scaling.yarn_ext_factor", 1)
	pair := func(turns float64) float64 {
		return float64(n) * math.Log(original/(2*math.Pi*turns)) / (2 * math.Log(base))
	}
	for i := range n / 2 {
		f := math.Pow(base, -2*float64(i)/float64(n))
		if factors != nil {
			f /= factors[i]
		}
		switch kind {
		case "linear", "longrope":
			f /= scale
		case "yarn":
			lo, hi := max(0, math.Floor(pair(r.num("rope.scaling.yarn_beta_fast", 32)))), min(float64(n)-1, math.Ceil(pair(r.num("rope.scaling.yarn_beta_slow", 1))))
			r := 1 - min(1, max(0, (float64(i)-lo)/max(0.001, hi-lo)))
			r *= ext
			f = f/scale*(1-r) + f*r
		}
		angles = append(angles, float64(pos)*f)
	}
	if kind == "yarn" && ext != 0 {
		growth := math.Log(max(1, scale)) / 10
		factor *= (1 + growth) / (1 + growth*r.num("rope.scaling.yarn_log_multiplier", 0))
	}
	return angles, factor
}

// turn applies rope to a head.
func (r *reference) turn(layer, pos int, x []float64) {
	if r.noRope || r.skip > 0 && (layer+1)%r.skip == 0 {
		return
	}
	n := r.int("rope.dimension_count", len(x))
	angles, factor := r.angles(layer, pos, n)
	for i, a := range angles {
		u, v := i, i+n/2
		if r.neighbours {
			u, v = 2*i, 2*i+1
		}
		s, c := math.Sincos(a)
		x[u], x[v] = factor*(x[u]*c-x[v]*s), factor*(x[u]*s+x[v]*c)
	}
}

// bidirectional reports whether tokens attend to later tokens.
func (r *reference) bidirectional() bool {
	v, ok := r.f.Hyper("attention.causal")
	causal, _ := v.Bool()
	return r.encoder || ok && !causal
}

// heads splits a vector into heads.
func heads(x []float64, n int) [][]float64 {
	var h [][]float64
	for i := range n {
		h = append(h, append([]float64(nil), x[i*len(x)/n:(i+1)*len(x)/n]...))
	}
	return h
}

// attention returns the outputs of all heads, concatenated, for each token.
func (r *reference) attention(layer int, xs [][]float64) [][]float64 {
	p := fmt.Sprintf("blk.%d.", layer)
	nh := r.int("attention.head_count", 0)
	nk := r.int("attention.head_count_kv", nh)
	dk := r.int("attention.key_length", len(xs[0])/nh)
	dv := r.int("attention.value_length", dk)
	var qs, ks, vs [][][]float64
	for pos, x := range xs {
		var q, k, v []float64
		if r.rows(p+"attn_qkv.weight") != nil {
			all := r.linear(p+"attn_qkv", x)
			q, k, v = all[:nh*dk], all[nh*dk:][:nk*dk], all[(nh+nk)*dk:][:nk*dv]
		} else {
			q, k, v = r.linear(p+"attn_q", x), r.linear(p+"attn_k", x), r.linear(p+"attn_v", x)
		}
		qh, kh := heads(q, nh), heads(k, nk)
		for i := range qh {
			qh[i] = r.norm(p+"attn_q_norm", qh[i])
			r.turn(layer, pos, qh[i])
		}
		for i := range kh {
			kh[i] = r.norm(p+"attn_k_norm", kh[i])
			r.turn(layer, pos, kh[i])
		}
		qs, ks, vs = append(qs, qh), append(ks, kh), append(vs, heads(v, nk))
	}
	base := r.num("attention.scale", 1/math.Sqrt(float64(dk)))
	limit := r.num("attn_logit_softcapping", r.scoreCap)
	var out [][]float64
	for i := range xs {
		var y []float64
		span := math.Floor(float64(i) / r.num("rope.scaling.original_context_length", 1000))
		scale := base * (1 + r.num("attention.temperature_scale", 0)*math.Log(1+span))
		for h := range nh {
			scores, sum, top := make([]float64, len(xs)), 0.0, math.Inf(-1)
			for j := range xs {
				s := 0.0
				for d, v := range qs[i][h] {
					s += v * ks[j][h*nk/nh][d] * scale
				}
				if limit > 0 {
					s = limit * math.Tanh(s/limit)
				}
				if !r.bidirectional() && (j > i || r.local(layer) && i-j >= r.int("attention.sliding_window", 0)) {
					s = math.Inf(-1)
				}
				scores[j] = s
				top = max(top, s)
			}
			for j := range scores {
				scores[j] = math.Exp(scores[j] - top)
				sum += scores[j]
			}
			z := make([]float64, dv)
			for j, s := range scores {
				for d, v := range vs[j][h*nk/nh] {
					z[d] += s / sum * v
				}
			}
			y = append(y, z...)
		}
		out = append(out, y)
	}
	return out
}

// feedForward computes the feed-forward part of a layer.
func (r *reference) feedForward(layer int, x []float64) []float64 {
	p := fmt.Sprintf("blk.%d.", layer)
	if router := r.rows(p + "ffn_gate_inp.weight"); router != nil {
		return r.experts(p, router, x)
	}
	up := r.linear(p+"ffn_up", x)
	switch {
	case r.rows(p+"ffn_gate.weight") != nil:
		for i, g := range r.linear(p+"ffn_gate", x) {
			up[i] *= r.activate(g)
		}
	case !r.encoder: // the gate comes first
		n := len(up) / 2
		for i := range n {
			up[n+i] *= r.activate(up[i])
		}
		up = up[n:]
	default:
		for i := range up {
			up[i] = r.activate(up[i])
		}
	}
	return r.linear(p+"ffn_down", up)
}

// experts computes the experts with the greatest scores and adds their results, weighted by the router.
func (r *reference) experts(p string, router [][]float64, x []float64) []float64 {
	scores := multiply(router, x)
	chosen, total := make(map[int]float64), 0.0
	for range r.int("expert_used_count", 0) {
		best := -1
		for e, s := range scores {
			if _, taken := chosen[e]; !taken && (best < 0 || s > scores[best]) {
				best = e
			}
		}
		chosen[best] = math.Exp(scores[best])
		total += chosen[best]
	}
	for e, s := range scores {
		if _, taken := chosen[e]; !taken {
			for c := range chosen {
				r.close = r.close || scores[c]-s < 1e-4
			}
		}
	}
	gate, up, down := r.rows(p+"ffn_gate_exps.weight"), r.rows(p+"ffn_up_exps.weight"), r.rows(p+"ffn_down_exps.weight")
	n, f := len(scores), len(gate)/len(scores)
	y := make([]float64, len(x))
	for e := range n {
		w, ok := chosen[e]
		if !ok {
			continue
		}
		h := multiply(up[e*f:(e+1)*f], x)
		for i, g := range multiply(gate[e*f:(e+1)*f], x) {
			h[i] *= r.activate(g)
		}
		for i, v := range multiply(down[e*len(x):(e+1)*len(x)], h) {
			y[i] += w / total * v
		}
	}
	return y
}

// forward returns the logits after each token or, for an encoder, the states.
func (r *reference) forward(tokens []int32) [][]float64 {
	embedding := r.rows("token_embd.weight")
	types, positions := r.rows("token_types.weight"), r.rows("position_embd.weight")
	var xs [][]float64
	for pos, id := range tokens {
		x := append([]float64(nil), embedding[id]...)
		if r.gemma {
			for i := range x {
				x[i] *= math.Sqrt(float64(len(x)))
			}
		}
		if types != nil {
			x = plus(x, types[0])
		}
		if positions != nil {
			x = plus(x, positions[pos])
		}
		xs = append(xs, r.norm("token_embd_norm", x))
	}
	for l := range r.int("block_count", 0) {
		p := fmt.Sprintf("blk.%d.", l)
		in := make([][]float64, len(xs))
		for i, x := range xs {
			in[i] = r.norm(p+"attn_norm", x)
		}
		for i, a := range r.attention(l, in) {
			y := r.linear(p+"attn_output", a)
			if r.encoder {
				x := r.norm(p+"attn_output_norm", plus(xs[i], y))
				xs[i] = r.norm(p+"layer_output_norm", plus(x, r.feedForward(l, x)))
				continue
			}
			x := plus(xs[i], r.norm(p+"post_attention_norm", y))
			xs[i] = plus(x, r.norm(p+"post_ffw_norm", r.feedForward(l, r.norm(p+"ffn_norm", x))))
		}
	}
	if r.encoder {
		return xs
	}
	if r.bidirectional() {
		for i, x := range xs {
			xs[i] = r.norm("output_norm", x)
		}
		return xs
	}
	output := r.rows("output.weight")
	if output == nil {
		output = embedding
	}
	for i, x := range xs {
		xs[i] = multiply(output, r.norm("output_norm", x))
		if c := r.num("final_logit_softcapping", r.logitCap); c > 0 {
			for j, v := range xs[i] {
				xs[i][j] = c * math.Tanh(v/c)
			}
		}
	}
	return xs
}

// variant is a random model of an architecture.
type variant struct {
	arch  string
	keys  map[string]any // in addition to the sizes
	sizes variantSizes   // usualSizes, if zero
	tied  bool           // the embedding is also the output matrix
	extra func(m *randomModel)
}

// randomModel collects the tensors of a model.
type randomModel struct {
	sizes   variantSizes
	rnd     *rand.Rand
	meta    *gguf.Metadata
	tensors []gguf.TensorInfo
	data    [][]float32
}

func (m *randomModel) add(name string, mean, deviation float64, dims ...int64) {
	n := int64(1)
	for _, d := range dims {
		n *= d
	}
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(mean + deviation*m.rnd.NormFloat64())
	}
	m.tensors, m.data = append(m.tensors, gguf.TensorInfo{Name: name, Type: block.F32, Dims: dims}), append(m.data, x)
}

func (m *randomModel) matrix(name string, in, out int64) {
	m.add(name+".weight", 0, 1/math.Sqrt(float64(in)), in, out)
}

func (m *randomModel) linear(name string, in, out int64) {
	m.matrix(name, in, out)
	m.add(name+".bias", 0, 0.2, out)
}

func (m *randomModel) norm(name string, n int64, bias bool) {
	m.add(name+".weight", 1, 0.2, n)
	if bias {
		m.add(name+".bias", 0, 0.2, n)
	}
}

// file writes the model to memory.
func (m *randomModel) file(t *testing.T) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	w, err := gguf.NewWriter(&b, m.meta, m.tensors)
	if err != nil {
		t.Fatal(err)
	}
	for i, info := range m.tensors {
		dst, err := w.Tensor(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, 4*len(m.data[i]))
		if err := info.Type.Quantize(raw, m.data[i]); err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Write(raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.NewBytes(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// variantSizes are the sizes of a random model.
type variantSizes struct {
	layers, width, heads, kv, key, value, ff, vocabulary int64
}

// variantContext is the context with which variants are opened.
const variantContext = 200

// usualSizes are the default sizes.
var usualSizes = variantSizes{5, 48, 4, 2, 16, 16, 40, 70}
