package op

import "math"

// AttentionOpts are the parameters of [Attention].
type AttentionOpts struct {
	// Causal hides keys from queries that stand before them. The last query
	// stands at the last key, of those that lengths says there are: with fewer
	// queries than keys, the first keys are the past.
	Causal bool
	Scale  float32 // factor of the scores; 0 stands for 1/sqrt(d)
}

// Attrs returns the parameters in the form that graphs carry.
func (o AttentionOpts) Attrs() Attrs {
	a := Floats(written(o.Scale, 0))
	a.I[0] = integer(o.Causal)
	return a
}

// AttentionOptsOf reads what [AttentionOpts.Attrs] wrote.
func AttentionOptsOf(a *Attrs) AttentionOpts { return AttentionOpts{a.I[0] != 0, a.field(0, 0)} }

// Attention is the scaled dot-product attention. [AttentionOf] reads the sizes.
var Attention = add(&Operation{name: "attention", class: Shaped, doc: "the scaled dot-product attention, with one head of keys and values for each group of query heads",
	formula: "Σ_j softmax_j(scale * Σ_d q[h, i, d] * k[h/g, j, d]) * v[h/g, j, d]", inputs: []string{"q", "k", "v", "lengths"}, arity: [2]int{3, 4}, types: attentionTypes,
	shapes:  "q [b h tq d], k and v [b h/g tk d] with g a whole number, or all without b; lengths, of i32, how many of the keys there are: one, or [b]; gives the shape of q",
	options: "AttentionOpts", params: []Param{{Name: "scale", Doc: "factor of the scores; 0 stands for 1/sqrt(d)"}},
	tol: Tolerance{ULP: 4, Mag: 1}, shape: attentionShape, ref: attentionReference,
	special: "Lengths below 0 are 0, those above tk are tk. Weights of 16-bit operands may be rounded to their type. A query that sees no key gives 0. NaN in a key or value that a query sees gives NaN there; hidden ones do not matter.",
	flops: func(a *Attrs, in, _ []Shape) float64 {
		s, _ := AttentionOf(a, in)
		seen := float64(s.Tq) * float64(s.Tk)
		if AttentionOptsOf(a).Causal {
			m := float64(min(s.Tq, s.Tk))
			seen -= m * (m - 1) / 2
			if s.Tq > s.Tk {
				seen -= float64(s.Tq-s.Tk) * float64(s.Tk)
			}
		}
		return 4 * float64(s.Batch) * float64(s.Heads) * seen * float64(s.D)
	}})

// AttentionSizes is the sizes of an [Attention].
type AttentionSizes struct {
	Batch, Heads, KVHeads, Tq, Tk, D int
	// Lengths is how many lengths there are: none, one, or one for each of the
	// batch.
	Lengths int
	Scale   float32
}

// Of returns the sizes with as many keys as there are: the first ones.
func (s AttentionSizes) Of(length int) AttentionSizes {
	s.Tk = max(0, min(length, s.Tk))
	return s
}

// Seen returns how many keys query i sees: the first ones.
func (s AttentionSizes) Seen(i int, causal bool) int {
	if !causal {
		return s.Tk
	}
	return max(0, min(s.Tk, i+1+s.Tk-s.Tq))
}

// AttentionOf returns the sizes of an [Attention] over operands of the given
// shapes, and the factor of the scores, or an ErrShape.
func AttentionOf(a *Attrs, in []Shape) (AttentionSizes, error) {
	q, k, v := in[0], in[1], in[2]
	var s AttentionSizes
	if len(q) != len(k) || len(q) != 3 && len(q) != 4 || !k.Equal(v) {
		return s, mismatch("queries %v, keys %v, values %v: all have three or four extents, keys and values the same", q, k, v)
	}
	s.Batch = 1
	if len(q) == 4 {
		if q[0] != k[0] {
			return s, mismatch("queries %v, keys %v: batches of %d and %d", q, k, q[0], k[0])
		}
		s.Batch = q[0]
		q, k = q[1:], k[1:]
	}
	s.Heads, s.Tq, s.D, s.KVHeads, s.Tk = q[0], q[1], q[2], k[0], k[1]
	switch {
	case s.D != k[2]:
		return s, mismatch("queries %v, keys %v: heads of %d and %d elements", in[0], in[1], s.D, k[2])
	case s.Heads != 0 && (s.KVHeads == 0 || s.Heads%s.KVHeads != 0), s.Heads == 0 && s.KVHeads != 0:
		return s, mismatch("%d heads of queries share %d of keys", s.Heads, s.KVHeads)
	}
	if len(in) > 3 && in[3] != nil {
		n, err := in[3].Size()
		if err != nil || n != 1 && (len(in[3]) != 1 || n != s.Batch) {
			return s, mismatch("lengths %v for a batch of %d", in[3], s.Batch)
		}
		s.Lengths = n
	}
	s.Scale = a.read(0, float32(1/math.Sqrt(float64(max(s.D, 1)))))
	return s, nil
}

func attentionShape(a *Attrs, in []Shape) ([]Shape, error) {
	if _, err := AttentionOf(a, in); err != nil {
		return nil, err
	}
	return []Shape{in[0]}, nil
}

// attentionTypes takes one floating type, and lengths of i32.
func attentionTypes(a *Attrs, in []DType) ([]DType, error) {
	if len(in) > 3 && in[3] != InvalidType && in[3] != I32 {
		return nil, unsupported("lengths of type %v, not i32", in[3])
	}
	return floats(a, in[:3])
}

func attentionReference(a *Attrs, in, out []*Array) {
	shapes := []Shape{in[0].Shape, in[1].Shape, in[2].Shape}
	if len(in) > 3 && in[3] != nil {
		shapes = append(shapes, in[3].Shape)
	}
	s, _ := AttentionOf(a, shapes)
	causal := AttentionOptsOf(a).Causal
	y := out[0]
	y.Mag, y.half = make([]float64, len(y.Data)), make([]float64, len(y.Data))
	if len(y.Data) == 0 {
		return
	}
	scores := make([]float64, s.Tk)
	for r := range len(y.Data) / s.D {
		head := r / s.Tq // over the batch too
		kv := head / s.Heads * s.KVHeads
		kv += head % s.Heads / (s.Heads / s.KVHeads)
		q := in[0].Data[r*s.D:][:s.D]
		there := s
		if s.Lengths > 0 {
			there = s.Of(int(in[3].Data[head/s.Heads%s.Lengths]))
		}
		seen := there.Seen(r%s.Tq, causal)
		// An error of δ in each score changes each weight by a factor of at
		// most e**2δ.
		delta := 0.0
		for j := range seen {
			k := in[1].Data[(kv*s.Tk+j)*s.D:][:s.D]
			sum, mag := sumOf(q, func(i int, v float64) float64 { return v * k[i] })
			scores[j] = sum * float64(s.Scale)
			delta = max(delta, (mag*Depth(s.D)+math.Abs(sum)*2)*math.Abs(float64(s.Scale)))
		}
		_, sum, share := shifted(scores[:seen])
		m := math.Inf(-1)
		for _, v := range scores[:seen] {
			m = max(m, v)
		}
		depth := 2 * Depth(seen)
		for j := range seen {
			p := math.Exp(scores[j]-m) / sum
			v := in[2].Data[(kv*s.Tk+j)*s.D:][:s.D]
			for i, e := range v {
				t := p * e
				y.Data[r*s.D+i] += t
				// Sums are scaled again where a greater score is found: they lose twice.
				y.Mag[r*s.D+i] += math.Abs(t)*(2*delta+(m-scores[j])/2+share+depth) + 2*underflow(t)
				// Weights are rounded relative to the greatest. Those of f16 below
				// 2**-14 of it lose more: they are multiples of 2**-24.
				y.half[r*s.D+i] += math.Abs(t) + math.Abs(e)/sum*0x1p-14
			}
		}
	}
}
