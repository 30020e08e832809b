package convert

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/gguf"
)

// The kinds of tokens in tokenizer.ggml.token_type.
const (
	tokenNormal      = 1
	tokenUnknown     = 2
	tokenControl     = 3
	tokenUserDefined = 4
	tokenUnused      = 5
	tokenByte        = 6
)

const maxTokens = 1 << 22

// tokenizerJSON is the part of tokenizer.json that is used.
type tokenizerJSON struct {
	Added []struct {
		ID      int
		Content string
		Special bool
	} `json:"added_tokens"`
	PreTokenizer json.RawMessage `json:"pre_tokenizer"`
	Normalizer   json.RawMessage `json:"normalizer"`
	Model        struct {
		Type         string
		Unknown      string `json:"unk_token"`
		ByteFallback bool   `json:"byte_fallback"`
		Vocab        json.RawMessage
		Merges       []json.RawMessage
	}
}

// vocabulary holds the tokenizer's metadata.
type vocabulary struct {
	model, pre string
	tokens     []string
	types      []int32
	scores     []float32
	merges     []string
	ids        map[string]int
}

// addTokenizer stores the tokenizer of a folder. A folder without one gives a model for token numbers only.
func addTokenizer(m *gguf.Metadata, folder fs.FS, c *config) error {
	var j tokenizerJSON
	switch err := readJSON(folder, "tokenizer.json", &j); {
	case isMissing(err):
		set(m, "tokenizer.ggml.model", "no_vocab")
		return nil
	case err != nil:
		return err
	}
	v, err := j.vocabulary(c)
	if err != nil {
		return fmt.Errorf("tokenizer.json: %w", err)
	}
	set(m, "tokenizer.ggml.model", v.model)
	if v.pre != "" {
		set(m, "tokenizer.ggml.pre", v.pre)
	}
	set(m, "tokenizer.ggml.tokens", v.tokens)
	set(m, "tokenizer.ggml.token_type", v.types)
	if v.scores != nil {
		set(m, "tokenizer.ggml.scores", v.scores)
	}
	if v.merges != nil {
		set(m, "tokenizer.ggml.merges", v.merges)
	}
	return addSpecial(m, folder, c, v)
}

// vocabulary returns the tokens, in the order of their numbers.
func (j *tokenizerJSON) vocabulary(c *config) (*vocabulary, error) {
	v := &vocabulary{}
	if err := json.Unmarshal(j.Model.Vocab, &v.ids); err != nil {
		return nil, fmt.Errorf("the vocabulary of a model of type %q is not a map of tokens to numbers: %w", j.Model.Type, ErrTokenizer)
	}
	n, err := c.count(0, "vocab_size")
	if err != nil {
		return nil, err
	}
	for _, a := range j.Added {
		v.ids[a.Content] = a.ID
	}
	for text, id := range v.ids {
		if id < 0 || id >= maxTokens {
			return nil, fmt.Errorf("token %q has number %d, expected 0 to %d: %w", text, id, maxTokens-1, ErrTokenizer)
		}
		n = max(n, id+1)
	}
	if n > maxTokens {
		return nil, fmt.Errorf("%d tokens, at most %d are possible: %w", n, maxTokens, ErrTokenizer)
	}
	v.tokens, v.types = make([]string, n), slices.Repeat([]int32{tokenUnused}, n)
	for i := range v.tokens {
		v.tokens[i] = fmt.Sprintf("[PAD%d]", i)
	}
	for text, id := range v.ids {
		v.tokens[id], v.types[id] = text, tokenNormal
	}
	for _, a := range j.Added {
		v.types[a.ID] = tokenUserDefined
		if a.Special {
			v.types[a.ID] = tokenControl
		}
	}
	switch {
	case j.Model.Type == "WordPiece":
		v.wordPiece(j)
		return v, nil
	case j.Model.Type == "BPE" && j.Model.ByteFallback:
		v.sentencePiece(j)
		return v, nil
	case j.Model.Type == "BPE":
		return v, v.bytePairs(j)
	}
	return nil, fmt.Errorf("the tokenizer has a model of type %q, expected BPE or WordPiece: %w", j.Model.Type, ErrTokenizer)
}

// wordPiece stores a WordPiece vocabulary. The source marks tokens that continue a word with ##; GGUF marks
// tokens that begin one.
func (v *vocabulary) wordPiece(j *tokenizerJSON) {
	v.model = "bert"
	for i, t := range v.tokens {
		switch rest, continues := strings.CutPrefix(t, "##"); {
		case v.types[i] != tokenNormal:
		case continues:
			v.tokens[i] = rest
		default:
			v.tokens[i] = "\u2581" + t
		}
	}
	if id, ok := v.ids[j.Model.Unknown]; ok {
		v.types[id] = tokenUnknown
	}
}

// sentencePiece stores a BPE vocabulary with byte fallback. Merges are in the order of the tokens' scores, so the
// scores fall with the numbers of the tokens.
func (v *vocabulary) sentencePiece(j *tokenizerJSON) {
	v.model, v.scores = "llama", make([]float32, len(v.tokens))
	for i, t := range v.tokens {
		v.scores[i] = float32(-i)
		if len(t) == 6 && strings.HasPrefix(t, "<0x") && t[5] == '>' && v.types[i] == tokenNormal {
			v.types[i] = tokenByte
		}
	}
	if id, ok := v.ids[j.Model.Unknown]; ok {
		v.types[id] = tokenUnknown
	}
}

// bytePairs stores the merges, and the name of the pre-tokenizer, which splits text before merging.
func (v *vocabulary) bytePairs(j *tokenizerJSON) error {
	v.model = "gpt2"
	for i, raw := range j.Model.Merges {
		var pair []string
		var text string
		if json.Unmarshal(raw, &pair) == nil && len(pair) == 2 {
			text = pair[0] + " " + pair[1]
		} else if json.Unmarshal(raw, &text) != nil || !strings.Contains(text, " ") {
			return fmt.Errorf("merge %d is %.40s, expected two tokens: %w", i, raw, ErrTokenizer)
		}
		v.merges = append(v.merges, text)
	}
	key := splitting(j.PreTokenizer)
	pre, ok := preTokenizers[key]
	if !ok {
		return fmt.Errorf("the pre-tokenizer %q has no name in GGUF: %w", key, ErrTokenizer)
	}
	v.pre = pre
	return nil
}

// preTokenizers maps results of splitting to names of pre-tokenizers in GGUF.
var preTokenizers = map[string]string{
	"bytes":        "gpt-2",
	"digits bytes": "smollm",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`: "llama-bpe",
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`:      "qwen2",
}

// splitting describes a pre-tokenizer in one line: its regular expressions, "digits" if it separates single
// digits, "bytes" if it splits by GPT-2's expression.
func splitting(raw json.RawMessage) string {
	var p struct {
		Type       string
		Steps      []json.RawMessage `json:"pretokenizers"`
		Pattern    struct{ Regex string }
		Individual bool  `json:"individual_digits"`
		UseRegex   *bool `json:"use_regex"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return ""
	}
	switch p.Type {
	case "Sequence":
		var parts []string
		for _, s := range p.Steps {
			if t := splitting(s); t != "" {
				parts = append(parts, t)
			}
		}
		return strings.Join(parts, " ")
	case "Split":
		return p.Pattern.Regex
	case "Digits":
		if p.Individual {
			return "digits"
		}
		return "groups of digits"
	case "ByteLevel":
		if p.UseRegex == nil || *p.UseRegex {
			return "bytes"
		}
		return ""
	}
	return p.Type
}
