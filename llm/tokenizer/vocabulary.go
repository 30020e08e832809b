package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rayo-go/rayo/gguf"
)

// Limits of a vocabulary. Real vocabularies are far smaller; larger ones would only make encoding
// slow.
const (
	maxTokens     = 1 << 24
	maxTokenBytes = 1 << 10
)

// vocabulary has the fields that all kinds share.
type vocabulary struct {
	texts    []string
	kinds    []Kind
	ids      map[string]int32
	special  Special
	ends     []int32
	before   int32 // the token that AddSpecial adds before the text, or None
	after    int32 // the token that AddSpecial adds after the text, or None
	specials specialTrie
	strip    map[int32]uint8
	pieces   pieces
	dropOne  bool // decoding drops the space that encoding adds at the beginning
	longest  int  // length of the longest text in bytes
}

// New returns the tokenizer that the metadata of a GGUF file describes in the keys tokenizer.*. The
// error wraps [ErrUnsupported] for unsupported kinds, and [ErrVocabulary] for metadata that is
// missing, has the wrong type or contradicts itself.
func New(m *gguf.Metadata) (*Tokenizer, error) {
	kind, ok := m.Text(keyModel)
	if !ok {
		return nil, fmt.Errorf("tokenizer: %w: the metadata has no string %s", ErrVocabulary, keyModel)
	}
	newModel, ok := models[kind]
	if !ok {
		return nil, fmt.Errorf("tokenizer: %w: %s is %q, expected llama, gpt2, gemma4 or bert", ErrUnsupported, keyModel, kind)
	}
	t := new(Tokenizer)
	r := &reader{m: m}
	t.read(r)
	if r.err == nil {
		t.model = newModel(t, r)
	}
	if r.err != nil {
		return nil, fmt.Errorf("tokenizer: %w", r.err)
	}
	return t, nil
}

// models has the constructors of the kinds of vocabulary, by their names in files.
var models = map[string]func(*Tokenizer, *reader) model{"llama": newSPM, "gpt2": newBPE, "gemma4": newBPE, "bert": newWPM}

const (
	prefix   = "tokenizer.ggml."
	keyModel = prefix + "model"
)

// reader reads metadata. It keeps its first error.
type reader struct {
	m   *gguf.Metadata
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{ErrVocabulary}, args...)...)
	}
}

// array returns an array of metadata. must means that it is required. It must have n elements; a
// negative n allows any number.
func array[T gguf.Scalar](r *reader, key string, n int, must bool) []T {
	v, ok := r.m.Get(prefix + key)
	if !ok {
		if must {
			r.fail("the metadata has no %s%s", prefix, key)
		}
		return nil
	}
	if n >= 0 && v.Len() != n {
		r.fail("%s%s has %d elements, expected one for each of %d tokens", prefix, key, v.Len(), n)
		return nil
	}
	xs, err := gguf.Slice[T](v)
	if err != nil {
		r.fail("%s%s: %v", prefix, key, err)
	}
	return xs
}

func (r *reader) flag(key string, otherwise bool) bool {
	v, ok := r.m.Get(prefix + key)
	if !ok {
		return otherwise
	}
	b, ok := v.Bool()
	if !ok {
		r.fail("%s%s is %v of type %v, expected a bool", prefix, key, v, v.Kind())
	}
	return b
}

// token returns the id in a key, or otherwise.
func (r *reader) token(key string, otherwise int32, n int) int32 {
	v, ok := r.m.Get(prefix + key + "_token_id")
	if !ok {
		if int(otherwise) >= n {
			return None
		}
		return otherwise
	}
	// Some writers use -1 or the largest integer for an absent token.
	if x, ok := v.Int(); ok && (x == -1 || x == 1<<32-1) {
		return None
	}
	x, ok := v.Uint()
	if !ok || x >= uint64(n) {
		r.fail("%s%s_token_id is %v, expected the number of one of %d tokens", prefix, key, v, n)
		return None
	}
	return int32(x)
}

// read reads the fields that all kinds of vocabularies have.
func (v *vocabulary) read(r *reader) {
	v.before, v.after = None, None
	v.texts = array[string](r, "tokens", -1, true)
	n := len(v.texts)
	if r.err == nil && (n == 0 || n > maxTokens) {
		r.fail("%stokens has %d elements, expected 1 to %d", prefix, n, maxTokens)
	}
	if r.err != nil {
		return
	}
	kinds := array[int32](r, "token_type", n, false)
	if r.err != nil {
		return
	}
	v.kinds = make([]Kind, n)
	for i := range v.kinds {
		switch _, named := purposes[v.texts[i]]; {
		case named:
			v.kinds[i] = Control // some files have another kind
		case kinds == nil:
			v.kinds[i] = Normal
		default:
			v.kinds[i] = Kind(kinds[i])
		}
	}
	v.ids = make(map[string]int32, n)
	for i, text := range v.texts {
		v.longest = max(v.longest, len(text))
		if old, ok := v.ids[text]; !ok || v.kinds[old] != Normal && v.kinds[i] == Normal {
			v.ids[text] = int32(i)
		}
		if k := v.kinds[i]; text != "" && (k == Control || k == UserDefined || k == Unknown) {
			v.specials.add(text, int32(i), k == UserDefined)
		}
	}
	if v.longest > maxTokenBytes {
		r.fail("a token has %d bytes, expected at most %d", v.longest, maxTokenBytes)
	}
	v.readStrip(r.m)
}

// readAdded reads the tokens that AddSpecial adds before and after a text.
func (v *vocabulary) readAdded(r *reader, bos, eos bool) {
	if r.flag("add_bos_token", bos) {
		v.before = v.special.BOS
	}
	if r.flag("add_eos_token", eos) {
		v.after = v.special.EOS
	}
}

// purpose is the purpose of a token that its text tells.
type purpose int

const (
	endOfText purpose = iota
	endOfTurn
	endOfMessage
	fimPrefix
	fimSuffix
	fimMiddle
)

// purposes has the texts of tokens with a purpose, separated by spaces: files do not always have keys for them,
// nor always mark them as control tokens. A model of code that writes a token for padding, for another file or for
// another repository has ended its answer.
var purposes = func() map[string]purpose {
	byText := map[string]purpose{}
	for p, texts := range map[purpose]string{
		endOfText: "<|endoftext|> <|end_of_text|> <｜end▁of▁sentence｜> <eos> [EOS] [e~[ <|return|> <|call|> <|calls|> <|flush|> " +
			"<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] <|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame> <|file_sep|>",
		endOfTurn:    "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|eot|> <end_of_utterance> <EOT> _<EOT> [EOT] <turn|> <|tool_response>",
		endOfMessage: "<|eom_id|>",
		fimPrefix:    "<|fim_prefix|> <fim-prefix> <fim_prefix> <｜fim▁begin｜> <PRE> ▁<PRE> <|code_prefix|> <|prefix|>",
		fimSuffix:    "<|fim_suffix|> <fim-suffix> <fim_suffix> <｜fim▁hole｜> <SUF> ▁<SUF> <|code_suffix|> <|suffix|>",
		fimMiddle:    "<|fim_middle|> <fim-middle> <fim_middle> <｜fim▁end｜> <MID> ▁<MID> <|code_middle|> <|middle|>",
	} {
		for _, text := range strings.Fields(texts) {
			byText[text] = p
		}
	}
	return byText
}()

// readStrip sets which special tokens strip the white space next to them. Files have no key for it,
// so it recognises models by their names.
func (v *vocabulary) readStrip(m *gguf.Metadata) {
	v.strip = map[int32]uint8{}
	name, _ := m.Text("general.name")
	name = strings.ToLower(name)
	pre, _ := m.Text(prefix + "pre")
	switch {
	case strings.Contains(name, "phi-3") || strings.Contains(name, "phi3"):
		for i, text := range v.texts {
			if k := v.kinds[i]; (k == Control || k == UserDefined || k == Unknown) && text != "<unk>" && text != "<s>" && text != "<|endoftext|>" {
				v.strip[int32(i)] = stripRight
			}
		}
	case strings.HasPrefix(pre, "jina-v2-"), pre == "modern-bert":
		for _, mask := range []string{"<mask>", "[MASK]"} {
			if id, ok := v.ids[mask]; ok {
				v.strip[id] = stripLeft
			}
		}
	}
}

// readSpecial reads the special ids; the given ids are the defaults of a tokenizer model without the keys.
func (v *vocabulary) readSpecial(r *reader, otherwise Special) {
	n := len(v.texts)
	s := &v.special
	for _, f := range []struct {
		id        *int32
		key       string
		otherwise int32
	}{
		{&s.BOS, "bos", otherwise.BOS}, {&s.EOS, "eos", otherwise.EOS}, {&s.EOT, "eot", None}, {&s.EOM, "eom", None},
		{&s.Unknown, "unknown", otherwise.Unknown}, {&s.Padding, "padding", otherwise.Padding},
		{&s.Separator, "seperator", otherwise.Separator}, {&s.Class, "cls", otherwise.Class}, {&s.Mask, "mask", otherwise.Mask},
		{&s.FIMPrefix, "fim_pre", None}, {&s.FIMSuffix, "fim_suf", None}, {&s.FIMMiddle, "fim_mid", None},
	} {
		*f.id = r.token(f.key, f.otherwise, n)
	}
	v.readPurposes()
	for _, id := range []int32{s.EOS, s.EOT, s.EOM} {
		if id != None {
			v.ends = append(v.ends, id)
		}
	}
	slices.Sort(v.ends)
	v.ends = slices.Compact(v.ends)
}

// readPurposes reads the purposes of tokens from their texts. Keys of the file have priority.
func (v *vocabulary) readPurposes() {
	s := &v.special
	byPurpose := map[purpose]*int32{endOfTurn: &s.EOT, endOfMessage: &s.EOM, fimPrefix: &s.FIMPrefix, fimSuffix: &s.FIMSuffix, fimMiddle: &s.FIMMiddle}
	for i, text := range v.texts {
		p, ok := purposes[text]
		if !ok || text == "<|end|>" && v.endsOnlyMessages() {
			continue
		}
		if p <= endOfMessage {
			v.ends = append(v.ends, int32(i))
		}
		if id := byPurpose[p]; id != nil && *id == None {
			*id = int32(i)
		}
	}
}

// endsOnlyMessages reports whether the token <|end|> ends one of several messages of an answer: other tokens end
// the answer.
func (v *vocabulary) endsOnlyMessages() bool {
	has := func(text string) bool { _, ok := v.ids[text]; return ok }
	return has("<|return|>") && (has("<|call|>") || has("<|calls|>")) || has("<|flush|>") && (has("<|call|>") || has("<|calls|>"))
}
