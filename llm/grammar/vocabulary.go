package grammar

import (
	"bytes"
	"slices"
)

// Vocabulary is the tokens of a model, in an order that lets common beginnings be matched
// once. It does not change.
type Vocabulary struct {
	tokens [][]byte
	order  []int32 // ids of the tokens that are not empty, by their bytes
	common []int32 // how many first bytes a token of order has in common with the one before
	depth  int     // bytes of the longest
}

// NewVocabulary returns the vocabulary in which token id stands for the bytes tokens[id].
// Tokens of no bytes, as those that end a text should be given, are never allowed. The slices
// are kept: do not change them.
func NewVocabulary(tokens [][]byte) *Vocabulary {
	v := &Vocabulary{tokens: tokens}
	for id, t := range tokens {
		if len(t) > 0 {
			v.order = append(v.order, int32(id))
			v.depth = max(v.depth, len(t))
		}
	}
	slices.SortFunc(v.order, func(a, b int32) int { return bytes.Compare(tokens[a], tokens[b]) })
	v.common = make([]int32, len(v.order))
	for i := 1; i < len(v.order); i++ {
		v.common[i] = int32(commonBytes(tokens[v.order[i-1]], tokens[v.order[i]]))
	}
	return v
}

func commonBytes(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// Size returns the number of tokens.
func (v *Vocabulary) Size() int { return len(v.tokens) }

// Mask is a set of tokens.
type Mask []uint64

// Has reports whether a token is in the set.
func (m Mask) Has(id int32) bool { return uint(id)>>6 < uint(len(m)) && m[id>>6]>>(id&63)&1 != 0 }

func (m Mask) add(id int32) { m[id>>6] |= 1 << (id & 63) }

func (v *Vocabulary) mask() Mask { return make(Mask, (len(v.tokens)+63)/64) }

// visit is called with each token, by its index in order, where the text led to, and whether on the way
// the context came into play.
type visit func(i int, c cursor, out bool)

// walk matches tokens from a cursor on: all of them if list is nil, or those of which list has the indexes in
// order, rising.
func (v *Vocabulary) walk(a *automaton, from cursor, list []int32, f visit) {
	type level struct {
		c   cursor
		out bool
	}
	levels := make([]level, v.depth+1)
	levels[0] = level{c: from}
	n := len(v.order)
	if list != nil {
		n = len(list)
	}
	have := 0 // levels that are of the bytes of the token before
	failed := false
	for k := range n {
		i, common := k, 0
		switch {
		case list == nil:
			common = int(v.common[i])
		default:
			i = int(list[k])
			if k > 0 {
				common = commonBytes(v.tokens[v.order[list[k-1]]], v.tokens[v.order[i]])
			}
		}
		token := v.tokens[v.order[i]]
		if failed && common > have {
			// It begins as one that was not allowed.
			if levels[have].out {
				f(i, cursor{}, true)
			}
			continue
		}
		have, failed = min(have, common), false
		for have < len(token) {
			l := levels[have]
			l.out = l.out || l.c.need == 0 && a.ends(l.c.state, nodeOut)
			levels[have].out = l.out
			if !a.next(&l.c, token[have]) {
				failed = true
				break
			}
			have++
			levels[have] = l
		}
		if failed {
			f(i, cursor{}, levels[have].out)
		} else {
			f(i, levels[have].c, levels[have].out)
		}
	}
}
