package batch

// AttentionInputs has the operands of [Batch.Attention] in addition to queries, keys and values.
// None means that an operand is absent.
//
// A cache in pages, for example, grows a page at a time, and sequences with the same
// beginning share its pages:
//
//	y := b.Attention(q, b.Use(keys), b.Use(values), batch.AttentionInputs{Lengths: n, Table: table}, op.AttentionOpts{Causal: true})
type AttentionInputs struct {
	// Lengths, of i32, is the number of valid keys: one number for all, or [b].
	Lengths Value
	// Mask broadcasts to the scores [b h tq tk]. Of bool, it hides keys where it is
	// false; of a floating type, it is added to the scores, and hides keys where it is
	// -Inf.
	Mask Value
	// Table, of i32, is [b n]. With it, keys and values are pages [pages p h d], and page Table[·,
	// i] has the p keys from key i·p on of a batch entry. An invalid page number, such as -1, hides
	// the keys of the page.
	Table Value
}
