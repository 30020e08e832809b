package convert

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"

	"github.com/rayo-go/rayo/gguf"
)

// specialTokens lists the tokens with a role: the key in GGUF, the key of the token's number in config.json,
// and the key of its text in tokenizer_config.json.
var specialTokens = []struct{ key, number, text string }{
	{"bos_token_id", "bos_token_id", "bos_token"},
	{"eos_token_id", "eos_token_id", "eos_token"},
	{"unknown_token_id", "", "unk_token"},
	{"padding_token_id", "pad_token_id", "pad_token"},
	{"seperator_token_id", "", "sep_token"}, // as GGUF spells it
	{"mask_token_id", "", "mask_token"},
	{"cls_token_id", "", "cls_token"},
}

// addSpecial stores the special tokens, the tokens that are added to a text, and the chat template.
func addSpecial(m *gguf.Metadata, folder fs.FS, c *config, v *vocabulary) error {
	var t map[string]any
	if err := readJSON(folder, "tokenizer_config.json", &t); err != nil && !isMissing(err) {
		return err
	}
	for _, s := range specialTokens {
		id, ok := v.ids[tokenText(t[s.text])]
		if !ok && s.number != "" {
			id, ok = c.tokenNumber(s.number)
		}
		if ok && id < len(v.tokens) {
			set(m, "tokenizer.ggml."+s.key, uint32(id))
		}
	}
	if v.model == "bert" { // [CLS] and [SEP] are its tokens for beginning and end
		for key, text := range map[string]string{"bos_token_id": "cls_token", "eos_token_id": "sep_token"} {
			if id, ok := v.ids[tokenText(t[text])]; ok {
				set(m, "tokenizer.ggml."+key, uint32(id))
			}
		}
		set(m, "tokenizer.ggml.token_type_count", uint32(2))
	}
	for _, key := range []string{"add_bos_token", "add_eos_token"} {
		if b, ok := t[key].(bool); ok {
			set(m, "tokenizer.ggml."+key, b)
		}
	}
	if b, ok := t["add_prefix_space"].(bool); ok {
		set(m, "tokenizer.ggml.add_space_prefix", b)
	}
	template, err := chatTemplate(folder, t)
	if template != "" {
		set(m, "tokenizer.chat_template", template)
	}
	return err
}

// tokenText returns the text of a token, which is a string or an object.
func tokenText(v any) string {
	if o, ok := v.(map[string]any); ok {
		v = o["content"]
	}
	s, _ := v.(string)
	return s
}

// tokenNumber returns the number of a token in config.json. If the key has a list, it returns the first number.
func (c *config) tokenNumber(key string) (int, bool) {
	v := c.values[key]
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	n, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	id, err := n.Int64()
	return int(id), err == nil && id >= 0 && id < maxTokens
}

// chatTemplate returns the template in chat_template.jinja, or else the one in
// tokenizer_config.json, which may have several.
func chatTemplate(folder fs.FS, t map[string]any) (string, error) {
	f, err := folder.Open("chat_template.jinja")
	if err == nil {
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, 1<<20))
		return string(b), err
	}
	if !isMissing(err) {
		return "", fmt.Errorf("chat_template.jinja: %w", err)
	}
	if list, ok := t["chat_template"].([]any); ok {
		for _, e := range list {
			if o, _ := e.(map[string]any); o["name"] == "default" {
				return tokenText(map[string]any{"content": o["template"]}), nil
			}
		}
		return "", nil
	}
	s, _ := t["chat_template"].(string)
	return s, nil
}
