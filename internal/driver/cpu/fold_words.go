package cpu

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// A wordReduction reduces rows of integers or truth values with an elementwise kernel, which
// repeatedly combines the two halves of a row until few elements remain.
type wordReduction struct {
	kernel   string // name of the kernel that combines elements, after the name of the type
	identity func(t op.DType) uint32
	combine  func(flip, v uint32, x []uint32) uint32 // combines v and elements; see flipOf
	place    bool                                    // the result is the index of the element
	count    bool                                    // counts elements that are not 0
	floats   bool                                    // also reduces float32, if package simd has the kernel for rows
	finish   func(v uint32, n int) uint32            // computes the result; nil if it is the combined value
	decides  func(v uint32, n int) bool              // whether the result for n elements decides the result for all
}

// wordReductions has the wordReduction of operations after [UseReductions]. An element is a 32-bit word; a bool is 0 or
// 1.
var wordReductions map[*op.Operation]*wordReduction

func useWordReductions() {
	wordReductions = map[*op.Operation]*wordReduction{
		op.Sum:          {kernel: "add", identity: zeroWord, combine: addWords},
		op.Prod:         {kernel: "mul", identity: oneWord, combine: mulWords, floats: true},
		op.Max:          {kernel: "maximum", identity: leastWord, combine: maxWords},
		op.Min:          {kernel: "minimum", identity: greatestWord, combine: minWords},
		op.ArgMax:       {kernel: "maximum", identity: leastWord, combine: maxWords, place: true},
		op.ArgMin:       {kernel: "minimum", identity: greatestWord, combine: minWords, place: true},
		op.CountNonzero: {kernel: "add", identity: zeroWord, combine: addWords, count: true},
		op.Any: {kernel: "add", identity: zeroWord, combine: addWords, count: true, finish: anyWord,
			decides: func(v uint32, _ int) bool { return v > 0 }},
		op.All: {kernel: "add", identity: zeroWord, combine: addWords, count: true, finish: allWords,
			decides: func(v uint32, n int) bool { return v < uint32(n) }},
	}
}

func zeroWord(op.DType) uint32 { return 0 }
func oneWord(t op.DType) uint32 {
	if t == op.F32 {
		return math.Float32bits(1)
	}
	return 1
}
func leastWord(t op.DType) uint32    { return flipOf(t) }
func greatestWord(t op.DType) uint32 { return math.MaxUint32 ^ flipOf(t) }

// flipOf returns the mask whose xor maps elements of a type to unsigned integers in the same order.
func flipOf(t op.DType) uint32 {
	if t == op.I32 {
		return 1 << 31
	}
	return 0
}

func addWords(_, v uint32, x []uint32) uint32 {
	for _, e := range x {
		v += e
	}
	return v
}

func mulWords(_, v uint32, x []uint32) uint32 {
	for _, e := range x {
		v *= e
	}
	return v
}

func maxWords(flip, v uint32, x []uint32) uint32 {
	v ^= flip
	for _, e := range x {
		v = max(v, e^flip)
	}
	return v ^ flip
}

func minWords(flip, v uint32, x []uint32) uint32 {
	v ^= flip
	for _, e := range x {
		v = min(v, e^flip)
	}
	return v ^ flip
}

func mulFloats(_, v uint32, x []uint32) uint32 {
	p := math.Float32frombits(v)
	for _, e := range x {
		p *= math.Float32frombits(e)
	}
	return math.Float32bits(p)
}

// anyWord and allWords convert the number of elements that are not 0, of n, to a truth value.
func anyWord(v uint32, _ int) uint32 { return min(v, 1) }
func allWords(v uint32, n int) uint32 {
	if v == uint32(n) {
		return 1
	}
	return 0
}

// reducesWords reports whether a wordTask computes the operation.
func (o *opStep) reducesWords() bool {
	r := wordReductions[o.op]
	typ := o.in[0].typ
	return r != nil && (r.count || !typ.Float() || r.floats && typ == op.F32 && simd.FoldRows(r.name(typ)) != nil) && o.in[0].layout == nil
}

// name returns the name of the kernel that combines elements of a type.
func (r *wordReduction) name(t op.DType) string {
	if t != op.I32 && t != op.F32 || r.count {
		t = op.U32
	}
	return t.String() + "." + r.kernel
}

// countsBytes reports whether s counts truth values that are converted from bytes in memory. A
// wordTask reads such bytes directly.
func (d *processor) countsBytes(s *driver.Step) bool {
	r := wordReductions[s.Op]
	if r == nil || !r.count || s.Pre == nil || s.Pre[0] == nil || d.portable {
		return false
	}
	return truthOfBytes(s.Pre[0])
}

// truthOfBytes reports whether a program converts bytes, in their order in memory, to truth values.
func truthOfBytes(p *driver.Fused) bool {
	if len(p.In) != 1 || len(p.Body) != 1 || p.Body[0].Op != op.Cast || p.Body[0].Type != op.Bool {
		return false
	}
	in := &p.In[0]
	return in.Slot >= 0 && (in.Type == op.U8 || in.Type == op.I8) && in.Broadcast == op.Full && in.Layout == nil
}

// A wordTask applies a wordReduction to rows. Long rows are reduced in pieces.
type wordTask struct {
	d          *processor
	typ        op.DType // U8 if it counts bytes that are not 0
	reduction  *wordReduction
	fn         kernel
	folds      simd.RowFold // kernel that folds rows, or nil
	combine    func(flip, v uint32, x []uint32) uint32
	flip       uint32
	identity   uint32
	rows, cols int

	x       source
	dst     []uint32
	pieces  int // number of pieces of a row
	group   int // number of rows in a part, if each row is one piece
	found   []foundWord
	decided atomic.Bool // the other pieces cannot change the result of the row
	ctx     context.Context
	stopped atomic.Bool
}

// foundWord is the result of a piece of a row, and its column.
type foundWord struct {
	v  uint32
	at int
}

const (
	wordLanes  = 1024 // number of elements that one call combines
	wordRest   = 32   // number of elements from which on calls combine halves
	wordSought = 4096 // number of elements that are searched for an index
)

var wordLanesPool = sync.Pool{New: func() any { return new([wordLanes]uint32) }}

// operands implements typed.
func (t *wordTask) operands(types []op.DType) { t.typ = types[0] }

// source implements fed.
func (t *wordTask) source(p *program, at []place) { t.x.p, t.x.at = p, at }

// configure implements core.
func (t *wordTask) configure(o *op.Operation, a *op.Attrs, dims []op.Shape) error {
	n, err := dims[0].Size()
	if err != nil {
		return err
	}
	t.rows, t.cols = 1, n
	if a.I[0] == op.AlongRows {
		t.rows, t.cols = dims[0].Rows()
	}
	t.reduction = wordReductions[o]
	t.flip, t.identity = flipOf(t.typ), t.reduction.identity(t.typ)
	name := t.reduction.name(t.typ)
	t.fn, t.folds, t.combine = kernelNamed(name), simd.FoldRows(name), t.reduction.combine
	switch {
	case t.reduction.count && t.typ != op.Bool:
		t.folds = simd.ZerosOfRows(t.typ == op.F32)
	case t.typ == op.F32:
		t.combine = mulFloats
	}
	return nil
}

// compute implements core.
func (t *wordTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.x.base, t.dst, t.ctx = in[0], unsigned(out[0], t.rows), ctx
	t.stopped.Store(false)
	t.decided.Store(false)
	defer func() { t.x.base, t.dst, t.ctx = nil, nil, nil }()
	t.pieces = max(1, (t.cols+callElements-1)/callElements)
	t.group = max(1, callElements/max(1, t.cols))
	parts := (t.rows + t.group - 1) / t.group
	if t.pieces > 1 {
		parts = t.rows * t.pieces
		if cap(t.found) < parts {
			t.found = make([]foundWord, parts)
		}
		t.found = t.found[:parts]
	}
	element := 0.1
	if t.x.p != nil {
		element += float64(t.x.p.cost.seed)
	}
	if ns := float64(t.rows*t.cols)*element + 20*float64(t.rows); parts > 1 && t.d.pool.Worth(ns) {
		t.d.pool.Do(parts, t)
	} else {
		for i := range parts {
			t.Part(i)
		}
	}
	if t.stopped.Load() {
		return ctx.Err()
	}
	b := wordLanesPool.Get().(*[wordLanes]uint32)
	for r := 0; r < t.rows && t.pieces > 1; r++ {
		all := t.found[r*t.pieces]
		for _, f := range t.found[r*t.pieces:][1:t.pieces] {
			all = t.join(b, all, f)
		}
		t.put(r, all)
	}
	wordLanesPool.Put(b)
	return nil
}

// Part implements workers.Task.
func (t *wordTask) Part(i int) {
	if t.stopped.Load() || t.ctx.Err() != nil {
		t.stopped.Store(true)
		return
	}
	b := wordLanesPool.Get().(*[wordLanes]uint32)
	defer wordLanesPool.Put(b)
	l := lanes.Get().(*lane)
	defer lanes.Put(l)
	l.open(&t.x, max(madeBlock, t.x.rows(t.cols)*min(t.cols, madeBlock)))
	defer l.shut(&t.x)
	if t.pieces > 1 {
		t.found[i] = foundWord{v: t.identity}
		if t.decided.Load() {
			return
		}
		from := i % t.pieces * callElements
		to, base := min(from+callElements, t.cols), i/t.pieces*t.cols
		f := t.find(b, l, base+from, base+to)
		f.at += from
		t.found[i] = f
		if d := t.reduction.decides; t.rows == 1 && d != nil && d(f.v, to-from) {
			t.decided.Store(true)
		}
		return
	}
	t.reduceRows(b, l, i*t.group, min((i+1)*t.group, t.rows))
}

// reduceRows reduces rows lo to hi, short ones several at a time.
func (t *wordTask) reduceRows(b *[wordLanes]uint32, l *lane, lo, hi int) {
	if t.cols == 0 || t.cols > madeBlock || t.typ == op.U8 {
		for r := lo; r < hi; r++ {
			t.put(r, t.find(b, l, r*t.cols, (r+1)*t.cols))
		}
		return
	}
	for step := t.x.rows(t.cols); lo < hi; lo += step {
		n := min(step, hi-lo)
		x := bitsOfFloats(l.feed(&t.x, lo*t.cols, (lo+n)*t.cols))
		if t.folds != nil && !t.reduction.place {
			t.folds(&t.dst[lo], &x[0], n, t.cols)
			t.finishRows(t.dst[lo:][:n])
			continue
		}
		for k := range n {
			row := x[k*t.cols:][:t.cols]
			f := foundWord{v: t.fold(b, row)}
			if t.reduction.place {
				f.at = simd.IndexWord(row, f.v)
			}
			t.put(lo+k, f)
		}
	}
}

// finishRows converts the kernel's values of rows to the results.
func (t *wordTask) finishRows(dst []uint32) {
	if t.reduction.count && t.typ != op.Bool { // minus the number of zeros
		for i := range dst {
			dst[i] += uint32(t.cols)
		}
	}
	if f := t.reduction.finish; f != nil {
		for i, v := range dst {
			dst[i] = f(v, t.cols)
		}
	}
}

// put stores the result of a row.
func (t *wordTask) put(r int, f foundWord) {
	switch {
	case t.reduction.place:
		t.dst[r] = uint32(f.at)
	case t.reduction.finish != nil:
		t.dst[r] = t.reduction.finish(f.v, t.cols)
	default:
		t.dst[r] = f.v
	}
}

// join combines the results of two pieces. The piece of all precedes the piece of f.
func (t *wordTask) join(b *[wordLanes]uint32, all, f foundWord) foundWord {
	b[0] = f.v
	if v := t.combine(t.flip, all.v, b[:1]); v != all.v {
		return foundWord{v, f.at}
	}
	return all
}

// find reduces elements lo to hi of one row. The index in the result is relative to lo.
func (t *wordTask) find(b *[wordLanes]uint32, l *lane, lo, hi int) foundWord {
	step := hi - lo
	switch {
	case t.typ == op.U8:
		return foundWord{v: uint32(simd.CountNonzeroBytes(arrayOf[uint8](unsafe.Add(t.x.base, lo), hi-lo)))}
	case t.x.p != nil:
		step = madeBlock
	case t.reduction.place:
		step = wordSought
	}
	all := foundWord{v: t.identity, at: lo}
	for from := lo; from < hi; from += step {
		v := t.fold(b, bitsOfFloats(l.feed(&t.x, from, min(from+step, hi))))
		all = t.join(b, all, foundWord{v, from})
	}
	if t.reduction.place {
		all.at += simd.IndexWord(bitsOfFloats(l.feed(&t.x, all.at, min(all.at+step, hi))), all.v)
	}
	all.at -= lo
	return all
}

// bitsOfFloats returns the bits of elements.
func bitsOfFloats(x []float32) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}

// fold combines elements with a kernel for whole rows, if there is one. Otherwise it combines them
// in lanes, and then halves of the lanes until few remain.
func (t *wordTask) fold(b *[wordLanes]uint32, x []uint32) uint32 {
	n := len(x)
	switch {
	case t.reduction.count && t.typ != op.Bool:
		return uint32(simd.CountNonzero(x, t.typ == op.F32))
	case t.folds != nil && n > 0:
		t.folds(&b[0], &x[0], 1, n)
		return b[0]
	case n < 2*wordRest:
		return t.combine(t.flip, t.identity, x)
	}
	w := min(wordLanes, 1<<(bits.Len(uint(n))-1))
	if m := min(w, n-w); m > 0 {
		t.merge(b[:], x[:m], x[w:])
		copy(b[m:w], x[m:])
	} else {
		copy(b[:w], x)
	}
	for at := 2 * w; at < n; at += w {
		t.merge(b[:], b[:], x[at:min(at+w, n)])
	}
	for ; w > wordRest; w /= 2 {
		t.merge(b[:w/2], b[:w/2], b[w/2:])
	}
	return t.combine(t.flip, t.identity, b[:w])
}

// merge sets dst to x combined with y, for the number of elements of the shortest slice.
func (t *wordTask) merge(dst, x, y []uint32) {
	t.fn(float(dst), float(x), float(y), nil, min(len(dst), len(x), len(y)), nil)
}

func float(x []uint32) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }
