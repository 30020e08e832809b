package gguf

import (
	"context"
	"fmt"
	"io"

	"github.com/rayo-go/rayo/gguf/block"
)

// transcodeElements is the approximate number of elements that are converted at a time.
const transcodeElements = 1 << 20

// writeAs writes the tensor with type f.
func (t *Tensor) writeAs(ctx context.Context, dst io.Writer, f block.Format, o QuantizeOptions) error {
	progress := o.Progress
	if progress == nil {
		progress = func(int64) {}
	}
	if f == t.Type {
		return copyTensor(ctx, dst, t, progress)
	}
	row, _ := t.Row()
	if row == 0 || t.size == 0 {
		return nil
	}
	importance := o.Importance[t.Name]
	if importance != nil && int64(len(importance)) != row {
		return fmt.Errorf("gguf: tensor %q: %w: there are %d for rows of %d elements, expected one for each element", t.Name, block.ErrImportance, len(importance), row)
	}
	if f.Scalar() {
		importance = nil
	}
	// Whole rows, or whole blocks of both types if rows are long.
	n := max(1, transcodeElements/row) * row
	x := make([]float32, min(n, t.Elements()))
	b := make([]byte, len(x)/f.Elements()*f.Bytes())
	for at := int64(0); at < t.Elements(); at += int64(len(x)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		x = x[:min(int64(len(x)), t.Elements()-at)]
		if err := t.Dequantize(x, at); err != nil {
			return err
		}
		b = b[:len(x)/f.Elements()*f.Bytes()]
		if err := f.QuantizeWeighted(b, x, importance); err != nil {
			return fmt.Errorf("gguf: tensor %q, from element %d on: %w", t.Name, at, err)
		}
		if _, err := dst.Write(b); err != nil {
			return err
		}
		progress(int64(len(x)) / int64(t.Type.Elements()) * int64(t.Type.Bytes()))
	}
	return nil
}

// copyTensor writes the bytes of a tensor.
func copyTensor(ctx context.Context, dst io.Writer, t *Tensor, progress func(int64)) error {
	b := make([]byte, min(t.size, 4<<20))
	for at := int64(0); at < t.size; at += int64(len(b)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		b = b[:min(int64(len(b)), t.size-at)]
		if _, err := t.ReadAt(b, at); err != nil {
			return err
		}
		if _, err := dst.Write(b); err != nil {
			return err
		}
		progress(int64(len(b)))
	}
	return nil
}

// Copy writes the tensors and the metadata of a file to a new file, as [Create] does. With
// [SplitAt] the new file is split; without, it is one file, even if f is split. progress may
// be nil.
func Copy(ctx context.Context, path string, f *File, progress func(bytes int64), opts ...CreateOption) error {
	w, err := Create(path, f.meta, f.infos(), opts...)
	if err != nil {
		return err
	}
	defer w.Abort()
	if progress == nil {
		progress = func(int64) {}
	}
	for _, t := range f.tensors {
		dst, err := w.Tensor(t.Name)
		if err == nil {
			err = copyTensor(ctx, dst, t, progress)
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}
