package llm

import (
	"context"
	"fmt"
	"io"
	"math"
	"regexp"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

// weights are the tensors of a model on a device. Absent tensors are nil.
type weights struct {
	embedding, positions, types *device.Buffer
	embeddingNorm               norm
	layers                      []layer
	outputNorm                  norm
	output                      linear
	// factors of the frequencies of rope, on the host.
	ropeFactors []float32
}

// linear is a matrix [out in], and a bias.
type linear struct{ w, bias *device.Buffer }

// norm has the factors of a norm, and its bias.
type norm struct{ weight, bias *device.Buffer }

// layer is the weights of one layer.
type layer struct {
	norm         norm
	qkv          linear // the stacked matrices of q, k and v; or
	q, k, v      linear
	qNorm, kNorm norm
	out          linear
	outNorm      norm // norm of the result of attention; in encoders, norm of the residual sum

	ffnNorm        norm
	gateUp         linear // the stacked matrices of gate and up; or
	gate, up, down linear
	ffnOutNorm     norm

	router linear // with experts, whose matrices are [experts out in]
}

// loader uploads the tensors of a file to a device. It keeps the first error.
type loader struct {
	ctx     context.Context
	dev     *device.Device
	f       *gguf.File
	err     error
	buffers []*device.Buffer
	context int // maximum number of tokens of a session
	used    map[string]bool
}

func (l *loader) fail(name, format string, args ...any) {
	if l.err == nil {
		l.err = &TensorError{name, fmt.Sprintf(format, args...)}
	}
}

// close frees all uploaded tensors.
func (l *loader) close() {
	for _, b := range l.buffers {
		_ = b.Close()
	}
}

// find returns a tensor with the given extents, the number of rows last. An extent of -1 allows
// any. It returns nil if there is no such tensor, and sets an error unless the tensor is optional.
func (l *loader) find(name string, optional bool, dims ...int) *gguf.Tensor {
	t := l.f.Tensor(name)
	if t == nil {
		if !optional {
			l.fail(name, "missing")
		}
		return nil
	}
	l.used[name] = true
	shape := t.Shape()
	for len(shape) > len(dims) && shape[0] == 1 {
		shape = shape[1:]
	}
	ok := len(shape) == len(dims)
	for i := range dims {
		ok = ok && (dims[i] == shape[i] || dims[i] < 0)
	}
	if !ok {
		l.fail(name, "shape %v: expected %v", shape, dims)
		return nil
	}
	return t
}

// vector uploads n numbers as f32.
func (l *loader) vector(name string, optional bool, n int) *device.Buffer {
	x := l.numbers(name, optional, n)
	if x == nil {
		return nil
	}
	return l.keep(device.Upload(l.ctx, l.dev, x))
}

// numbers reads n numbers.
func (l *loader) numbers(name string, optional bool, n int) []float32 {
	t := l.find(name, optional, n)
	if t == nil || l.err != nil {
		return nil
	}
	x := make([]float32, n)
	if err := t.Dequantize(x, 0); err != nil {
		l.err = fmt.Errorf("tensor %s: %w", name, err)
		return nil
	}
	return x
}

func (l *loader) keep(b *device.Buffer, err error) *device.Buffer {
	if err != nil {
		if l.err == nil {
			l.err = err
		}
		return nil
	}
	l.buffers = append(l.buffers, b)
	return b
}

// norm loads NAME.weight and, if present, NAME.bias.
func (l *loader) norm(name string, optional bool, n int) norm {
	w := l.vector(name+".weight", optional, n)
	if w == nil {
		return norm{}
	}
	return norm{w, l.vector(name+".bias", true, n)}
}

// linear loads NAME.weight [out in] and, if present, NAME.bias. out = -1 allows any number of outputs.
func (l *loader) linear(name string, optional bool, out, in int) linear {
	t := l.find(name+".weight", optional, out, in)
	if t == nil {
		return linear{}
	}
	if _, rows := t.Row(); out < 0 {
		out = int(rows) // any number; the size of the file limits it
	}
	return linear{l.upload([]*gguf.Tensor{t}, out, in), l.vector(name+".bias", true, out)}
}

// experts loads the matrices [out in] of all experts.
func (l *loader) experts(name string, n, out, in int) linear {
	t := l.find(name+".weight", false, n, out, in)
	if t == nil || l.err != nil {
		return linear{}
	}
	return linear{w: l.upload([]*gguf.Tensor{t}, n, out, in)}
}

// part is one of several matrices to stack.
type part struct {
	name string
	rows int
}

// stacked loads matrices with the same number of columns as one matrix, stacked vertically, so that
// one product computes all. It returns false if they have different types, or if only some have
// biases.
func (l *loader) stacked(prefix string, cols int, parts ...part) (linear, bool) {
	var tensors []*gguf.Tensor
	rows, biases := 0, 0
	for _, p := range parts {
		t := l.f.Tensor(prefix + p.name + ".weight")
		if t == nil || l.find(t.Name, false, p.rows, cols) == nil || len(tensors) > 0 && t.Type != tensors[0].Type {
			return linear{}, false
		}
		if l.f.Tensor(prefix+p.name+".bias") != nil {
			biases++
		}
		tensors, rows = append(tensors, t), rows+p.rows
	}
	if biases != 0 && biases != len(parts) {
		return linear{}, false
	}
	y := linear{w: l.upload(tensors, rows, cols)}
	if biases == 0 || l.err != nil {
		return y, true
	}
	var bias []float32
	for _, p := range parts {
		bias = append(bias, l.numbers(prefix+p.name+".bias", false, p.rows)...)
	}
	if l.err == nil {
		y.bias = l.keep(device.Upload(l.ctx, l.dev, bias))
	}
	return y, true
}

// upload uploads concatenated tensors of one type in the format of the file: as blocks, or as f32,
// f16 or bf16.
func (l *loader) upload(tensors []*gguf.Tensor, shape ...int) *device.Buffer {
	if err := l.ctx.Err(); err != nil && l.err == nil {
		l.err = err
	}
	if l.err != nil {
		return nil
	}
	b, err := l.transfer(tensors, shape)
	if err != nil {
		err = fmt.Errorf("tensor %s: %w", tensors[0].Name, err)
	}
	return l.keep(b, err)
}

// transfer is upload in pieces, for formats that devices support.
func (l *loader) transfer(tensors []*gguf.Tensor, shape []int) (*device.Buffer, error) {
	format := tensors[0].Type
	var parts []io.Reader
	for _, t := range tensors {
		parts = append(parts, io.NewSectionReader(t, 0, t.Size()))
	}
	r, typ := io.MultiReader(parts...), op.QuantType(format)
	if typ == op.InvalidType {
		typ = floats[format]
	}
	if typ != op.InvalidType {
		return device.UploadFrom(l.ctx, l.dev, r, typ, shape...)
	}
	raw, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	x := make([]float32, len(raw)/format.Bytes()*format.Elements())
	if err := format.Dequantize(x, raw); err != nil {
		return nil, err
	}
	return device.Upload(l.ctx, l.dev, x, shape...)
}

// floats has the formats without blocks that devices support.
var floats = map[block.Format]op.DType{block.F32: op.F32, block.F16: op.F16, block.BF16: op.BF16}

// load uploads all tensors of the model to the device.
func (l *loader) load(c *Config, arch *architecture) *weights {
	w := &weights{}
	t := l.f.Tensor("token_embd.weight")
	if t == nil {
		l.fail("token_embd.weight", "missing")
		return w
	}
	_, rows := t.Row()
	if rows < 1 || rows > maxVocabulary {
		l.fail(t.Name, "%d rows: expected one for each of 1 to %d tokens", rows, maxVocabulary)
		return w
	}
	c.Vocabulary = int(rows)
	w.embedding = l.linear("token_embd", false, c.Vocabulary, c.Width).w
	if arch.encoder {
		w.types = l.linear("token_types", true, -1, c.Width).w
		w.positions = l.linear("position_embd", arch.rope != noRope, -1, c.Width).w
		w.embeddingNorm = l.norm("token_embd_norm", false, c.Width)
	} else {
		w.outputNorm = l.norm("output_norm", false, c.Width)
		w.output = l.linear("output", true, c.Vocabulary, c.Width)
		if w.output.w == nil {
			w.output.w = w.embedding
		}
	}
	w.ropeFactors = l.factors(c)
	for i := range c.Layers {
		w.layers = append(w.layers, l.layer(c, arch, fmt.Sprintf("blk.%d.", i)))
	}
	l.unused()
	return w
}

// ignored are parts of the names of tensors that may be unused: they follow from the metadata, or
// are not for text or embeddings (classifiers, and the projectors and encoders of images and sound).
var ignored = regexp.MustCompile(`rope_freqs|rope_factors|rot_embd|^(cls|mm|v|a)\.`)

// unused returns an error if a tensor was not loaded, because the model then needs an unsupported
// computation.
func (l *loader) unused() {
	for t := range l.f.Tensors() {
		if !l.used[t.Name] && !ignored.MatchString(t.Name) {
			l.fail(t.Name, "this package does not support the tensor in architecture %s", l.f.Architecture())
		}
	}
}

// factors returns the divisors of the frequencies of rope, or nil.
func (l *loader) factors(c *Config) []float32 {
	name := "rope_freqs.weight"
	if l.f.Tensor(name) == nil {
		name = "rope_factors_short.weight"
		if l.context > c.Rope.Scaling.OriginalContext {
			name = "rope_factors_long.weight"
		}
	}
	x := l.numbers(name, true, c.Rope.Dimensions/2)
	for _, f := range x {
		if !(f > 0) || math.IsInf(float64(f), 0) {
			l.fail(name, "factor %v: expected a finite number above 0", f)
		}
	}
	return x
}

// layer loads one layer.
func (l *loader) layer(c *Config, arch *architecture, prefix string) layer {
	var y layer
	q, k, v := c.Heads*c.KeyLength, c.KVHeads*c.KeyLength, c.KVHeads*c.ValueLength
	if l.f.Tensor(prefix+"attn_qkv.weight") != nil {
		y.qkv = l.linear(prefix+"attn_qkv", false, q+k+v, c.Width)
	} else if !l.stackAttention(&y, c, prefix, q, k, v) {
		y.q = l.linear(prefix+"attn_q", false, q, c.Width)
		y.k = l.linear(prefix+"attn_k", false, k, c.Width)
		y.v = l.linear(prefix+"attn_v", false, v, c.Width)
	}
	y.qNorm = l.norm(prefix+"attn_q_norm", true, c.KeyLength)
	y.kNorm = l.norm(prefix+"attn_k_norm", true, c.KeyLength)
	y.out = l.linear(prefix+"attn_output", false, c.Width, c.Heads*c.ValueLength)
	if arch.encoder {
		y.outNorm = l.norm(prefix+"attn_output_norm", false, c.Width)
		y.ffnOutNorm = l.norm(prefix+"layer_output_norm", false, c.Width)
	} else {
		y.norm = l.norm(prefix+"attn_norm", false, c.Width)
		y.ffnNorm = l.norm(prefix+"ffn_norm", false, c.Width)
		y.outNorm = l.norm(prefix+"post_attention_norm", true, c.Width)
		y.ffnOutNorm = l.norm(prefix+"post_ffw_norm", true, c.Width)
	}
	if c.Experts > 0 {
		y.router = l.linear(prefix+"ffn_gate_inp", false, c.Experts, c.Width)
		y.gate = l.experts(prefix+"ffn_gate_exps", c.Experts, c.FeedForward, c.Width)
		y.up = l.experts(prefix+"ffn_up_exps", c.Experts, c.FeedForward, c.Width)
		y.down = l.experts(prefix+"ffn_down_exps", c.Experts, c.Width, c.FeedForward)
		return y
	}
	l.feedForward(&y, c, arch, prefix)
	return y
}

// stackAttention stacks the matrices of q, k and v if possible. On a GPU it does not, because rope and the cache would
// have to copy the parts of the product; on a CPU one product of three times the size saves more time than this takes.
func (l *loader) stackAttention(y *layer, c *Config, prefix string, q, k, v int) (ok bool) {
	if l.dev.Info().Kind != device.CPU {
		return false
	}
	y.qkv, ok = l.stacked(prefix, c.Width, part{"attn_q", q}, part{"attn_k", k}, part{"attn_v", v})
	return ok
}

// feedForward loads the feed-forward part of a layer. It stacks gate and up if possible, so that
// one product reads x once.
func (l *loader) feedForward(y *layer, c *Config, arch *architecture, prefix string) {
	ok := arch.fused
	if ok {
		y.gateUp = l.linear(prefix+"ffn_up", false, 2*c.FeedForward, c.Width)
	} else {
		y.gateUp, ok = l.stacked(prefix, c.Width, part{"ffn_gate", c.FeedForward}, part{"ffn_up", c.FeedForward})
	}
	if !ok {
		y.gate = l.linear(prefix+"ffn_gate", arch.encoder, c.FeedForward, c.Width)
		y.up = l.linear(prefix+"ffn_up", false, c.FeedForward, c.Width)
	}
	y.down = l.linear(prefix+"ffn_down", false, c.Width, c.FeedForward)
}
