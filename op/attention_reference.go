package op

import "math"

// attentionPlaces finds elements of the operands of an [Attention].
type attentionPlaces struct {
	AttentionSizes
	in []*Array
}

// length returns the number of keys of one element of the batch.
func (p *attentionPlaces) length(batch int) int {
	if p.Lengths == 0 {
		return p.Tk
	}
	return int(p.in[AttentionLengths].Data[batch%p.Lengths])
}

// row returns the row of key j in the keys and values, or false if the key is absent.
func (p *attentionPlaces) row(batch, head, j int) (int, bool) {
	if p.Page == 0 {
		return (batch*p.KVHeads+head)*p.Tk + j, true
	}
	n := p.Tk / p.Page
	page := int(p.in[AttentionTable].Data[batch*n+j/p.Page])
	return (page*p.Page+j%p.Page)*p.KVHeads + head, page >= 0 && page < p.Pages
}

// added returns the mask's summand for a score, or false if the mask hides the key.
func (p *attentionPlaces) added(batch, head, i, j int) (float64, bool) {
	if !p.Masked {
		return 0, true
	}
	v := p.in[AttentionMask].Data[batch*p.Mask[0]+head*p.Mask[1]+i*p.Mask[2]+j*p.Mask[3]]
	if p.in[AttentionMask].typ == Bool {
		return 0, v != 0
	}
	return v, !math.IsInf(v, -1)
}

// attentionKey is a key that a query sees.
type attentionKey struct {
	row   int     // of the values
	score float64 // with the mask's summand
	slack float64 // the error bound of the score, in units of ε
}

// seen appends the keys that query i of a head sees.
func (p *attentionPlaces) seen(keys []attentionKey, batch, head, i int) []attentionKey {
	there := p.Of(p.length(batch))
	// there has Tk set to the length, and gives the range of keys. Pages and masks are laid out for the Tk
	// of p, whatever the length.
	first, end := there.Sight(i)
	q := p.in[AttentionQ].Data[((batch*p.Heads+head)*p.Tq+i)*p.D:][:p.D]
	for j := first; j < end; j++ {
		row, is := p.row(batch, head/(p.Heads/p.KVHeads), j)
		more, sees := p.added(batch, head, i, j)
		if !is || !sees {
			continue
		}
		k := p.in[AttentionK].Data[row*p.D:][:p.D]
		sum, mag := sumOf(q, func(i int, v float64) float64 { return v * k[i] })
		score := sum * float64(p.Scale)
		slack := (mag*Depth(p.D) + math.Abs(sum)*2) * math.Abs(float64(p.Scale))
		if c := float64(p.Softcap); c != 0 {
			score = c * math.Tanh(score/c)
			slack += 8 * math.Abs(score)
		}
		if p.Masked {
			score += more
			slack += math.Abs(score) + math.Abs(more)
		}
		keys = append(keys, attentionKey{row, score, slack})
	}
	return keys
}

func attentionReference(a *Attrs, in, out []*Array) {
	shapes := make([]Shape, len(in))
	for i, x := range in {
		if x != nil {
			shapes[i] = x.Shape
		}
	}
	s, _ := AttentionOf(a, shapes)
	y := out[0]
	y.Mag, y.half = make([]float64, len(y.Data)), make([]float64, len(y.Data))
	if len(y.Data) == 0 {
		return
	}
	p := attentionPlaces{s, in}
	var keys []attentionKey
	for r := range len(y.Data) / s.E {
		head := r / s.Tq // over the batch too
		keys = p.seen(keys[:0], head/s.Heads, head%s.Heads, r%s.Tq)
		p.weigh(y, r, keys)
	}
}

// weigh adds up the values of the keys that the query of row r sees.
func (p *attentionPlaces) weigh(y *Array, r int, keys []attentionKey) {
	scores, m := make([]float64, len(keys)), math.Inf(-1)
	for i, k := range keys {
		scores[i] = k.score
		m = max(m, k.score)
	}
	_, sum, share := shifted(scores)
	// An error of δ in a score changes its weight by a factor of e**δ, and the sum of all weights
	// by the average of their changes.
	mean := 0.0
	for i, k := range keys {
		if w := math.Exp(scores[i]-m) / sum; w != 0 {
			mean += w * k.slack
		}
	}
	depth := 2 * Depth(len(keys))
	for i, k := range keys {
		w := math.Exp(scores[i]-m) / sum
		v := p.in[AttentionV].Data[k.row*p.E:][:p.E]
		for c, e := range v {
			t, at := w*e, r*p.E+c
			y.Data[at] += t
			if w != 0 {
				// A device that finds a greater score scales its sums again, so a term is rounded twice as often.
				y.Mag[at] += math.Abs(t)*(k.slack+mean+(m-scores[i])/2+share+depth) + 2*underflow(t)
			}
			// Weights are rounded relative to the greatest weight. Weights of f16 below 2**-14 of the
			// greatest lose more, because they are multiples of 2**-24.
			y.half[at] += math.Abs(t) + math.Abs(e)/sum*0x1p-14
		}
	}
}
