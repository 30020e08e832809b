// Command gguf_model writes a small model, looks into it, writes it again with
// fewer bits, and multiplies by one of its matrices on a device. With the path of
// a GGUF file it does the last three with that.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
)

func main() {
	dir, err := os.MkdirTemp("", "gguf_model")
	if err != nil {
		log.Fatal(err)
	}
	path := ""
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	err = run(context.Background(), os.Stdout, dir, path)
	os.RemoveAll(dir)
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer, dir, path string) error {
	if path == "" {
		path = filepath.Join(dir, "small.gguf")
		if err := write(path); err != nil {
			return err
		}
	}
	smaller := filepath.Join(dir, "smaller.gguf")
	if err := quantize(ctx, w, path, smaller); err != nil {
		return err
	}

	// Mapped: the blocks of a tensor are a view of the file, and go to the device
	// from there.
	f, err := gguf.Open(smaller, gguf.Mapped())
	if err != nil {
		return err
	}
	defer f.Close()
	show(w, f)
	for t := range f.Tensors() {
		if q := op.QuantType(t.Type); q != op.InvalidType && len(t.Dims) == 2 {
			return multiply(ctx, w, t, q)
		}
	}
	return fmt.Errorf("%s has no matrix of a type that devices multiply by", path)
}

// write makes a model of one layer, with random weights.
func write(path string) error {
	meta := &gguf.Metadata{}
	for _, kv := range []struct {
		key   string
		value gguf.Value
	}{
		{"general.architecture", gguf.NewValue("llama")},
		{"general.name", gguf.NewValue("Small")},
		{"llama.block_count", gguf.NewValue(uint32(1))},
		{"llama.embedding_length", gguf.NewValue(uint32(512))},
	} {
		if err := meta.Set(kv.key, kv.value); err != nil {
			return err
		}
	}
	tensors := []gguf.TensorInfo{
		{Name: "blk.0.attn_norm.weight", Type: block.F32, Dims: []int64{512}},
		{Name: "blk.0.ffn_up.weight", Type: block.F16, Dims: []int64{512, 2048}},
	}
	f, err := gguf.Create(path, meta, tensors)
	if err != nil {
		return err
	}
	defer f.Abort() // does nothing after Close
	r := rand.New(rand.NewPCG(1, 2))
	for _, t := range tensors {
		dst, err := f.Tensor(t.Name)
		if err != nil {
			return err
		}
		size, err := t.Size()
		if err != nil {
			return err
		}
		b := make([]byte, size)
		x := make([]float32, int(size)/t.Type.Bytes())
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		if err := t.Type.Quantize(b, x); err != nil {
			return err
		}
		if _, err := dst.Write(b); err != nil {
			return err
		}
	}
	return f.Close()
}

// quantize writes the model with most weights in Q4_K.
func quantize(ctx context.Context, w io.Writer, from, to string) error {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	show(w, f)
	recipe, _ := gguf.RecipeOf("Q4_K_M")
	return gguf.Quantize(ctx, to, f, recipe, gguf.QuantizeOptions{})
}

func show(w io.Writer, f *gguf.File) {
	name, _ := f.Metadata().Text("general.name")
	fmt.Fprintf(w, "%s (%s), %d parameters\n", name, f.Architecture(), f.Parameters())
	shown := 0
	for t := range f.Tensors() {
		if shown++; shown > 5 {
			break
		}
		fmt.Fprintf(w, "  %-24s %-5v %v, %d KiB\n", t.Name, t.Type, t.Dims, t.Size()>>10)
	}
}

// multiply multiplies ones by a matrix of the file.
func multiply(ctx context.Context, w io.Writer, t *gguf.Tensor, q op.DType) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	raw, err := t.Bytes()
	if err != nil {
		return err
	}
	shape := t.Shape()
	weights, err := device.UploadBlocks(ctx, dev, raw, q, shape...)
	if err != nil {
		return err
	}
	x := make([]float32, shape[1])
	for i := range x {
		x[i] = 1
	}
	b := batch.New(dev)
	y := b.MatMulQ(b.Upload(x, 1, shape[1]), b.Use(weights), batch.None)
	if err := b.Execute(ctx, y); err != nil {
		return err
	}
	got, err := batch.Read[float32](ctx, b, y)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "ones times %s: %.3f and %d more\n", t.Name, got[0], len(got)-1)
	return err
}
