package batch

import "github.com/rayo-go/rayo/op"

// AttentionInputs are the operands of [Batch.AttentionWith] in addition to queries, keys and
// values. The zero Value means that an operand is absent.
type AttentionInputs struct {
	// Lengths, of i32, is how many of the keys there are: one for all, or [b].
	Lengths Value
	// Mask broadcasts to the scores [b h tq tk]. Of bool, it hides keys where it is
	// false; of a floating type, it is added to the scores, and hides keys where it is
	// -Inf.
	Mask Value
	// Table, of i32, is [b n]: keys and values are pages [pages p h d] then, and those
	// from key i·p on of one of the batch are in page Table[·, i]. A number that no
	// page has, such as -1, hides the keys of the page.
	Table Value
}

// AttentionWith is [Batch.Attention] with masks, lengths or pages of keys.
//
// A cache in pages, for example, grows a page at a time, and sequences with the same
// beginning share its pages:
//
//	y := b.AttentionWith(q, b.Use(keys), b.Use(values), batch.AttentionInputs{Lengths: n, Table: table}, op.AttentionOpts{Causal: true})
//
// # Errors
//
//   - [op.ErrShape] and [op.ErrUnsupported] at Execute, if shapes or element types do not fit.
func (r *Batch) AttentionWith(q, k, v Value, in AttentionInputs, opts ...op.AttentionOpts) Value {
	return r.apply(op.Attention, op.AttrsOf(opts), q, k, v, in.Lengths, in.Mask, in.Table)
}
