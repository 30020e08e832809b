//go:build !js || !nowebgpu

package portable

import "github.com/rayo-go/rayo/kernel"

// spinLimit is the number of times that a lane polls for a partial.
const spinLimit = 1024

// lookBack computes partials and results in a single pass. Workgroups with even numbers
// publish the partial of a part; workgroups with odd numbers write the result of an
// earlier part, while a cache still holds its elements. To write a result, a lane group
// waits for the partials of its row, one lane for each part: one workgroup that combined
// them for all others would take longer. A device guarantees neither the order in which
// workgroups start nor their progress, so a lane that has waited for spinLimit iterations
// computes the missing partial itself. Without LookBack, lookBack only writes the result.
func (k *partials) lookBack(t *laneGroup, p *rowParams, s *rowSpec, x raggedInput, result func()) {
	if s.LookBack == 0 {
		result()
		return
	}
	b, turn, two := t.b, t.number, kernel.U(2)
	n, behind := turn.Div(two), b.U32(&p.Behind)
	read := t.read // no lane runs both branches
	b.If(turn.Mod(two).Eq(kernel.U(0)), func() {
		b.If(n.Lt(k.all), func() {
			t.number = n
			r := newRow(b, t, p, s, x)
			words := k.encode(r.reduceLocal(k.kind))
			b.If(t.lane.Eq(kernel.U(0)), func() {
				for i, w := range words {
					k.words.Store(k.word(r.piece, i), w)
				}
			})
		})
	}).Else(func() {
		t.read = read
		b.If(n.Ge(behind), func() {
			t.number = n.Sub(behind)
			result()
		})
	})
}

// word returns the index of a word of a part.
func (k *partials) word(piece kernel.U32, i int) kernel.U32 {
	return piece.Mul(kernel.U(uint32(k.kind.words()))).Add(kernel.U(uint32(i)))
}

// encode returns the words of a partial. No word is 0: keys never are, and the complement
// of a number is 0 only for one NaN, which becomes another NaN.
func (k *partials) encode(f partial) (words []kernel.U32) {
	if k.kind.keyed {
		words = append(words, f.key)
	}
	for _, v := range f.numbers {
		words = append(words, v.AsU32().Not().Max(kernel.U(1)))
	}
	return words
}

// spinWait waits for the partial of a part of the row, and returns it.
func (k *partials) spinWait(r *row, piece kernel.U32) (f partial) {
	b, zero := r.t.b, kernel.U(0)
	words := kernel.NewVars(b, "word", k.kind.words(), zero)
	missing := func() kernel.Bool {
		some := words[0].Get().Eq(zero)
		for _, w := range words[1:] {
			some = some.Or(w.Get().Eq(zero))
		}
		return some
	}
	b.For(zero, kernel.U(spinLimit), func(kernel.U32) {
		for i, w := range words {
			w.Set(k.words.Load(k.word(piece, i)))
		}
		b.If(missing().Not(), b.Break)
	})
	b.If(missing(), func() {
		for i, w := range k.encode(r.fallback(piece).reduceLocal(k.kind)) {
			words[i].Set(w)
		}
	})
	if k.kind.keyed {
		f.key, words = words[0].Get(), words[1:]
	}
	for _, w := range words {
		f.numbers = append(f.numbers, w.Get().Not().AsF32())
	}
	return f
}

// fallback returns a part of the row for a single lane to reduce.
func (r *row) fallback(piece kernel.U32) *row {
	one := &row{unit: r.unit, raggedInput: r.raggedInput, piece: piece, pieces: r.pieces, parted: r.parted}
	one.stridedRange = stridedRange{t: &laneGroup{groupLayout: groupLayout{GroupLanes: 1, Groups: 1}, b: r.t.b, lane: kernel.U(0)}, fewRegisters: true}
	one.first, one.last = r.extent(piece)
	if r.ragged != nil {
		one.unit, one.raggedInput.units = 1, func(i kernel.U32) []kernel.F32 { return []kernel.F32{r.single(i)} }
		one.first, one.last = r.singles(piece)
	}
	return one
}
