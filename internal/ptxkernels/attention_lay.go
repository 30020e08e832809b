package ptxkernels

import (
	"slices"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// attentionResult is the index of the result among the arrays of an attention; it follows q, k and v.
const attentionResult = op.AttentionV + 1

// attentionStrided says whether the kernel takes strides as parameters: Operands for q, k and v,
// Result for the result. Otherwise rows are contiguous.
type attentionStrided struct{ Operands, Result bool }

// of reports whether array i has strides.
func (l attentionStrided) of(i int) bool {
	if i == attentionResult {
		return l.Result
	}
	return l.Operands
}

// attentionSteps holds the strides of an array, in pairs of elements: between batch entries,
// between matrices, between rows, and between the heads of a packed matrix.
type attentionSteps struct{ batch, matrix, row, head ptx.U32 }

// attentionHead locates the rows of a matrix in each array.
type attentionHead struct {
	q, kv ptx.U32 // rows before the head
	start [4]ptx.U32
}

// attentionLine locates a row: its index among all rows if rows are contiguous, otherwise its
// offset in pairs of elements.
type attentionLine ptx.U32

// declareSteps declares the parameters for strides, if there are any.
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

// steps returns the arguments for the parameters that declareSteps declares.
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

// lay reads the layouts of a request. Rows must begin at multiples of 16 bytes, because tiles are
// copied in pieces of 16 bytes.
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

// mapped reports whether tensor maps can describe the operands. A tensor map cannot describe a
// broadcast operand.
func (c *attentionCut) mapped() bool {
	return !c.strided.Operands || !slices.ContainsFunc(c.places[:attentionResult], func(p portable.AttentionPlace) bool {
		return p.Batch == 0 || p.Head == 0 || p.Row == 0
	})
}

// head locates the rows of matrix head.
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

// line locates a row of a matrix in array i.
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

// pair returns the offset of a pair of a row in array i, in pairs.
func (a *attentionArgs) pair(i int, row attentionLine, pair ptx.U32) ptx.U32 {
	if a.strided.of(i) {
		return ptx.U32(row).Add(pair)
	}
	return ptx.U32(row).MulAdd(a.d2, pair)
}

// piece returns the offset of a 16-byte piece of a row in array i, in words.
func (a *attentionArgs) piece(i int, row attentionLine, piece ptx.U32) ptx.U32 {
	if a.strided.of(i) {
		return piece.MulAdd(ptx.U(4), a.words(ptx.U32(row)))
	}
	return ptx.U32(row).MulAdd(a.words(a.d2), piece.Mul(ptx.U(4)))
}
