package llm

import (
	"cmp"
	"context"
	"slices"

	"github.com/rayo-go/rayo/device"
)

// A pass over tokens of several sessions has a row for each token. For attention, each row is a
// sequence with one query, whose keys are those up to its own position. A pass stores the keys of
// all rows before attention reads them, so a row also sees the earlier rows of its session.

// span is the part of a request's tokens that a pass computes.
type span struct {
	*request
	rows int
}

// ends reports whether the pass computes the last token of the request, and so its results.
func (p span) ends() bool { return p.rows == len(p.tokens) }

// mixedRows limits the rows of a pass with generated tokens, because the generating sessions wait
// for the whole pass.
const mixedRows = 64

// width returns the maximum number of rows of a pass over several sessions.
func (c *Scheduler) width() int { return max(c.m.chunk, c.most, fewTokens) }

// sized returns the number of rows of the plan for a number of tokens: a power of two, or three
// quarters of one, because unused rows cost as much as others.
func (c *Scheduler) sized(rows int) int {
	n := power(rows)
	if n > fewTokens && rows <= n/4*3 {
		n = n / 4 * 3
	}
	return min(n, max(rows, c.width()))
}

// power returns the least power of two that is at least n.
func power(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// next takes the requests of the next pass from the front of the queue and chooses the number of
// tokens of each. The lock is held.
func (c *Scheduler) next() []span {
	var now []span
	var rest []*request
	results := 0
	for _, r := range c.queue {
		fits := len(now) < c.most && (len(now) == 0 || results+r.results <= max(c.most, fewTokens))
		if len(now) > 0 && (c.alone(r) || c.alone(now[0].request)) {
			fits = false
		}
		if fits {
			now, results = append(now, span{request: r}), results+r.results
		} else {
			rest = append(rest, r)
		}
	}
	c.queue = rest
	c.divide(now)
	return now
}

// sharedKeys is the maximum number of keys of a prompt that shares passes on a GPU.
const sharedKeys = 2048

// alone reports whether the tokens of a request need a pass without other requests. In a shared
// pass, each row is an attention of one query, which reads all keys. Then a q8_0 cache would be
// converted for each row; and on a GPU, a separate pass is faster for long prompts, because it
// reads the keys once for many rows.
func (c *Scheduler) alone(r *request) bool {
	switch n := len(r.tokens); {
	case n == 1:
		return false
	case !c.m.cache.floats():
		return true
	default:
		return n > fewTokens && r.start+n > sharedKeys && c.m.dev.Info().Kind != device.CPU
	}
}

// divide sets the rows of the spans. Requests that need one row, or the results of all rows, get
// all their rows; the other requests share the remaining rows of the pass.
func (c *Scheduler) divide(now []span) {
	if len(now) == 1 && now[0].results == 1 {
		n := len(now[0].tokens)
		now[0].rows = min(n, c.m.rowsFor(n, now[0].what))
		return
	}
	whole := 0
	var prompts []*span
	for i := range now {
		p := &now[i]
		if n := len(p.tokens); n == p.results {
			p.rows = n
			whole += n
		} else {
			prompts = append(prompts, p)
		}
	}
	if len(prompts) == 0 {
		return
	}
	width := c.width()
	if whole > 0 {
		width = min(width, mixedRows)
	}
	share(prompts, width-whole)
}

// share divides rows evenly among prompts; a prompt gets no more than it needs, and at least one.
func share(prompts []*span, rows int) {
	slices.SortStableFunc(prompts, func(x, y *span) int { return cmp.Compare(len(x.tokens), len(y.tokens)) })
	for i, p := range prompts {
		p.rows = min(len(p.tokens), max(rows/(len(prompts)-i), 1))
		rows -= p.rows
	}
}

// pass computes the spans.
func (c *Scheduler) pass(now []span) error {
	if err := c.m.begin(); err != nil {
		return err
	}
	defer c.m.users.Done()
	if p := now[0]; len(now) == 1 && p.results == 1 {
		shape := passShape{sequences: 1, rows: c.m.rowsFor(len(p.tokens), p.what), result: p.what}
		return p.s.compute(p.ctx, shape, p.start, p.tokens[:p.rows], p.y)
	}
	return c.together(now)
}

// shape returns the shape of a pass over the spans. All results of a pass have the same kind. If
// sessions request different kinds, the pass returns logits.
func (c *Scheduler) shape(now []span) passShape {
	total, results := 0, 0
	s := passShape{rows: 1}
	for _, p := range now {
		total += p.rows
		if !p.ends() {
			continue
		}
		if results > 0 && p.what != s.result {
			s.result = lastLogits
		} else {
			s.result = p.what
		}
		results += p.results
	}
	s.sequences = c.sized(total)
	if results < total {
		// Round up, so that few plans serve all numbers of results.
		s.picked = max(power(results), s.sequences/fewTokens)
		if s.picked >= s.sequences {
			s.picked = 0
		}
	}
	return s
}

// together computes the spans in one pass.
func (c *Scheduler) together(now []span) error {
	ctx, shape := context.Background(), c.shape(now)
	p, err := c.m.pass(ctx, shape)
	if err != nil {
		return err
	}
	r := p.run()
	var rows []int // row of the result for each span that ends
	row, picked := 0, 0
	for _, q := range now {
		for i, id := range q.tokens[:q.rows] {
			r.set(p, row, []int32{id}, q.start+i, q.s.pages)
			if row++; !q.ends() || i < q.rows-q.results {
				continue
			}
			if at := row - 1; shape.picked == 0 {
				rows = append(rows, at)
			} else {
				r.last[picked] = int32(at)
				rows = append(rows, picked)
				picked++
			}
		}
	}
	n := cmp.Or(shape.picked, shape.sequences) * p.width
	if len(c.results) < n {
		c.results = make([]float32, n)
	}
	y := c.results[:n]
	if err := p.do(ctx, r, y); err != nil {
		return err
	}
	for _, q := range now {
		for i := 0; q.ends() && i < q.results; i++ {
			n := len(q.y) / q.results
			c.m.convert(q.y[i*n:][:n], q.what, y[rows[0]*p.width:][:p.width], shape.result)
			rows = rows[1:]
		}
	}
	return nil
}

// convert converts a row of results from kind from to kind to.
func (m *Model) convert(y []float32, to result, row []float32, from result) {
	if to == from {
		copy(y, row)
		return
	}
	greatestOf(y, row)
}

// greatestOf writes the greatest logits in descending order to the first half of y, and their
// tokens to the second half, as Batch.TopK does. If the logits contain NaN, it writes NaN to y[0].
func greatestOf(y, logits []float32) {
	n := len(y) / 2
	values, ids := y[:n], y[n:2*n]
	have := 0
	for id, x := range logits {
		if x != x {
			values[0] = x
			return
		}
		if have == n && x <= values[n-1] {
			continue
		}
		have = min(have+1, n)
		i := have - 1
		for ; i > 0 && values[i-1] < x; i-- {
			values[i], ids[i] = values[i-1], ids[i-1]
		}
		values[i], ids[i] = x, float32(id)
	}
}
