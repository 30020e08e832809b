package grammar

import (
	"bytes"
	"slices"
)

// Vocabulary holds the tokens of a model, sorted so that a common prefix of tokens is matched only
// once. It is immutable.
type Vocabulary struct {
	tokens [][]byte
	order  []int32    // ids of the nonempty tokens, sorted by their bytes
	common []int32    // length of the common prefix of a token of order and the previous one
	text   []byte     // the concatenated tokens in order
	start  []int      // start of each token in text, and the end of the last one
	first  [257]int32 // index in order of the first token that begins with each byte
	depth  int        // length of the longest token
}

// NewVocabulary returns the vocabulary in which token id has the bytes tokens[id]. Tokens without
// bytes are never allowed; give the tokens that end a text no bytes. Tokens of more than 64 KiB are
// not allowed either. The vocabulary keeps the slices: do not change them.
func NewVocabulary(tokens [][]byte) *Vocabulary {
	v := &Vocabulary{tokens: tokens}
	for id, t := range tokens {
		if 0 < len(t) && len(t) <= maxTokenBytes {
			v.order = append(v.order, int32(id))
			v.depth = max(v.depth, len(t))
		}
	}
	slices.SortFunc(v.order, func(a, b int32) int { return bytes.Compare(tokens[a], tokens[b]) })
	v.common = make([]int32, len(v.order))
	v.start = make([]int, len(v.order)+1)
	for i, id := range v.order {
		v.text = append(v.text, tokens[id]...)
		v.start[i+1] = len(v.text)
		v.first[int(tokens[id][0])+1]++
		if i > 0 {
			v.common[i] = int32(commonBytes(v.token(i-1), v.token(i)))
		}
	}
	for b := range 256 {
		v.first[b+1] += v.first[b]
	}
	return v
}

const maxTokenBytes = 1 << 16

// token returns the bytes of the token at an index of order.
func (v *Vocabulary) token(i int) []byte { return v.text[v.start[i]:v.start[i+1]] }

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

// visit is called for a token, given by its index i in order. c is the position after the token;
// its state is dead if the token does not match. out reports whether the match depends on the
// context.
type visit func(i int, c cursor, out bool)

// level is the position after the first bytes of a token.
type level struct {
	c   cursor
	out bool
}

// walk matches tokens from a cursor on: all of them if list is nil, or the tokens with the ascending
// indexes in list. It may skip calls of f for tokens that do not match in any context.
func (v *Vocabulary) walk(a *automaton, from cursor, list []int32, f visit) {
	levels := make([]level, v.depth+1)
	levels[0] = level{c: from, out: from.need == 0 && a.ends(from.state, nodeOut)}
	n := len(v.order)
	if list != nil {
		n = len(list)
	}
	have := 0 // levels that are valid from the previous token
	failed := false
	for k := 0; k < n; k++ {
		i, common := k, 0
		if list == nil {
			common = int(v.common[i])
		} else if i = int(list[k]); k > 0 {
			common = commonBytes(v.token(int(list[k-1])), v.token(i))
		}
		if failed && common > have {
			// It has the same prefix as a rejected token, and so do the following tokens.
			switch {
			case levels[have].out:
				f(i, cursor{}, true)
			case have == 0 && list == nil:
				k = int(v.first[int(v.text[v.start[i]])+1]) - 1
			}
			continue
		}
		token := v.token(i)
		have, failed = min(have, common), false
		for have < len(token) {
			l := levels[have]
			if failed = !a.next(&l.c, token[have]); failed {
				break
			}
			l.out = l.out || l.c.need == 0 && a.ends(l.c.state, nodeOut)
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
