package tokenizer

import "strings"

// joins has the bytes that precede a space inside a merged symbol. After any other byte, no merge
// crosses the beginning of a run of spaces, so that the text before and after this point can be encoded
// separately.
type joins [256]bool

// add records a merged symbol.
func (j *joins) add(text string) {
	for i := 1; i < len(text); i++ {
		if strings.HasPrefix(text[i:], space) && !strings.HasSuffix(text[:i], space) {
			j[text[i-1]] = true
		}
	}
}

// words calls word with the words of a text, in order. Their concatenation is the text.
func (j *joins) words(text string, word func(string)) {
	for text != "" {
		n := j.wordEnd(text)
		word(text[:n])
		text = text[n:]
	}
}

// wordEnd returns the end of the first word of a text: spaces and the characters up to the next
// space that does not join them.
func (j *joins) wordEnd(text string) int {
	inWord := false // the previous character is not a space
	for i := 0; i < len(text); {
		n := 0
		switch {
		case text[i] == ' ':
			n = 1
		case text[i] == space[0] && strings.HasPrefix(text[i:], space):
			n = len(space)
		default:
			inWord = true
			i++
			continue
		}
		if inWord && !j[text[i-1]] {
			return i
		}
		inWord = false
		i += n
	}
	return len(text)
}
