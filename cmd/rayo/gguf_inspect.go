package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rayo-go/rayo/gguf"
)

type ggufInspectCmd struct {
	File string `arg:"" help:"A GGUF file, or any part of a split model."`
	JSON bool   `name:"json" help:"Write JSON, with all metadata except the elements of long arrays."`
	All  bool   `help:"With --json: print the elements of long arrays too."`
}

// share is a part of a model's bytes.
type share struct {
	Name       string `json:"name"`
	Tensors    int    `json:"tensors"`
	Parameters int64  `json:"parameters"`
	Bytes      int64  `json:"bytes"`
}

// inspection is the output of inspect for a model.
type inspection struct {
	File         string         `json:"file"`
	Bytes        int64          `json:"bytes"`
	Version      int            `json:"version"`
	Parts        int            `json:"parts"`
	Name         string         `json:"name,omitempty"`
	Architecture string         `json:"architecture,omitempty"`
	Licence      string         `json:"licence,omitempty"`
	FileType     string         `json:"file_type,omitempty"`
	Tensors      int            `json:"tensors"`
	Parameters   int64          `json:"parameters"`
	BitsPer      float64        `json:"bits_per_parameter"`
	Cache        int64          `json:"kv_bytes_per_token,omitempty"`
	Kinds        []share        `json:"kinds"`
	Types        []share        `json:"types"`
	Metadata     map[string]any `json:"metadata"`
}

func (c *ggufInspectCmd) Run(a *app) error {
	f, err := openModel(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	in := inspect(c.File, f)
	if c.JSON {
		in.Metadata = metadataJSON(f, c.All)
		return writeJSON(a.out, in)
	}
	return in.print(a.out, f, columns())
}

// longArray is the largest number of elements of an array in JSON, unless all elements are requested.
const longArray = 64

func metadataJSON(f *gguf.File, all bool) map[string]any {
	m := map[string]any{}
	for k, v := range f.Metadata().All() {
		m[k] = v
		if v.Len() > longArray && !all {
			m[k] = fmt.Sprintf("%d elements of type %v", v.Len(), v.Elem())
		}
	}
	return m
}

func inspect(path string, f *gguf.File) *inspection {
	m := f.Metadata()
	in := &inspection{File: path, Bytes: f.Size(), Version: f.Version(), Parts: f.Parts(), Architecture: f.Architecture(),
		Tensors: f.NumTensors(), Parameters: f.Parameters(), Cache: cacheBytes(f)}
	in.Name, _ = m.Text("general.name")
	in.Licence, _ = m.Text("general.license")
	if n, ok := m.Uint("general.file_type"); ok {
		if r, ok := gguf.RecipeByFileType(n); ok {
			in.FileType = r.Name
		}
	}
	in.Kinds = shares(f, func(t *gguf.Tensor) string { return gguf.KindOf(t.Name) })
	in.Types = shares(f, func(t *gguf.Tensor) string { return t.Type.String() })
	if in.Parameters > 0 {
		in.BitsPer = 8 * float64(sizeOf(f)) / float64(in.Parameters)
	}
	return in
}

// shares groups the tensors by a name, the greatest group first.
func shares(f *gguf.File, name func(*gguf.Tensor) string) []share {
	all := []share{}
	for t := range f.Tensors() {
		n := name(t)
		i := slices.IndexFunc(all, func(s share) bool { return s.Name == n })
		if i < 0 {
			i = len(all)
			all = append(all, share{Name: n})
		}
		all[i].Tensors++
		all[i].Parameters += t.Elements()
		all[i].Bytes += t.Size()
	}
	slices.SortStableFunc(all, func(a, b share) int { return int(max(-1, min(1, b.Bytes-a.Bytes))) })
	return all
}

// hyper returns an integer hyperparameter of the architecture, 0 if absent; of an array, the first
// element.
func hyper(f *gguf.File, key string) int64 {
	v, _ := f.Hyper(key)
	for _, e := range v.All() {
		v = e
		break
	}
	n, _ := v.Int()
	return min(max(n, 0), 1<<31)
}

// headSize returns the length of a head's keys and values.
func headSize(f *gguf.File) (key, value int64) {
	key, value = hyper(f, "attention.key_length"), hyper(f, "attention.value_length")
	if heads := hyper(f, "attention.head_count"); heads > 0 {
		if key == 0 {
			key = hyper(f, "embedding_length") / heads
		}
		if value == 0 {
			value = hyper(f, "embedding_length") / heads
		}
	}
	return key, value
}

// cacheBytes returns the bytes that one token adds to the key-value cache, in 16-bit numbers. It is
// an upper bound, because layers with a window keep fewer tokens.
func cacheBytes(f *gguf.File) int64 {
	heads := hyper(f, "attention.head_count_kv")
	if heads == 0 {
		heads = hyper(f, "attention.head_count")
	}
	key, value := headSize(f)
	n := float64(hyper(f, "block_count")) * float64(heads) * float64(key+value) * 2
	if n > 1<<40 {
		return 0 // the metadata is not plausible
	}
	return int64(n)
}

func (in *inspection) print(out io.Writer, f *gguf.File, width int) error {
	title := []string{plain(in.Name)}
	if in.Name == "" {
		title[0] = plain(strings.TrimSuffix(filepath.Base(in.File), ".gguf"))
	}
	if in.Architecture != "" {
		title = append(title, plain(in.Architecture))
	}
	if in.Parameters > 0 {
		title = append(title, countText(in.Parameters)+" parameters", fmt.Sprintf("%.2f bits each", in.BitsPer))
	}
	if in.FileType != "" {
		title = append(title, in.FileType)
	}
	line := cut(strings.Join(title, "  ·  "), width)
	fmt.Fprintf(out, "\n%s\n%s\n\n", line, strings.Repeat("─", len([]rune(line))))
	for _, r := range in.facts(f) {
		if r[1] != "" {
			fmt.Fprintf(out, "%-13s %s\n", r[0], cut(r[1], width-14))
		}
	}
	if err := table(out, "by purpose", in.Kinds, width); err != nil {
		return err
	}
	if err := table(out, "by type", in.Types, width); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// facts returns the lines of the overview. Lines without a text are left out.
func (in *inspection) facts(f *gguf.File) [][2]string {
	parts := ""
	if in.Parts > 1 {
		parts = fmt.Sprintf(" in %d parts", in.Parts)
	}
	return [][2]string{
		{"file", fmt.Sprintf("%s%s, GGUF %d, %d tensors, %d keys", bytesText(in.Bytes), parts, in.Version, in.Tensors, f.Metadata().Len())},
		{"layers", layersText(f)},
		{"attention", attentionText(f)},
		{"context", contextText(f, in.Cache)},
		{"tokenizer", tokenizerText(f)},
		{"chat", chatText(f)},
		{"licence", licenceText(f)},
		{"source", sourceText(f)},
	}
}

func layersText(f *gguf.File) string {
	layers := hyper(f, "block_count")
	if layers == 0 {
		return ""
	}
	s := fmt.Sprintf("%d, width %d, feed forward %d", layers, hyper(f, "embedding_length"), hyper(f, "feed_forward_length"))
	if n := hyper(f, "expert_count"); n > 0 {
		s += fmt.Sprintf(", %d of %d experts", hyper(f, "expert_used_count"), n)
	}
	return s
}

func attentionText(f *gguf.File) string {
	heads := hyper(f, "attention.head_count")
	if heads == 0 {
		return ""
	}
	key, _ := headSize(f)
	s := fmt.Sprintf("%d heads of %d", heads, key)
	if kv := hyper(f, "attention.head_count_kv"); kv > 0 && kv != heads {
		s += fmt.Sprintf(", %d for keys and values", kv)
	}
	if n := hyper(f, "attention.sliding_window"); n > 0 {
		s += fmt.Sprintf(", window %d", n)
	}
	if v, _ := f.Hyper("rope.freq_base"); v.Kind() == gguf.Float32 {
		base, _ := v.Float()
		s += ", rotary base " + strconv.FormatFloat(base, 'f', -1, 32) // 1000000, not 1e+06
	}
	return s
}

func contextText(f *gguf.File, cache int64) string {
	n := hyper(f, "context_length")
	if n == 0 {
		return ""
	}
	s := fmt.Sprintf("%d tokens", n)
	if cache > 0 {
		s += fmt.Sprintf("; keys and values %s a token, %s in all at 16 bits", bytesText(cache), bytesText(cache*n))
	}
	return s
}

func tokenizerText(f *gguf.File) string {
	m := f.Metadata()
	model, ok := m.Text("tokenizer.ggml.model")
	if !ok {
		return ""
	}
	s := plain(model)
	if pre, ok := m.Text("tokenizer.ggml.pre"); ok {
		s += " (" + plain(pre) + ")"
	}
	tokens, _ := m.Get("tokenizer.ggml.tokens")
	s += fmt.Sprintf(", %d tokens", tokens.Len())
	names := map[uint64]string{}
	for i, v := range tokens.All() {
		names[uint64(i)] = v.String()
	}
	for _, k := range []string{"bos", "eos"} {
		if id, ok := m.Uint("tokenizer.ggml." + k + "_token_id"); ok {
			s += fmt.Sprintf(", %s %d %s", k, id, cut(plain(names[id]), 24))
		}
	}
	return s
}

func chatText(f *gguf.File) string {
	s, ok := f.Metadata().Text("tokenizer.chat_template")
	if !ok {
		return ""
	}
	return "template of " + bytesText(int64(len(s)))
}

func licenceText(f *gguf.File) string {
	m := f.Metadata()
	s, _ := m.Text("general.license")
	for _, key := range []string{"general.license.name", "general.license.link"} {
		if t, ok := m.Text(key); ok {
			s = strings.TrimPrefix(s+", "+t, ", ")
		}
	}
	if s == "" {
		return "the file names none"
	}
	return plain(s)
}

func sourceText(f *gguf.File) string {
	for _, key := range []string{"general.source.url", "general.url", "general.repo_url", "general.base_model.0.repo_url"} {
		if s, ok := f.Metadata().Text(key); ok {
			return plain(s)
		}
	}
	return ""
}

// table shows the shares with bars.
func table(out io.Writer, title string, all []share, width int) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintf(out, "\n%s\n", title)
	total := int64(0)
	for _, s := range all {
		total += s.Bytes
	}
	bars := max(8, min(32, width-60))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, s := range all {
		part := float64(s.Bytes) / float64(max(1, total))
		fmt.Fprintf(w, "  %s\t%s\t%9s\t%5.1f %%\t%s in %d\n", s.Name, bar(part, bars), bytesText(s.Bytes), 100*part, countText(s.Parameters), s.Tensors)
	}
	return w.Flush()
}
