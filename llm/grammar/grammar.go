// Package grammar restricts the output of a language model to a grammar: in llama.cpp's notation
// GBNF, or derived from a JSON schema.
//
//	g, err := grammar.FromJSONSchema(schema) // or grammar.Parse(text)
//	if err != nil { ... }
//	v := grammar.NewVocabulary(pieces)       // the bytes of each token, once for a model
//	m := g.Matcher(v)
//	for !finished {
//		allowed, err := m.Allowed()      // which tokens may follow
//		...                              // sample one of them; where m.Done(), also an end token
//		err = m.Accept(id)
//	}
//
// A grammar is matched character by character by a pushdown automaton that follows all ways at
// once; a token may end in the middle of a character. Which tokens may follow is worked out for
// each place of the grammar once and kept, so that most steps take microseconds also with 128 thousand
// tokens.
package grammar

import (
	"errors"
	"fmt"
	"sync"
)

// The errors. The package returns them wrapped, with details.
var (
	ErrSyntax      = errors.New("malformed grammar")
	ErrSchema      = errors.New("malformed JSON schema")
	ErrUnsupported = errors.New("not supported")
	ErrLimit       = errors.New("too large")
	ErrRejected    = errors.New("the grammar does not allow the text")
)

// Limits of a grammar.
const (
	maxSource   = 1 << 20 // bytes of its text
	maxElements = 1 << 19 // after repetitions are written out
	maxNested   = 200     // parentheses within one another
)

// Grammar is a grammar. It is safe for concurrent use.
type Grammar struct {
	source string
	elems  []element
	rules  []rule
	sets   []*runeSet

	mu     sync.Mutex
	places map[*Vocabulary]*places // the allowed tokens at each position, by vocabulary
}

// rule has where its alternatives begin in elems.
type rule struct {
	name string
	alts []int32
}

// element is one step of an alternative: a character of a set, a rule, or the end.
type element struct {
	kind elementKind
	i    int32 // of the set or the rule
}

type elementKind uint8

const (
	elemEnd elementKind = iota
	elemSet
	elemRule
)

// rootRule is the rule that a text matches. It is the first one.
const rootRule = 0

// String returns the grammar as GBNF text.
func (g *Grammar) String() string { return g.source }

// Error says in which line of a grammar something is wrong.
type Error struct {
	Line int
	Err  error // wraps one of the errors of the package
}

// Error returns the line and the mistake.
func (e *Error) Error() string { return fmt.Sprintf("grammar: line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
