package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/safetensors"
)

// model writes a small model and returns its path.
func model(t *testing.T) string {
	t.Helper()
	m := &gguf.Metadata{}
	for _, kv := range []struct {
		key string
		v   gguf.Value
	}{
		{"general.architecture", gguf.NewValue("llama")}, {"general.name", gguf.NewValue("Tiny \x1b[31mred")},
		{"general.license", gguf.NewValue("mit")}, {"llama.block_count", gguf.NewValue(uint32(1))},
		{"llama.context_length", gguf.NewValue(uint32(128))}, {"llama.embedding_length", gguf.NewValue(uint32(256))},
		{"llama.attention.head_count", gguf.NewValue(uint32(4))},
		{"tokenizer.ggml.model", gguf.NewValue("llama")}, {"tokenizer.ggml.tokens", gguf.NewArray(make([]string, 100))},
	} {
		if err := m.Set(kv.key, kv.v); err != nil {
			t.Fatal(err)
		}
	}
	infos := []gguf.TensorInfo{
		{Name: "token_embd.weight", Type: block.F32, Dims: []int64{256, 100}},
		{Name: "blk.0.attn_q.weight", Type: block.F32, Dims: []int64{256, 256}},
	}
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	w, err := gguf.Create(path, m, infos)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	for _, i := range infos {
		x := make([]float32, i.Dims[0]*i.Dims[1])
		for j := range x {
			x[j] = float32(j%17) - 8
		}
		b := make([]byte, 4*len(x))
		if err := block.F32.Quantize(b, x); err != nil {
			t.Fatal(err)
		}
		dst, err := w.Tensor(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// must runs a command line, which must succeed.
func must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := rayo(t, args...)
	if code != exitOK {
		t.Fatalf("%v: code %d, %s%s", args, code, out, errs)
	}
	return out
}

func TestGGUFInspect(t *testing.T) {
	path := model(t)
	out := must(t, "gguf", "inspect", path)
	for _, want := range []string{`Tiny \x1b[31mred`, "llama", "91.1k parameters", "128 tokens", "100 tokens", "mit", "embeddings", "attention", "F32", "█"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b") {
		t.Error("a name of the file reached the terminal as it is")
	}
	for _, l := range strings.Split(out, "\n") {
		if n := len([]rune(l)); n > 100 {
			t.Errorf("a line of %d columns: %s", n, l)
		}
	}
	var in struct {
		Parameters int64
		Types      []struct{ Name string }
		Metadata   map[string]any
	}
	if err := json.Unmarshal([]byte(must(t, "gguf", "inspect", path, "--json")), &in); err != nil {
		t.Fatal(err)
	}
	if in.Parameters != 91136 || len(in.Types) != 1 || in.Metadata["general.license"] != "mit" || in.Metadata["tokenizer.ggml.tokens"] != "100 elements of type string" {
		t.Errorf("%+v", in)
	}
}

// published returns a folder with a model of one layer in a safetensors file.
func published(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "published")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	config := `{"model_type": "qwen2", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 64}`
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	infos := []safetensors.TensorInfo{{Name: "model.embed_tokens.weight", Type: "F32", Shape: []int64{16, 8}}, {Name: "model.norm.weight", Type: "F32", Shape: []int64{8}}}
	w, err := safetensors.NewWriter(&b, nil, infos)
	for _, i := range infos {
		var dst io.Writer
		if err == nil {
			dst, err = w.Tensor(i.Name)
		}
		if err == nil {
			size, _ := i.Size()
			_, err = dst.Write(make([]byte, size))
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "model.safetensors"), b.Bytes(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestGGUFWorkflow(t *testing.T) {
	path := model(t)
	at := func(name string) string { return filepath.Join(filepath.Dir(path), name) }
	if out := must(t, "gguf", "ls", path, "blk.*"); !strings.Contains(out, "256 × 256") || strings.Contains(out, "token_embd") {
		t.Error(out)
	}
	if out := must(t, "gguf", "ls", path, "--keys", "general.*"); !strings.Contains(out, "mit") || strings.Contains(out, "llama.") {
		t.Error(out)
	}
	must(t, "gguf", "set", path, "general.license=apache-2.0", "answer:u16=42", "--remove", "general.name")
	if out := must(t, "gguf", "ls", path, "--keys", "--json"); !strings.Contains(out, `"answer": 42`) || strings.Contains(out, "general.name") {
		t.Error(out)
	}
	must(t, "gguf", "quantize", path, at("q.gguf"), "q4_k_m")
	if out := must(t, "gguf", "ls", at("q.gguf")); !strings.Contains(out, "Q4_K") || !strings.Contains(out, "Q6_K") {
		t.Error(out)
	}
	must(t, "gguf", "verify", path, at("q.gguf"))
	must(t, "gguf", "split", path, at("part"), "--size", "100K")
	must(t, "gguf", "merge", at("part-00002-of-00002.gguf"), at("whole.gguf"))
	if out := must(t, "gguf", "diff", path, at("whole.gguf")); !strings.Contains(out, "same") {
		t.Error(out)
	}
	must(t, "gguf", "convert", published(t), at("converted.gguf"), "--type", "f16")
	if out := must(t, "gguf", "inspect", at("converted.gguf")); !strings.Contains(out, "qwen2") || !strings.Contains(out, "published") {
		t.Error(out)
	}
	code, out, _ := rayo(t, "gguf", "diff", path, at("q.gguf"))
	if code != exitFail || !strings.Contains(out, "off by") || !strings.Contains(out, "file_type") {
		t.Errorf("code %d, %s", code, out)
	}
}

// importances writes files of importances, in llama-imatrix's two formats, for a matrix with rows of n elements.
func importances(t *testing.T, dir, tensor string, n int) (newer, older string) {
	t.Helper()
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%7) + 1
	}
	sums := make([]byte, 4*n)
	if err := block.F32.Quantize(sums, x); err != nil {
		t.Fatal(err)
	}
	m := &gguf.Metadata{}
	if err := m.Set("general.type", gguf.NewValue("imatrix")); err != nil {
		t.Fatal(err)
	}
	newer, older = filepath.Join(dir, "imatrix.gguf"), filepath.Join(dir, "imatrix.dat")
	w, err := gguf.Create(newer, m, []gguf.TensorInfo{{Name: tensor + ".in_sum2", Type: block.F32, Dims: []int64{int64(n), 1}}, {Name: tensor + ".counts", Type: block.F32, Dims: []int64{1, 1}}})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	one := binary.LittleEndian.AppendUint32(nil, math.Float32bits(1))
	for _, part := range []struct {
		name string
		data []byte
	}{{".in_sum2", sums}, {".counts", one}} {
		dst, err := w.Tensor(tensor + part.name)
		if err == nil {
			_, err = dst.Write(part.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	word := binary.LittleEndian.AppendUint32
	b := append(word(word(nil, 1), uint32(len(tensor))), tensor...)
	b = append(word(word(b, 1), uint32(n)), sums...)
	if err := os.WriteFile(older, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return newer, older
}

// TestGGUFImatrix quantises with importances of both formats. A file of another model, one of other sizes and one without the
// importances of a matrix that needs them are errors, and so is a model in place of the file.
func TestGGUFImatrix(t *testing.T) {
	path, dir := model(t), t.TempDir()
	newer, older := importances(t, dir, "blk.0.attn_q.weight", 256)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, file := range []string{newer, older} {
		must(t, "gguf", "quantize", path, at("q.gguf"), "IQ2_XS", "--imatrix", file, "--force")
		if out := must(t, "gguf", "ls", at("q.gguf"), "blk.*"); !strings.Contains(out, "IQ2_XS") {
			t.Error(out)
		}
		must(t, "gguf", "quantize", path, filepath.Join(t.TempDir(), "q4.gguf"), "Q4_K_M", "--imatrix", file)
	}
	must(t, "gguf", "quantize", path, at("plain.gguf"), "Q4_K")
	must(t, "gguf", "quantize", path, at("weighted.gguf"), "Q4_K", "--imatrix", newer)
	if code, _, _ := rayo(t, "gguf", "diff", at("plain.gguf"), at("weighted.gguf")); code != exitFail {
		t.Error("importances make no difference")
	}
	other, _ := importances(t, t.TempDir(), "blk.7.attn_q.weight", 256)
	short, _ := importances(t, t.TempDir(), "blk.0.attn_q.weight", 255)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--imatrix FILE gives them", []string{"IQ2_XS"}},
		{"none for this name", []string{"IQ2_XS", "--pure", "--imatrix", newer}},
		{"no importances for any tensor", []string{"IQ2_XS", "--imatrix", other}},
		{"there are 255, expected 256", []string{"IQ2_XS", "--imatrix", short}},
		{"tiny.gguf: gguf: \"general.type\"", []string{"IQ2_XS", "--imatrix", path}},
		{"is the input", []string{"IQ2_XS", "--imatrix", older, "--force"}},
	} {
		out := at("out.gguf")
		if c.says == "is the input" {
			out = older
		}
		code, _, errs := rayo(t, append([]string{"gguf", "quantize", path, out}, c.args...)...)
		if code != exitFail || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d, %q; want %q", c.args, code, errs, c.says)
		}
		if _, err := os.Stat(at("out.gguf")); err == nil {
			t.Errorf("%v left a file", c.args)
		}
	}
}

// TestGGUFRefuses checks that a mistake gives one line that says what to do, and that no file is changed.
func TestGGUFRefuses(t *testing.T) {
	path := model(t)
	dir := filepath.Dir(path)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(dir, "bad.gguf")
	if err := os.WriteFile(bad, before[:200], 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out.gguf")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"bad.gguf", []string{"inspect", bad}},
		{"1 of 1 files have problems", []string{"verify", bad}},
		{"no such file", []string{"inspect", filepath.Join(dir, "none.gguf")}},
		{"give one of F32 F16", []string{"quantize", path, out, "Q9"}},
		{"is the input", []string{"quantize", path, path, "Q8_0", "--force"}},
		{"--force", []string{"quantize", path, bad, "Q8_0"}},
		{"importances", []string{"quantize", path, out, "IQ1_S"}},
		{"not a size", []string{"split", path, out, "--size", "many"}},
		{"not a size", []string{"split", path, out, "--size=-3"}},
		{"no change is given", []string{"set", path}},
		{"KEY=VALUE", []string{"set", path, "key"}},
		{"no key", []string{"set", path, "--remove", "missing"}},
		{"parsing", []string{"set", path, "llama.block_count=many"}},
		{"cannot be set", []string{"set", path, "tokenizer.ggml.tokens=x"}},
		{"not a valid pattern", []string{"ls", path, "["}},
	} {
		code, stdout, errs := rayo(t, append([]string{"gguf"}, c.args...)...)
		if code != exitFail || !strings.Contains(errs, c.says) {
			t.Errorf("%v: code %d, %q %q; want %q", c.args, code, stdout, errs, c.says)
		}
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Error("the model was changed", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var stdout, errs bytes.Buffer
	if code := run(ctx, []string{"gguf", "quantize", path, out, "Q8_0"}, &stdout, &errs); code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("interrupted: code %d, %s", code, errs.String())
	}
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("files %v", names)
	}
}

func TestGGUFTokenize(t *testing.T) {
	m := new(gguf.Metadata)
	for key, v := range map[string]gguf.Value{
		"model": gguf.NewValue("gpt2"), "pre": gguf.NewValue("gpt-2"), "merges": gguf.NewArray([]string{"h i", "Ġ hi"}),
		"tokens": gguf.NewArray([]string{"h", "i", "Ġ", "hi", "Ġhi", "<|end|>"}), "token_type": gguf.NewArray([]int32{1, 1, 1, 1, 1, 3}),
	} {
		if err := m.Set("tokenizer.ggml."+key, v); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "words.gguf")
	w, err := gguf.Create(path, m, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if out := must(t, "gguf", "tokenize", path, "hi hi<|end|>", "--special", "--ids"); out != "3 4 5\n" {
		t.Errorf("%q", out)
	}
	if out := must(t, "gguf", "tokenize", path, "hi hi"); !strings.Contains(out, "4  \" hi\"\n") || !strings.Contains(out, "2 tokens") {
		t.Errorf("%q", out)
	}
	if code, _, errs := rayo(t, "gguf", "tokenize", model(t), "hi"); code != exitFail || !strings.Contains(errs, "tokenizer") {
		t.Errorf("a file without scores: code %d, %s", code, errs)
	}
}
