package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionResult counts the result among the arrays of an attention, behind q, k and v.
const attentionResult = op.AttentionV + 1

// attentionStrided says whether rows of q, k and v, and of the result, have strides, which are
// parameters. Otherwise rows are contiguous.
type attentionStrided struct{ Operands, Result bool }

// of reports whether it holds for an array.
func (l attentionStrided) of(i int) bool {
	if i == attentionResult {
		return l.Result
	}
	return l.Operands
}

// attentionSteps is how many pairs of elements are from one of the batch, one matrix and
// one row to the next, and from one head to the next of those in one matrix.
type attentionSteps struct{ batch, matrix, row, head ptx.U32 }

// attentionHead is where the rows of a matrix begin.
type attentionHead struct {
	q, kv ptx.U32 // rows before the head
	start [4]ptx.U32
}

// attentionLine is where a row begins: its number among all rows or, by strides, the
// pairs before it.
type attentionLine ptx.U32

// declareSteps declares the parameters that strides add.
func (a *attentionArgs) declareSteps(k *ptx.Kernel) {
	if a.strided == (attentionStrided{}) {
		return
	}
	param := func(name string) ptx.U32 { return ptx.Param[ptx.U32](k, name) }
	a.heads, a.kvHeads = param("heads_of_one"), param("kv_of_one")
	for i, of := range [...]string{"q", "k", "v", "y"} {
		if a.strided.of(i) {
			a.steps[i] = attentionSteps{param(of + "_batch"), param(of + "_matrix"), param(of + "_row"), param(of + "_head")}
		}
	}
}

// steps returns the arguments of what declareSteps declares.
func (c *attentionCut) steps() []Arg {
	if c.strided == (attentionStrided{}) {
		return nil
	}
	share, heads := 1, c.Heads // heads of a matrix, and matrices
	if c.packed {
		share, heads = c.Heads/c.KVHeads, c.KVHeads
	}
	args := []Arg{word(uint32(heads)), word(uint32(c.KVHeads))}
	for i, p := range c.places {
		if !c.strided.of(i) {
			continue
		}
		matrix := p.Head
		if i == op.AttentionQ || i == attentionResult {
			matrix *= share
		}
		for _, n := range []int{p.Batch, matrix, p.Row, p.Head} {
			args = append(args, word(uint32(n/2)))
		}
	}
	return args
}

// lay takes the layouts of a request. Rows begin at multiples of 16 bytes, as copies of
// tiles do.
func (c *attentionCut) lay(r *portable.Request) (err error) {
	layouts, laid := portable.AttentionLayouts(r)
	if !laid {
		return nil
	}
	if c.places, err = portable.AttentionPlaces(&c.AttentionSizes, layouts); err != nil {
		return err
	}
	c.strided = attentionStrided{layouts[0] != nil || layouts[1] != nil || layouts[2] != nil, layouts[attentionResult] != nil}
	for i := range c.places {
		// Strides of axes with one place do not matter, and are made such as maps have.
		p, heads, rows := &c.places[i], c.KVHeads, c.Tk
		if i == op.AttentionQ || i == attentionResult {
			heads, rows = c.Heads, c.Tq
		}
		for _, x := range []struct {
			n    int
			step *int
		}{{c.Batch, &p.Batch}, {heads, &p.Head}, {rows, &p.Row}} {
			if x.n == 1 {
				*x.step = c.D
			}
		}
		if (p.Off|p.Batch|p.Head|p.Row)*c.typ.Size()%16 != 0 {
			return unsupported("array %d of attention in the layout %v", i, layouts[i])
		}
	}
	if c.places[attentionResult].Off != 0 || c.strided.Result && r.Post != nil {
		return unsupported("a result in the layout %v", layouts[attentionResult])
	}
	return nil
}

// operand returns the argument of an operand.
func (c *attentionCut) operand(i int) Arg {
	a := input(i)
	if c.strided.Operands {
		a.Off = int64(c.places[i].Off) * int64(c.typ.Size())
	}
	return a
}

// mapped reports whether tensor maps can describe the operands: none of them may be broadcast.
func (c *attentionCut) mapped() bool {
	return !c.strided.Operands || !slices.ContainsFunc(c.places[:attentionResult], func(p portable.AttentionPlace) bool {
		return p.Batch == 0 || p.Head == 0 || p.Row == 0
	})
}

// head returns where the rows of a matrix begin.
func (a *attentionArgs) head(head ptx.U32) *attentionHead {
	h := &attentionHead{q: head.Mul(a.rows), kv: head.Div(a.group).Mul(a.tk)}
	for i, s := range a.steps {
		if !a.strided.of(i) {
			continue
		}
		n, heads := head, a.heads
		if i == op.AttentionK || i == op.AttentionV {
			n, heads = head.Div(a.group), a.kvHeads
		}
		h.start[i] = n.Div(heads).MulAdd(s.batch, n.Rem(heads).Mul(s.matrix))
	}
	return h
}

// operand returns q, k or v.
func (a *attentionArgs) operand(i int) ptx.Global[ptx.B32] {
	return [...]ptx.Global[ptx.B32]{a.q, a.keys, a.values}[i]
}

// line returns where a row of a matrix begins, in array i.
func (a *attentionArgs) line(i int, of *attentionHead, row ptx.U32) attentionLine {
	queries := i == op.AttentionQ || i == attentionResult
	switch s := a.steps[i]; {
	case a.strided.of(i) && queries && a.packed:
		return attentionLine(row.Div(a.tq).MulAdd(s.head, row.Rem(a.tq).MulAdd(s.row, of.start[i])))
	case a.strided.of(i):
		return attentionLine(row.MulAdd(s.row, of.start[i]))
	case queries:
		return attentionLine(of.q.Add(row))
	}
	return attentionLine(of.kv.Add(row))
}

// pair returns how many pairs are before one of a row.
func (a *attentionArgs) pair(i int, row attentionLine, pair ptx.U32) ptx.U32 {
	if a.strided.of(i) {
		return ptx.U32(row).Add(pair)
	}
	return ptx.U32(row).MulAdd(a.d2, pair)
}

// piece returns how many words are before a piece of 16 bytes of a row.
func (a *attentionArgs) piece(i int, row attentionLine, piece ptx.U32) ptx.U32 {
	if a.strided.of(i) {
		return piece.MulAdd(ptx.U(4), a.words(ptx.U32(row)))
	}
	return ptx.U32(row).MulAdd(a.words(a.d2), piece.Mul(ptx.U(4)))
}
