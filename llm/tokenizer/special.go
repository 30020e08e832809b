package tokenizer

import "strings"

// specialTrie finds special tokens in a text: the token with the first position, and of several at
// this position the longest. Node 0 is the root.
type specialTrie struct {
	nodes []specialNode
	begin [2][256]bool // first bytes of the tokens: of all tokens, and of the tokens that are always recognised
}

type specialNode struct {
	next   map[byte]int32
	id     int32 // id of the token that ends here, or None
	always bool  // the token is recognised even without ParseSpecial
}

func (s *specialTrie) add(text string, id int32, always bool) {
	if len(s.nodes) == 0 {
		s.nodes = append(s.nodes, specialNode{id: None})
	}
	s.begin[0][text[0]] = true
	s.begin[1][text[0]] = s.begin[1][text[0]] || always
	at := int32(0)
	for i := range len(text) {
		next, ok := s.nodes[at].next[text[i]]
		if !ok {
			next = int32(len(s.nodes))
			if s.nodes[at].next == nil {
				s.nodes[at].next = make(map[byte]int32, 1)
			}
			s.nodes[at].next[text[i]] = next
			s.nodes = append(s.nodes, specialNode{id: None})
		}
		at = next
	}
	if n := &s.nodes[at]; n.id == None || always && !n.always {
		n.id, n.always = id, always
	}
}

// find returns the position of the first special token in the text, its id and its length, or the
// length of the text, None and 0.
func (s *specialTrie) find(text string, parse bool) (at int, id int32, n int) {
	begin := &s.begin[1]
	if parse {
		begin = &s.begin[0]
	}
	for at < len(text) {
		if begin[text[at]] {
			if id, n = s.longest(text[at:], parse); n > 0 {
				return at, id, n
			}
		}
		at++
	}
	return at, None, 0
}

// longest returns the longest special token at the beginning of the text.
func (s *specialTrie) longest(text string, parse bool) (id int32, n int) {
	id = None
	at := int32(0)
	for i := range len(text) {
		next, ok := s.nodes[at].next[text[i]]
		if !ok {
			break
		}
		at = next
		if e := &s.nodes[at]; e.id != None && (parse || e.always) {
			id, n = e.id, i+1
		}
	}
	return id, n
}

// asciiSpace is the white space that special tokens can strip.
const asciiSpace = " \t\n\v\f\r"

// The sides on which special tokens strip white space.
const (
	stripLeft = 1 << iota
	stripRight
)

// trimAround returns the text between two special tokens, or None, without the white space that the
// tokens strip.
func (v *vocabulary) trimAround(text string, left, right int32) string {
	if v.strip[left]&stripRight != 0 {
		text = strings.TrimLeft(text, asciiSpace)
	}
	if v.strip[right]&stripLeft != 0 {
		text = strings.TrimRight(text, asciiSpace)
	}
	return text
}
