package llm

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// result selects the results of a pass.
type result int

const (
	lastLogits   result = iota // the logits of one row of each sequence
	bestToken                  // the greatest of these logits and its token
	topTokens                  // the topCount greatest logits, followed by their tokens
	allLogits                  // the logits of all rows
	hiddenStates               // the states of all rows after the last norm
)

// topCount is the number of tokens in a result topTokens.
const topCount = 64

// ofOneRow reports whether the result is for one row of each sequence.
func (r result) ofOneRow() bool { return r <= topTokens }

// tokens returns the number of tokens in the result, or 0 if it contains the whole vocabulary.
func (r result) tokens(vocabulary int) int {
	switch r {
	case bestToken:
		return 1
	case topTokens:
		return min(topCount, vocabulary)
	}
	return 0
}

// passShape identifies a plan: passes with the same shape share it.
type passShape struct {
	sequences int
	rows      int // tokens of each sequence
	result    result
	// picked is the number of rows with a result, if the rows are operands; 0 means that the last
	// row of each sequence has the result.
	picked int
}

// tokens returns the rows of all sequences.
func (s passShape) tokens() int { return s.sequences * s.rows }

// lookups returns the number of rows that are gathered for the results, or 0 if all rows have results.
func (s passShape) lookups() int {
	switch {
	case !s.result.ofOneRow():
		return 0
	case s.picked > 0:
		return s.picked
	case s.rows > 1:
		return s.sequences
	}
	return 0
}

// recorder records a pass over the model.
type recorder struct {
	*batch.Batch
	m *Model
	passShape

	tokens, positions, places, lengths, last batch.Value
	// The positions of the keys of sequences in the cache. table has their pages; all has their
	// rows, for caches whose pages attention cannot read.
	table, all batch.Value
	// temperature has the factors of queries by position, if Config.AttentionTemperature is not 0.
	temperature batch.Value
}

// use returns a weight, the zero Value for an absent one.
func (r *recorder) use(b *device.Buffer) batch.Value {
	if b == nil {
		return batch.Value{}
	}
	return r.Use(b)
}

// record records a pass and returns its result.
func (r *recorder) record() batch.Value {
	c, w, n := &r.m.config, r.m.weights, r.passShape.tokens()
	ints := func(n int) batch.Value { return batch.Upload(r.Batch, make([]int32, n)) }
	r.tokens, r.positions, r.lengths = ints(n), ints(n), ints(r.sequences)
	if c.Causal {
		r.places = ints(n)
		pages := r.sequences * r.m.cache.perSequence
		if r.m.cache.floats() {
			r.table = batch.Upload(r.Batch, make([]int32, pages), r.sequences, r.m.cache.perSequence)
		} else {
			r.all = ints(pages * PageSize)
		}
	}
	if c.AttentionTemperature != 0 {
		r.temperature = r.temperatures()
	}
	x := r.embed()
	for i := range w.layers {
		x = r.layer(x, i, &w.layers[i])
	}
	if r.result == hiddenStates {
		if r.m.arch.encoder {
			return x
		}
		return r.norm(x, w.outputNorm)
	}
	if n := r.passShape.lookups(); n == 1 {
		r.last = ints(1)
		x = r.SliceAt(x, 0, r.last, 1)
	} else if n > 1 {
		r.last = ints(n)
		x = r.Gather(x, r.last)
	}
	y := r.linear(r.norm(x, w.outputNorm), w.output)
	if c.LogitScale != 0 {
		y = r.Scale(y, c.LogitScale)
	}
	if s := c.LogitSoftcap; s > 0 {
		y = r.Scale(r.Tanh(r.Scale(y, 1/s)), s)
	}
	if n := r.result.tokens(c.Vocabulary); n > 0 {
		values, ids := r.TopK(y, n)
		y = r.Concat(1, values, r.Cast(ids, op.F32)) // f32 represents numbers up to maxVocabulary exactly
	}
	return y
}

// temperatures returns the factors [t 1 1] of the queries: see Config.AttentionTemperature.
func (r *recorder) temperatures() batch.Value {
	c := &r.m.config
	spans := r.FloorDivide(r.positions, batch.Upload(r.Batch, []int32{int32(c.Rope.Scaling.OriginalContext)}))
	y := r.Scale(r.Log1p(r.Cast(spans, op.F32)), c.AttentionTemperature)
	return r.Reshape(r.Add(y, batch.Upload(r.Batch, []float32{1})), r.passShape.tokens(), 1, 1)
}

// embed returns the embeddings of the tokens.
func (r *recorder) embed() batch.Value {
	c, w := &r.m.config, r.m.weights
	x := r.rowsOf(w.embedding, r.tokens)
	if c.EmbeddingScale != 1 {
		x = r.Scale(x, c.EmbeddingScale)
	}
	if w.types != nil {
		x = r.Add(x, r.rowsOf(w.types, batch.Upload(r.Batch, []int32{0}))) // token type 0
	}
	if w.positions != nil {
		x = r.Add(x, r.rowsOf(w.positions, r.positions))
	}
	if w.embeddingNorm.weight != nil {
		x = r.norm(x, w.embeddingNorm)
	}
	return x
}

// rowsOf returns rows of a table as f32.
func (r *recorder) rowsOf(table *device.Buffer, ids batch.Value) batch.Value {
	x := r.Gather(r.Use(table), ids)
	if x.Type() != op.F32 && x.Type() != op.InvalidType {
		x = r.Cast(x, op.F32)
	}
	return x
}

// linear multiplies rows by the transpose of a matrix, and adds the bias if there is one.
func (r *recorder) linear(x batch.Value, l linear) batch.Value {
	w, o := r.Use(l.w), op.MatMulQOpts{Int8: !r.m.exact}
	if w.Type().Quantized() {
		return r.MatMulQ(x, w, r.use(l.bias), o)
	}
	return r.MatMul(x, r.Transpose(w), r.use(l.bias))
}

func (r *recorder) norm(x batch.Value, n norm) batch.Value {
	o := op.NormOpts{Eps: r.m.config.NormEpsilon}
	if r.m.arch.layerNorm {
		return r.LayerNorm(x, r.use(n.weight), r.use(n.bias), o)
	}
	y := r.RMSNorm(x, r.use(n.weight), o)
	if n.bias != nil {
		y = r.Add(y, r.Use(n.bias))
	}
	return y
}

// layer records layer i.
func (r *recorder) layer(x batch.Value, i int, l *layer) batch.Value {
	if r.m.arch.encoder {
		x = r.norm(r.Add(x, r.linear(r.attention(x, i, l), l.out)), l.outNorm)
		return r.norm(r.Add(x, r.feedForward(x, l)), l.ffnOutNorm)
	}
	y := r.linear(r.attention(r.norm(x, l.norm), i, l), l.out)
	if l.outNorm.weight != nil {
		y = r.norm(y, l.outNorm)
	}
	x = r.Add(x, y)
	y = r.feedForward(r.norm(x, l.ffnNorm), l)
	if l.ffnOutNorm.weight != nil {
		y = r.norm(y, l.ffnOutNorm)
	}
	return r.Add(x, y)
}

// attention returns the concatenated heads of attention.
func (r *recorder) attention(x batch.Value, i int, l *layer) batch.Value {
	c, n := &r.m.config, r.passShape.tokens()
	var q, k, v batch.Value
	if l.qkv.w != nil {
		parts := r.Split(r.linear(x, l.qkv), 1, c.Heads*c.KeyLength, c.KVHeads*c.KeyLength, c.KVHeads*c.ValueLength)
		q, k, v = parts[0], parts[1], parts[2]
	} else {
		q, k, v = r.linear(x, l.q), r.linear(x, l.k), r.linear(x, l.v)
	}
	q, k = r.Reshape(q, n, c.Heads, c.KeyLength), r.Reshape(k, n, c.KVHeads, c.KeyLength)
	if l.qNorm.weight != nil {
		q = r.norm(q, l.qNorm)
	}
	if l.kNorm.weight != nil {
		k = r.norm(k, l.kNorm)
	}
	if r.m.turns(i) {
		q, k = r.turn(q, i), r.turn(k, i)
	}
	if c.AttentionTemperature != 0 {
		q = r.Mul(q, r.temperature)
	}
	q = r.Permute(r.Reshape(q, r.sequences, r.rows, c.Heads, c.KeyLength), 0, 2, 1, 3)
	o := op.AttentionOpts{Causal: c.Causal, Scale: c.AttentionScale, Softcap: c.AttentionSoftcap, Window: c.Window[i]}
	var y batch.Value
	if c.Causal {
		y = r.m.cache.attend(r, i, q, r.Reshape(k, n, c.KVHeads*c.KeyLength), v, o)
	} else {
		heads := func(x batch.Value, width int) batch.Value {
			return r.Permute(r.Reshape(x, r.sequences, r.rows, c.KVHeads, width), 0, 2, 1, 3)
		}
		y = r.Attention(q, heads(k, c.KeyLength), heads(v, c.ValueLength), batch.AttentionInputs{Lengths: r.lengths}, o)
	}
	return r.Reshape(r.Permute(y, 0, 2, 1, 3), n, c.Heads*c.ValueLength)
}

// turn applies rope to heads [t h d].
func (r *recorder) turn(x batch.Value, i int) batch.Value {
	c, t := &r.m.config, r.m.ropeOf(i)
	n := c.Rope.Dimensions
	rest := batch.Value{}
	if n < c.KeyLength {
		parts := r.Split(x, 2, n, c.KeyLength-n)
		x, rest = parts[0], parts[1]
	}
	in := batch.RopeInputs{Positions: r.positions, Frequencies: r.use(t.frequencies)}
	x = r.Rope(x, in, op.RopeOpts{Theta: t.base, Interleaved: c.Rope.Interleaved})
	if t.magnitude != 1 {
		x = r.Scale(x, t.magnitude)
	}
	if n < c.KeyLength {
		x = r.Concat(2, x, rest)
	}
	return x
}

// feedForward records the feed-forward part of a layer.
func (r *recorder) feedForward(x batch.Value, l *layer) batch.Value {
	act, f := r.m.arch.activation, r.m.config.FeedForward
	if l.router.w != nil {
		return r.experts(x, l)
	}
	var h batch.Value
	switch {
	case l.gateUp.w != nil:
		parts := r.Split(r.linear(x, l.gateUp), 1, f, f)
		h = r.Mul(r.Map(act, parts[0]), parts[1])
	case l.gate.w != nil:
		h = r.Mul(r.Map(act, r.linear(x, l.gate)), r.linear(x, l.up))
	default:
		h = r.Map(act, r.linear(x, l.up))
	}
	return r.linear(h, l.down)
}

// experts records a mixture of experts: each token passes through the experts that the router
// chooses, and their results are weighted and added.
func (r *recorder) experts(x batch.Value, l *layer) batch.Value {
	p := r.Softmax(r.linear(x, l.router))
	top, ids := r.TopK(p, r.m.config.ExpertsUsed)
	weights := r.Div(top, r.Sum(top, op.Axes(1).KeepDims()))
	o := op.MatMulExpertsOpts{Int8: !r.m.exact}
	of := func(x batch.Value, l linear) batch.Value { return r.MatMulExperts(x, r.Use(l.w), ids, o) }
	h := r.Mul(r.Map(r.m.arch.activation, of(x, l.gate)), of(x, l.up))
	y := r.Mul(of(h, l.down), r.Reshape(weights, append(weights.Shape(), 1)...))
	return r.Sum(y, op.Axes(1))
}
