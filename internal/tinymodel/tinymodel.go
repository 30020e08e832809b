// Package tinymodel has a language model for tests that takes milliseconds: random weights, and a
// token for each printable character of ASCII.
package tinymodel

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/testutil"
)

// Template is the chat template of the model.
const Template = `{% for m in messages %}{% if m.role not in ["system", "user", "assistant", "tool"] %}{{ raise_exception("role " + m.role) }}{% endif %}[{{ m.role }}] {{ m.content }} {% endfor %}` +
	`{% for t in tools or [] %}<tool_call> {{ t.function.name }} {% endfor %}{% if add_generation_prompt %}[assistant] {% endif %}`

// End is the token that ends a text.
const End = 0

// File returns the model. Its context is 512.
func File(t testing.TB) *gguf.File {
	t.Helper()
	f, err := gguf.NewBytes(raw(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Path writes the model to a file and returns its name.
func Path(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := os.WriteFile(path, raw(t), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// raw returns the bytes of the model of the golden tests, with a vocabulary.
func raw(t testing.TB) []byte {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	f, err := gguf.NewBytes(testutil.Unzip(t, filepath.Join(filepath.Dir(here), "../../llm/testdata/llama.gguf.gz")))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := write(&out, f); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(out io.Writer, f *gguf.File) error {
	m := f.Metadata().Clone()
	tokens, types := []string{"<end>"}, []int32{3}
	for c := ' '; c <= '~'; c++ {
		text := string(c)
		if c == ' ' {
			text = "\u0120"
		}
		tokens, types = append(tokens, text), append(types, 1)
	}
	for _, kv := range []struct {
		key string
		v   gguf.Value
	}{
		{"general.name", gguf.NewValue("tiny")}, {"tokenizer.ggml.model", gguf.NewValue("gpt2")}, {"tokenizer.ggml.pre", gguf.NewValue("gpt-2")},
		{"tokenizer.ggml.tokens", gguf.NewArray(tokens)}, {"tokenizer.ggml.token_type", gguf.NewArray(types)}, {"tokenizer.ggml.merges", gguf.NewArray([]string{})},
		{"tokenizer.ggml.eos_token_id", gguf.NewValue(uint32(End))}, {"tokenizer.ggml.add_bos_token", gguf.NewValue(false)}, {"tokenizer.chat_template", gguf.NewValue(Template)},
	} {
		if err := m.Set(kv.key, kv.v); err != nil {
			return err
		}
	}
	var infos []gguf.TensorInfo
	for t := range f.Tensors() {
		infos = append(infos, t.Info())
	}
	w, err := gguf.NewWriter(out, m, infos)
	if err != nil {
		return err
	}
	for t := range f.Tensors() {
		dst, err := w.Tensor(t.Name)
		if err == nil {
			_, err = io.Copy(dst, t.Open())
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
