// Package grammar restricts the output of a language model to a grammar: in GBNF, the notation of
// llama.cpp, or derived from a JSON schema.
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
// A pushdown automaton matches a text character by character and follows all derivations at once. A
// token may end in the middle of a character. The allowed tokens are computed once for each
// position of the grammar and cached, so that most steps take microseconds even with 128 thousand
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
	maxElements = 1 << 19 // elements after the expansion of repetitions
	maxNested   = 200     // nesting of parentheses
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

// rule has the positions of its alternatives in elems.
type rule struct {
	name string
	alts []int32
}

// element is one step of an alternative: a character of a set, a rule, or the end.
type element struct {
	kind elementKind
	i    int32 // index of the set or the rule
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

// Error reports an error and its line in a grammar.
type Error struct {
	Line int
	Err  error // wraps one of the errors of the package
}

// Error returns the line and the error.
func (e *Error) Error() string { return fmt.Sprintf("grammar: line %d: %v", e.Line, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
