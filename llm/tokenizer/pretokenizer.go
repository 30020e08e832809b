package tokenizer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// The expressions that cut a text into words, for vocabularies of type gpt2.
const (
	contraction = `(?i:'s|'t|'re|'ve|'m|'ll|'d)`
	capitals    = `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%[1]s|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%[1]s|`
	spaces      = `\s*[\r\n]+|\s+(?!\S)|\s+`
	others      = ` ?[^\s\p{L}\p{N}]+[\r\n]*|` + spaces
	pathSigns   = ` ?[^\s\p{L}\p{N}]+[\r\n/]*|` + spaces
	signWords   = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" + spaces

	gpt2Words   = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)`
	llama3Words = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|` + others
	qwen2Words  = contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` + others
	poroWords   = ` ?[^(\s|.,!?…。，、।۔،)]+`
	hanKana     = "[一-龥\u3040-ゟ゠-ヿ]+"
)

// preTokenizer describes how a kind of vocabulary cuts text into words.
type preTokenizer struct {
	names string // values of tokenizer.ggml.pre
	// stages are applied in order: each stage cuts the pieces of the previous stage. Text that an
	// expression does not match becomes a piece too.
	stages []string
	// whole does not merge a word that is a token.
	whole bool
	// chars means that merging begins with characters and that spaces are U+2581, as in
	// SentencePiece. Otherwise merging begins with bytes.
	chars bool
	// bos is the default for adding a BOS token, if the file does not specify it.
	bos bool
}

var preTokenizers = []preTokenizer{
	{names: "default", stages: []string{`[\p{P}\$\+<=>\^~\|]+`, gpt2Words, `\p{N}+`, `[0-9][0-9][0-9]`}},
	{names: "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano", stages: []string{llama3Words}, whole: true, bos: true},
	{names: "gpt-2 phi-2 jina-es jina-de jina-v1-en jina-v2-es jina-v2-de jina-v2-code gigachat roberta-bpe exaone4 a.x-4.0 mellum modern-bert mpt olmo jais trillion granite-docling", stages: []string{gpt2Words}},
	{names: "qwen2 deepseek-r1-qwen kormo f2llmv2 stablelm2 megrez hunyuan grok-2 solar-open", stages: []string{qwen2Words}},
	{names: "qwen35", stages: []string{contraction + `|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|` + spaces}},
	{names: "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2", stages: []string{`\p{N}`, gpt2Words}},
	{names: "dbrx smaug-bpe chatglm-bpe glm4", stages: []string{llama3Words}},
	{names: "falcon", stages: []string{"[\\p{P}\\$\\+<=>\\^~\\|`]+", gpt2Words, `[0-9][0-9][0-9]`}},
	{names: "deepseek-coder", stages: []string{`[\r\n]`, `\s?\p{L}+`, `\s?\p{P}+`, `[一-龥ࠀ-一가-퟿]+`, `\p{N}`}},
	// The original expression lists all cased letters one by one.
	{names: "deepseek-llm", stages: []string{`[\r\n]`, `\s?[\p{Lu}\p{Ll}\p{Lt}]+`, `\s?[!-/:-~！-／：-～‘-‟　-。]+`, `\s+$`, `[一-龥ࠀ-一가-퟿]+`, `\p{N}+`}},
	{names: "gemma4", stages: []string{`[^\n]+|[\n]+`}, chars: true, bos: true},
	{names: "deepseek-v3 hunyuan-dense joyai-llm", stages: []string{`\p{N}{1,3}`, hanKana, signWords}},
	{names: "poro-chat bloom gpt3-finnish", stages: []string{poroWords}},
	{names: "viking", stages: []string{poroWords, `\p{N}`}},
	{names: "tekken", stages: []string{fmt.Sprintf(capitals, "") + `\p{N}|` + pathSigns}, whole: true, bos: true},
	{names: "gpt-4o llama4 kanana2 talkie minimax-m2", stages: []string{fmt.Sprintf(capitals, contraction+"?") + `\p{N}{1,3}|` + pathSigns}},
	{names: "seed-coder", stages: []string{contraction + `|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|` + spaces}},
	{names: "bailingmoe bailingmoe2 llada-moe", stages: []string{`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+`}},
}

// words is a compiled preTokenizer.
type words struct {
	compiled []*pattern
	preTokenizer
}

// preTokenizerNames returns the names, in order.
func preTokenizerNames() (names []string) {
	for _, p := range preTokenizers {
		names = append(names, strings.Fields(p.names)...)
	}
	slices.Sort(names)
	return names
}

var compiledWords struct {
	sync.Mutex
	byName map[string]*words
}

// wordsOf returns the pre-tokenizer with a given name.
func wordsOf(name string) (*words, error) {
	c := &compiledWords
	c.Lock()
	defer c.Unlock()
	if w := c.byName[name]; w != nil {
		return w, nil
	}
	i := slices.IndexFunc(preTokenizers, func(p preTokenizer) bool { return slices.Contains(strings.Fields(p.names), name) })
	if i < 0 {
		return nil, fmt.Errorf("%w: tokenizer.ggml.pre is %q, expected one of %s", ErrUnsupported, name, strings.Join(preTokenizerNames(), ", "))
	}
	w := &words{preTokenizer: preTokenizers[i]}
	for _, expr := range w.stages {
		p, err := compilePattern(expr)
		if err != nil {
			return nil, err
		}
		w.compiled = append(w.compiled, p)
	}
	if c.byName == nil {
		c.byName = map[string]*words{}
	}
	c.byName[name] = w
	return w, nil
}

// split calls word with the words of a text, in order. Their concatenation is the text.
func split(stages []*pattern, text string, word func(string)) {
	if len(stages) == 0 {
		word(text)
		return
	}
	p, rest := stages[0], stages[1:]
	piece := word
	if len(rest) > 0 {
		piece = func(s string) { split(rest, s, word) }
	}
	if p.atEnd != nil {
		head := strings.TrimRightFunc(text, p.atEnd.has)
		for _, s := range []string{head, text[len(head):]} {
			if s != "" {
				piece(s)
			}
		}
		return
	}
	gap := 0 // start of the unmatched text
	for pos := 0; pos < len(text); {
		n := p.match(text[pos:])
		if n == 0 {
			pos += runeLen(text[pos:])
			continue
		}
		if gap < pos {
			piece(text[gap:pos])
		}
		piece(text[pos : pos+n])
		pos += n
		gap = pos
	}
	if gap < len(text) {
		piece(text[gap:])
	}
}
