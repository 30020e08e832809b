// Package convert makes GGUF files of the folders in which models are published:
// config.json, the tokenizer's files, and weights in safetensors files.
//
//	err := convert.Folder(ctx, os.DirFS("Qwen3-0.6B"), "qwen3.gguf", convert.Options{})
//
// Matrices keep their type, and vectors become F32; quantise the result
// with [gguf.Quantize]. The architectures are llama (with mistral and mixtral), qwen2, qwen3,
// qwen3_moe, smollm3, gemma2, gemma3, phi3, bert and nomic_bert.
//
// The package does not trust a folder: a missing part, an unexpected type or a wrong shape is an error that
// wraps one of the package's errors and names the file, the key or the tensor. The output file gets its name
// when it is complete.
package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/safetensors"
)

// Errors for missing parts of a folder. Errors of this package wrap one of these, or an error of
// the file system, of package safetensors or of package gguf.
var (
	ErrArchitecture = errors.New("unknown architecture")
	ErrConfig       = errors.New("unusable configuration")
	ErrTokenizer    = errors.New("unusable tokenizer")
	ErrTensor       = errors.New("unusable tensor")
)

// Options changes what [Folder] writes. The zero value keeps the types of the weights.
type Options struct {
	// Type is the type of all matrices: F32, F16 or BF16. Invalid keeps the type of each matrix.
	Type block.Format
	// Name is general.name. The default is _name_or_path of config.json.
	Name string
	// Progress is called with the number of bytes that were read since the last call.
	Progress func(bytes int64)
	// Split, if not 0, divides the file into parts: see [gguf.SplitAt].
	Split int64
}

// Size returns the bytes of the weights of a folder, for showing progress.
func Size(folder fs.FS) (int64, error) {
	w, err := openWeights(folder)
	if err != nil {
		return 0, err
	}
	defer w.Close()
	var n int64
	for t := range w.all() {
		n += t.Size()
	}
	return n, nil
}

// Folder converts the model in folder to the GGUF file path. It writes a temporary file and
// renames it at the end. When ctx ends, or after another error, the temporary file is removed, and a
// file that was at path before is unchanged.
func Folder(ctx context.Context, folder fs.FS, path string, o Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("convert: %w", err)
		}
	}()
	if o.Type != block.Invalid && o.Type != block.F32 && o.Type != block.F16 && o.Type != block.BF16 {
		return fmt.Errorf("type %v, expected F32, F16 or BF16; quantise the result with gguf.Quantize: %w", o.Type, ErrConfig)
	}
	c, err := readConfig(folder)
	if err != nil {
		return err
	}
	w, err := openWeights(folder)
	if err != nil {
		return err
	}
	defer w.Close()
	meta, err := c.metadata(o)
	if err != nil {
		return err
	}
	if err := addTokenizer(meta, folder, c); err != nil {
		return err
	}
	list, err := c.tensors(w, o)
	if err != nil {
		return err
	}
	set(meta, "general.file_type", fileType(list))
	return write(ctx, path, meta, list, o)
}

// write streams the tensors into the file.
func write(ctx context.Context, path string, meta *gguf.Metadata, list []tensor, o Options) error {
	infos := make([]gguf.TensorInfo, len(list))
	for i, t := range list {
		infos[i] = t.TensorInfo
	}
	var opts []gguf.CreateOption
	if o.Split > 0 {
		opts = append(opts, gguf.SplitAt(o.Split))
	}
	f, err := gguf.Create(path, meta, infos, opts...)
	if err != nil {
		return err
	}
	defer f.Abort()
	for i := range list {
		dst, err := f.Tensor(list[i].Name)
		if err != nil {
			return err
		}
		if err := list[i].writeTo(ctx, dst, o.Progress); err != nil {
			return fmt.Errorf("tensor %s: %w", list[i].Name, err)
		}
	}
	return f.Close()
}

// readJSON decodes a file of the folder, at most 256 MB of it.
func readJSON(folder fs.FS, name string, v any) error {
	f, err := folder.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	d := json.NewDecoder(io.LimitReader(f, 256<<20))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w: %w", name, ErrConfig, err)
	}
	return nil
}

// weights are the tensors of one or more safetensors files.
type weights struct {
	files []*safetensors.File
	close []io.Closer
	of    map[string]*safetensors.Tensor
}

// openWeights opens model.safetensors, or the files that its index names.
func openWeights(folder fs.FS) (*weights, error) {
	names := []string{"model.safetensors"}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	switch err := readJSON(folder, "model.safetensors.index.json", &index); {
	case err == nil:
		names = slices.Compact(slices.Sorted(maps.Values(index.Files)))
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	w := &weights{of: map[string]*safetensors.Tensor{}}
	for _, name := range names {
		if err := w.add(folder, name); err != nil {
			w.Close()
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return w, nil
}

// add opens a file of the folder.
func (w *weights) add(folder fs.FS, name string) error {
	if !fs.ValidPath(name) {
		return fmt.Errorf("the index of the weights names a file outside of the folder: %w", ErrConfig)
	}
	f, err := folder.Open(name)
	if err != nil {
		return err
	}
	w.close = append(w.close, f)
	r, ok := f.(io.ReaderAt)
	if !ok {
		return fmt.Errorf("the file system returns a %T, which does not implement io.ReaderAt: %w", f, ErrConfig)
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	s, err := safetensors.NewReader(r, info.Size())
	if err != nil {
		return err
	}
	w.files = append(w.files, s)
	for t := range s.Tensors() {
		if w.of[t.Name] != nil {
			return fmt.Errorf("tensor %s is in two files: %w", t.Name, ErrTensor)
		}
		w.of[t.Name] = t
	}
	return nil
}

func (w *weights) all() func(yield func(*safetensors.Tensor) bool) {
	return func(yield func(*safetensors.Tensor) bool) {
		for _, f := range w.files {
			for t := range f.Tensors() {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// Close closes the files.
func (w *weights) Close() {
	for _, c := range w.close {
		_ = c.Close()
	}
}
