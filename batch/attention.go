package batch

// AttentionInputs are the operands of [Batch.Attention] besides queries, keys and
// values. None stands for an absent one.
//
// A cache in pages, for example, grows a page at a time, and sequences with the same
// beginning share its pages:
//
//	y := b.Attention(q, b.Use(keys), b.Use(values), batch.AttentionInputs{Lengths: n, Table: table}, op.AttentionOpts{Causal: true})
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
