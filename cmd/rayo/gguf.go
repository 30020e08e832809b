package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/schollz/progressbar/v3"

	"github.com/rayo-go/rayo/gguf"
)

type ggufCmd struct {
	Inspect  ggufInspectCmd  `cmd:"" help:"Show the properties of a model: architecture, sizes, types, context, tokenizer, licence."`
	Ls       ggufLsCmd       `cmd:"" help:"List the tensors, or the metadata."`
	Verify   ggufVerifyCmd   `cmd:"" help:"Check files: structure, metadata against tensors, numbers that are not finite."`
	Set      ggufSetCmd      `cmd:"" help:"Set and remove metadata."`
	Quantize ggufQuantizeCmd `cmd:"" help:"Write a model with weights of fewer bits."`
	Convert  ggufConvertCmd  `cmd:"" help:"Make a GGUF file from a folder with safetensors files."`
	Split    ggufSplitCmd    `cmd:"" help:"Split a model into files of limited size."`
	Merge    ggufMergeCmd    `cmd:"" help:"Join the files of a model."`
	Tokenize ggufTokenizeCmd `cmd:"" help:"Show the tokens of a text in a model's vocabulary."`
	Diff     ggufDiffCmd     `cmd:"" help:"Compare the metadata and the tensors of two models."`
}

// openModel opens a file of either byte order.
func openModel(path string) (*gguf.File, error) { return gguf.Open(path, gguf.BigEndian()) }

// plain returns text of a file without control characters, which could move the cursor of
// a terminal or change colours.
func plain(s string) string {
	ok := func(r rune) bool { return r != unicode.ReplacementChar && unicode.IsPrint(r) }
	if strings.IndexFunc(s, func(r rune) bool { return !ok(r) }) < 0 {
		return s
	}
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

// cut shortens s to at most n columns.
func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:max(0, n-1)]) + "…"
}

// columns returns the width of the terminal from $COLUMNS, or 100.
func columns() int {
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n >= 40 {
		return n
	}
	return 100
}

// countText returns a number with a unit of its size, for example K or M.
func countText(n int64) string {
	for _, u := range []struct {
		name string
		size float64
	}{{"T", 1e12}, {"B", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if x := float64(n) / u.size; x >= 1 {
			return strconv.FormatFloat(x, 'g', 3, 64) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// bytesBar returns a progress bar of bytes, which shows the speed and the remaining time. It prints only
// on terminals.
func bytesBar(a *app, total int64, what string) *progressbar.ProgressBar {
	return progressbar.NewOptions64(total, progressbar.OptionSetWriter(a.err), progressbar.OptionSetVisibility(terminal(a.err)),
		progressbar.OptionClearOnFinish(), progressbar.OptionSetWidth(30), progressbar.OptionShowBytes(true),
		progressbar.OptionSetDescription(what), progressbar.OptionThrottle(65e6))
}

// sizeOf returns the number of bytes of all tensors.
func sizeOf(f *gguf.File) (n int64) {
	for t := range f.Tensors() {
		n += t.Size()
	}
	return n
}

// fresh returns an error if a file exists and must not be replaced, because it is an input or force is
// false.
func fresh(path string, force bool, inputs ...string) error {
	out, err := os.Stat(path)
	if err != nil {
		return nil
	}
	for _, in := range inputs {
		if s, err := os.Stat(in); err == nil && os.SameFile(s, out) {
			return fmt.Errorf("%s is the input: write to another file", path)
		}
	}
	if !force {
		return fmt.Errorf("%s exists already; --force replaces it", path)
	}
	return nil
}

type ggufSetCmd struct {
	File   string   `arg:"" help:"A GGUF file; for a split model, the part to change."`
	Values []string `arg:"" optional:"" placeholder:"KEY=VALUE" help:"What to set: KEY=VALUE keeps the type the key has, KEY:TYPE=VALUE gives it one of u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 bool string. A new key without a type is a string."`
	Remove []string `placeholder:"KEY" help:"Keys to remove."`
}

func (c *ggufSetCmd) Run(a *app) error {
	if len(c.Values)+len(c.Remove) == 0 {
		return fmt.Errorf("no change is given, expected KEY=VALUE or --remove KEY")
	}
	rewritten, err := gguf.Edit(c.File, c.change)
	if err != nil {
		return err
	}
	how := "the tensors stayed where they are"
	if rewritten {
		how = "written anew, since the metadata did not fit before the tensors"
	}
	_, err = fmt.Fprintf(a.out, "%s: %d set, %d removed; %s\n", plain(c.File), len(c.Values), len(c.Remove), how)
	return err
}

func (c *ggufSetCmd) change(m *gguf.Metadata) error {
	for _, key := range c.Remove {
		if !m.Delete(key) {
			return fmt.Errorf("the file has no key %q", key)
		}
	}
	for _, kv := range c.Values {
		key, text, ok := strings.Cut(kv, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=VALUE", kv)
		}
		key, kind, typed := strings.Cut(key, ":")
		if !typed {
			kind = "string"
			if old, ok := m.Get(key); ok {
				kind = old.Kind().String()
			}
		}
		v, err := parseValue(kind, text)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if err := m.Set(key, v); err != nil {
			return err
		}
	}
	return nil
}

// parsers has for each kind a function that parses the text of a value.
var parsers = map[string]func(string) (gguf.Value, error){
	"u8": unsigned[uint8](8), "u16": unsigned[uint16](16), "u32": unsigned[uint32](32), "u64": unsigned[uint64](64),
	"i8": signed[int8](8), "i16": signed[int16](16), "i32": signed[int32](32), "i64": signed[int64](64),
	"f32":    floating[float32](32),
	"f64":    floating[float64](64),
	"bool":   func(s string) (gguf.Value, error) { b, err := strconv.ParseBool(s); return gguf.NewValue(b), err },
	"string": func(s string) (gguf.Value, error) { return gguf.NewValue(s), nil },
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int) func(string) (gguf.Value, error) {
	return func(s string) (gguf.Value, error) {
		n, err := strconv.ParseUint(s, 0, bits)
		return gguf.NewValue(T(n)), err
	}
}

func signed[T int8 | int16 | int32 | int64](bits int) func(string) (gguf.Value, error) {
	return func(s string) (gguf.Value, error) {
		n, err := strconv.ParseInt(s, 0, bits)
		return gguf.NewValue(T(n)), err
	}
}

func floating[T float32 | float64](bits int) func(string) (gguf.Value, error) {
	return func(s string) (gguf.Value, error) {
		x, err := strconv.ParseFloat(s, bits)
		return gguf.NewValue(T(x)), err
	}
}

func parseValue(kind, text string) (gguf.Value, error) {
	p, ok := parsers[kind]
	if !ok {
		names := strings.Join(slices.Sorted(maps.Keys(parsers)), " ")
		return gguf.Value{}, fmt.Errorf("a value of type %s cannot be set: the types are %s", kind, names)
	}
	return p(text)
}
