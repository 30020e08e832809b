package cpu

import (
	"context"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/op"
)

// A wordReduction reduces rows of integers or truth values by calls of an elementwise kernel:
// halves of a row are combined until few elements are left.
type wordReduction struct {
	kernel   string // combines elements, behind the name of their type
	identity func(t op.DType) uint32
	combine  func(flip, v uint32, x []uint32) uint32 // v and elements; see flipOf
	place    bool                                    // the result is where the element is
	count    bool                                    // elements that are not 0 are counted
	finish   func(v uint32, n int) uint32            // nil: the result is what remains
}

// wordReductions are the operations that reduce so. An element is a word of 32 bits; of a bool,
// 0 or 1.
var wordReductions = map[*op.Operation]*wordReduction{
	op.Sum:          {kernel: "add", identity: zeroWord, combine: addWords},
	op.Prod:         {kernel: "mul", identity: oneWord, combine: mulWords},
	op.Max:          {kernel: "maximum", identity: leastWord, combine: maxWords},
	op.Min:          {kernel: "minimum", identity: greatestWord, combine: minWords},
	op.ArgMax:       {kernel: "maximum", identity: leastWord, combine: maxWords, place: true},
	op.ArgMin:       {kernel: "minimum", identity: greatestWord, combine: minWords, place: true},
	op.CountNonzero: {kernel: "add", identity: zeroWord, combine: addWords, count: true},
	op.Any:          {kernel: "add", identity: zeroWord, combine: addWords, count: true, finish: anyWord},
	op.All:          {kernel: "add", identity: zeroWord, combine: addWords, count: true, finish: allWords},
}

func zeroWord(op.DType) uint32       { return 0 }
func oneWord(op.DType) uint32        { return 1 }
func leastWord(t op.DType) uint32    { return flipOf(t) }
func greatestWord(t op.DType) uint32 { return math.MaxUint32 ^ flipOf(t) }

// flipOf returns what makes elements of a type unsigned integers of the same order.
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

// anyWord and allWords turn the number of n elements that are not 0 into a truth value.
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
	return r != nil && (r.count || !o.in[0].typ.Float()) && o.in[0].layout == nil
}

// A wordTask applies a wordReduction to rows. Long rows are reduced in pieces.
type wordTask struct {
	d          *processor
	typ        op.DType
	reduction  *wordReduction
	fn         kernel
	flip       uint32
	identity   uint32
	rows, cols int

	x, dst  []uint32
	pieces  int // of a row
	group   int // rows of a part, if each is one piece
	found   []foundWord
	ctx     context.Context
	stopped atomic.Bool
}

// foundWord is the result of a piece of a row, and the column where it is.
type foundWord struct {
	v  uint32
	at int
}

const (
	wordLanes  = 1024 // elements that are combined in one call
	wordRest   = 32   // elements from which halves are combined by calls
	wordSought = 4096 // elements in which a place is sought at once
)

var wordLanesPool = sync.Pool{New: func() any { return new([wordLanes]uint32) }}

// operands implements typed.
func (t *wordTask) operands(types []op.DType) { t.typ = types[0] }

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
	name := t.typ.String()
	if t.typ == op.Bool {
		name = op.U32.String()
	}
	t.fn = kernelNamed(name + "." + t.reduction.kernel)
	return nil
}

// compute implements core.
func (t *wordTask) compute(ctx context.Context, in, out []unsafe.Pointer) error {
	t.x, t.dst, t.ctx = unsigned(in[0], t.rows*t.cols), unsigned(out[0], t.rows), ctx
	t.stopped.Store(false)
	defer func() { t.x, t.dst, t.ctx = nil, nil, nil }()
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
	ns := float64(len(t.x))*0.1 + 20*float64(t.rows)
	if parts > 1 && t.d.pool.Worth(ns) {
		t.d.pool.Do(parts, t)
	} else {
		for i := range parts {
			t.Part(i)
		}
	}
	if t.stopped.Load() {
		return ctx.Err()
	}
	for r := 0; r < t.rows && t.pieces > 1; r++ {
		t.put(r, t.join(t.found[r*t.pieces:][:t.pieces]))
	}
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
	if t.pieces > 1 {
		from := i % t.pieces * callElements
		row := t.x[i/t.pieces*t.cols:][:t.cols]
		t.found[i] = t.find(b, row[from:min(from+callElements, t.cols)])
		t.found[i].at += from
		return
	}
	for r := i * t.group; r < min((i+1)*t.group, t.rows); r++ {
		t.put(r, t.find(b, t.x[r*t.cols:][:t.cols]))
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

// join combines the pieces of a row in order.
func (t *wordTask) join(fs []foundWord) foundWord {
	all := fs[0]
	for _, f := range fs[1:] {
		if v := t.better(all.v, f.v); v != all.v {
			all = foundWord{v, f.at}
		}
	}
	return all
}

// find reduces elements that follow each other.
func (t *wordTask) find(b *[wordLanes]uint32, x []uint32) foundWord {
	switch {
	case t.reduction.count && t.typ != op.Bool:
		return foundWord{v: countNonzero(x, t.typ == op.F32)}
	case !t.reduction.place:
		return foundWord{v: t.fold(b, x)}
	}
	var best foundWord
	for from := 0; from < len(x); from += wordSought {
		part := x[from:min(from+wordSought, len(x))]
		v := t.fold(b, part)
		if from > 0 && t.better(best.v, v) == best.v {
			continue
		}
		best = foundWord{v, from + indexWord(part, v)}
	}
	return best
}

// better returns the result of two elements.
func (t *wordTask) better(v, w uint32) uint32 {
	return t.reduction.combine(t.flip, v, []uint32{w})
}

// fold combines elements in lanes, and halves of the lanes until few are left.
func (t *wordTask) fold(b *[wordLanes]uint32, x []uint32) uint32 {
	n := len(x)
	if n < 2*wordRest {
		return t.reduction.combine(t.flip, t.identity, x)
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
	return t.reduction.combine(t.flip, t.identity, b[:w])
}

// merge sets dst to x combined with y, as many elements as the shortest has.
func (t *wordTask) merge(dst, x, y []uint32) {
	t.fn(float(dst), float(x), float(y), nil, min(len(dst), len(x), len(y)), nil)
}

func float(x []uint32) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }

// indexWord returns the first place of v in x, which has it.
func indexWord(x []uint32, v uint32) int {
	i := 0
	for ; i+8 <= len(x); i += 8 {
		e := x[i:][:8]
		if e[0] == v || e[1] == v || e[2] == v || e[3] == v || e[4] == v || e[5] == v || e[6] == v || e[7] == v {
			break
		}
	}
	for i < len(x)-1 && x[i] != v {
		i++
	}
	return i
}

// countNonzero returns how many elements are not 0; of floats, -0 is 0.
func countNonzero(x []uint32, floats bool) uint32 {
	shift := 0
	if floats {
		shift = 1
	}
	var a, b, c, d uint32
	for ; len(x) >= 4; x = x[4:] {
		p, q, r, s := x[0]<<shift, x[1]<<shift, x[2]<<shift, x[3]<<shift
		a += (p | -p) >> 31
		b += (q | -q) >> 31
		c += (r | -r) >> 31
		d += (s | -s) >> 31
	}
	for _, e := range x {
		e <<= shift
		a += (e | -e) >> 31
	}
	return a + b + c + d
}
