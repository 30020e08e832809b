package op

import (
	"math"

	"github.com/rayo-go/rayo/internal/irhook"
)

// AttentionOpts are the parameters of [Attention].
type AttentionOpts struct {
	// Causal hides keys from queries at earlier positions. The last query is at the position of the
	// last key that lengths includes: if there are fewer queries than keys, the first keys are the
	// past.
	Causal bool
	Scale  float32 // factor of the scores; 0 means 1/sqrt(d)
	// Softcap, if not 0, bounds the scores before masks: a score x becomes
	// Softcap·tanh(x/Softcap).
	Softcap float32
	// Window, if not 0, hides keys whose distance from the query is Window or more: with Causal a
	// query sees its own key and the Window-1 keys before it.
	Window int
	// FromStart puts query i at the position of key i, whatever the number of keys, as in ONNX. It
	// has an effect with Causal and with Window.
	FromStart bool
}

// Attrs converts the options to parameters.
func (o AttentionOpts) Attrs() Attrs {
	a := Floats(written(o.Scale, 0), o.Softcap)
	a.I[0], a.I[1], a.I[2] = integer(o.Causal), o.Window, integer(o.FromStart)
	return a
}

// AttentionOptsOf returns the options from which [AttentionOpts.Attrs] made a.
func AttentionOptsOf(a *Attrs) AttentionOpts {
	return AttentionOpts{a.I[0] != 0, a.field(0, 0), a.Float(1), a.I[1], a.I[2] != 0}
}

// The operands of an [Attention].
const (
	AttentionQ = iota
	AttentionK
	AttentionV
	AttentionLengths
	AttentionMask
	AttentionTable
)

// defAttention is the scaled dot-product attention. [AttentionOf] reads the sizes.
var defAttention = Operation{define: func() *definition {
	return add(&definition{name: "attention", class: Shaped, selfTest: &irhook.SelfTest{Shapes: [][]int{{2, 5, 8}, {2, 6, 8}, {2, 6, 8}}}, doc: "the scaled dot-product attention, with one head of keys and values for each group of query heads",
		formula: "Σ_j softmax_j(cap(scale * Σ_d q[h, i, d] * k[h/g, j, d]) + mask[h, i, j]) * v[h/g, j, d]",
		inputs:  []string{"q", "k", "v", "lengths", "mask", "table"}, arity: [2]int{3, 6}, types: attentionTypes,
		shapes: "q [b h tq d], k [b h/g tk d] and v [b h/g tk e] with g a whole number, or all without b; lengths of i32, the number of keys that are valid: one element, or [b]; " +
			"mask of bool or of a floating type, which broadcasts to [b h tq tk]; with a table [b n] of i32, k and v are pages [pages p h/g d], key j is row j mod p of page table[j/p], and tk is n·p; gives [b h tq e]",
		options: "AttentionOpts", params: []Param{{Name: "scale", Doc: "factor of the scores; 0 stands for 1/sqrt(d)"}, {Name: "softcap", Doc: "bound of the scores, before masks; 0 stands for none"}},
		tol: Tolerance{ULP: 4, Mag: 1}, shape: attentionShape, ref: attentionReference,
		special: "Lengths are limited to [0, tk]. Keys and values may be f16 or bf16 where queries are f32; otherwise the softmax weights of 16-bit operands may be rounded to their type. " +
			"A bool mask hides keys where it is false; a floating mask is added to the scores and hides keys where it is -Inf. A page number outside [0, pages) hides the keys of that page. " +
			"A query that sees no key gives 0. NaN in a key or value that a query sees gives NaN there; hidden keys and values have no effect.",
		flops: func(a *Attrs, in, _ []Shape) float64 {
			s, _ := AttentionOf(a, in)
			seen := float64(s.Tq) * float64(s.Tk)
			if s.Causal {
				m := float64(min(s.Tq, s.Tk))
				seen -= m * (m - 1) / 2
				if s.Tq > s.Tk {
					seen -= float64(s.Tq-s.Tk) * float64(s.Tk)
				}
			}
			return 2 * float64(s.Batch) * float64(s.Heads) * seen * float64(s.D+s.E)
		}})
}}

// AttentionSizes holds the sizes and the options of an [Attention].
type AttentionSizes struct {
	Batch, Heads, KVHeads, Tq, Tk, D int
	E                                int // elements of a value and of a result
	// Lengths is the number of lengths: 0, 1, or one for each element of the batch.
	Lengths int
	Scale   float32

	Causal, FromStart bool
	Window            int // 0 for no window
	Softcap           float32
	// Mask holds the strides of a contiguous mask along [b h tq tk], in elements. The stride is 0
	// along axes where the mask repeats. Masked reports whether there is a mask.
	Mask   [4]int
	Masked bool
	// Pages is the number of pages, and Page is the number of keys of a page: 0 without a table.
	Pages, Page int
}

// Plain reports whether the attention uses no options except Causal, Scale and lengths, and all
// heads have one width.
func (s *AttentionSizes) Plain() bool {
	return s.Window == 0 && s.Softcap == 0 && !s.FromStart && !s.Masked && s.Page == 0 && s.D == s.E
}

// Of returns the sizes of the attention over the first length keys. A length outside [0, Tk] is
// limited to that range.
func (s AttentionSizes) Of(length int) AttentionSizes {
	s.Tk = max(0, min(length, s.Tk))
	return s
}

// Seen returns the number of keys that query i sees, counted from the first key. It ignores windows.
func (s AttentionSizes) Seen(i int, causal bool) int {
	if !causal {
		return s.Tk
	}
	return max(0, min(s.Tk, s.stands(i)+1))
}

// stands returns the position of query i among the keys. It may be negative, or Tk or more.
func (s *AttentionSizes) stands(i int) int {
	if s.FromStart {
		return i
	}
	return i + s.Tk - s.Tq
}

// Sight returns the range of keys, first to end-1, that query i sees if no mask hides them.
func (s AttentionSizes) Sight(i int) (first, end int) {
	end = s.Seen(i, s.Causal)
	if s.Window > 0 {
		at := s.stands(i)
		first = max(0, at-s.Window+1)
		end = min(end, max(0, at+min(s.Window, math.MaxInt-max(at, 0))))
	}
	return min(first, end), end
}

// AttentionOf returns the sizes of an [Attention] over operands of the given
// shapes, and the factor of the scores, or an ErrShape.
func AttentionOf(a *Attrs, in []Shape) (AttentionSizes, error) {
	o := AttentionOptsOf(a)
	s := AttentionSizes{Batch: 1, Causal: o.Causal, FromStart: o.FromStart, Window: o.Window, Softcap: o.Softcap}
	if o.Window < 0 || !(o.Softcap >= 0) || math.IsInf(float64(o.Softcap), 0) {
		return s, mismatch("attention with Window %d and Softcap %v: both must be 0 or more, and Softcap must be finite", o.Window, o.Softcap)
	}
	var all [AttentionTable + 1]Shape
	copy(all[:], in)
	q := all[AttentionQ]
	if len(q) != 3 && len(q) != 4 {
		return s, mismatch("queries have shape %v: expected three or four extents", q)
	}
	if len(q) == 4 {
		s.Batch, q = q[0], q[1:]
	}
	s.Heads, s.Tq, s.D = q[0], q[1], q[2]
	keys := s.keys
	if all[AttentionTable] != nil {
		keys = s.pages
	}
	if err := keys(all); err != nil {
		return s, err
	}
	if s.Heads != 0 && (s.KVHeads == 0 || s.Heads%s.KVHeads != 0) || s.Heads == 0 && s.KVHeads != 0 {
		return s, mismatch("%d query heads and %d key heads: the number of query heads must be a multiple of the number of key heads", s.Heads, s.KVHeads)
	}
	if n := all[AttentionLengths]; n != nil {
		size, err := n.Size()
		if err != nil || size != 1 && (len(n) != 1 || size != s.Batch) {
			return s, mismatch("lengths have shape %v: expected one element, or [%d] for the batch", n, s.Batch)
		}
		s.Lengths = size
	}
	s.Scale = a.read(0, float32(1/math.Sqrt(float64(max(s.D, 1)))))
	return s, s.mask(all[AttentionMask])
}

// keys reads the sizes of keys and values [b h tk d] or without b.
func (s *AttentionSizes) keys(in [AttentionTable + 1]Shape) error {
	q, k, v := in[AttentionQ], in[AttentionK], in[AttentionV]
	n := len(q)
	if len(k) != n || len(v) != n || !k[:n-1].Equal(v[:n-1]) {
		return mismatch("queries %v, keys %v, values %v: all must have the same number of extents, three or four, and keys and values may differ only in the last", q, k, v)
	}
	if n == 4 && q[0] != k[0] {
		return mismatch("queries %v, keys %v: the batches %d and %d must be equal", q, k, q[0], k[0])
	}
	if s.D != k[n-1] {
		return mismatch("queries %v, keys %v: their last extents %d and %d must be equal", q, k, s.D, k[n-1])
	}
	s.KVHeads, s.Tk, s.E = k[n-3], k[n-2], v[n-1]
	return nil
}

// pages reads the sizes of keys and values [pages p h d] with a table [b n].
func (s *AttentionSizes) pages(in [AttentionTable + 1]Shape) error {
	k, v, t := in[AttentionK], in[AttentionV], in[AttentionTable]
	if len(k) != 4 || len(v) != 4 || !k[:3].Equal(v[:3]) || k[3] != s.D {
		return mismatch("pages of keys %v and of values %v: both must have four extents, [pages p h %d], and values may differ only in the last", k, v, s.D)
	}
	if len(t) != 2 || t[0] != s.Batch {
		return mismatch("table %v for a batch of %d: expected [%d n]", t, s.Batch, s.Batch)
	}
	if k[1] == 0 {
		return mismatch("pages of keys %v: a page must hold at least one key", k)
	}
	s.Pages, s.Page, s.KVHeads, s.E = k[0], k[1], k[2], v[3]
	n, err := Shape{t[1], k[1]}.Size()
	s.Tk = n
	return err
}

// mask sets the strides of a mask of shape m over the scores.
func (s *AttentionSizes) mask(m Shape) error {
	if m == nil {
		return nil
	}
	scores := Shape{s.Batch, s.Heads, s.Tq, s.Tk}
	if len(m) > len(scores) {
		return mismatch("mask %v has more extents than scores %v", m, scores)
	}
	step := 1
	for i := len(scores) - 1; i >= 0; i-- {
		n := m.at(i, len(scores))
		if n != 1 && n != scores[i] {
			return mismatch("mask %v does not broadcast to scores %v", m, scores)
		}
		if n != 1 {
			s.Mask[i] = step
		}
		step *= n
	}
	s.Masked = true
	return nil
}

func attentionShape(a *Attrs, in []Shape) ([]Shape, error) {
	s, err := AttentionOf(a, in)
	if err != nil {
		return nil, err
	}
	if s.D == s.E {
		return []Shape{in[AttentionQ]}, nil
	}
	q := in[AttentionQ]
	return []Shape{append(append(Shape{}, q[:len(q)-1]...), s.E)}, nil
}

// attentionTypes accepts queries, keys and values of one floating type, or keys and values
// of 16 bits with queries of f32; lengths and a table of i32; and a mask of bool or of a
// floating type.
func attentionTypes(a *Attrs, in []DType) ([]DType, error) {
	for i := AttentionLengths; i < len(in); i++ {
		switch t := in[i]; {
		case t == InvalidType, i == AttentionMask && (t == Bool || t.Float()), i != AttentionMask && t == I32:
		case i == AttentionMask:
			return nil, unsupported("mask has type %v: expected bool or a floating-point type", t)
		default:
			return nil, unsupported("lengths and table have type %v: expected i32", t)
		}
	}
	if in[AttentionQ] == F32 && in[AttentionK].Float() {
		_, err := floats(a, in[AttentionK:AttentionLengths])
		return []DType{F32}, err
	}
	return floats(a, in[:AttentionLengths])
}
