package gguf

import (
	"context"
	"fmt"
	"io"

	"github.com/rayo-go/rayo/gguf/block"
)

// transcodeElements is the approximate number of elements that are converted at a time.
const transcodeElements = 1 << 20

// writeAs writes the tensor with type f. Quantize has checked the importances.
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
	if f.Scalar() {
		importance = nil
	}
	// A part has whole rows. Rows of a part have the same importances.
	same := t.Elements()
	if int64(len(importance)) > row {
		same = row * t.Dims[1]
	}
	n := min(max(1, transcodeElements/row)*row, same)
	x := make([]float32, n)
	b := make([]byte, len(x)/f.Elements()*f.Bytes())
	for at := int64(0); at < t.Elements(); at += int64(len(x)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		x = x[:min(n, same-at%same)]
		if err := t.Dequantize(x, at); err != nil {
			return err
		}
		b = b[:len(x)/f.Elements()*f.Bytes()]
		if err := f.QuantizeWeighted(b, x, rowImportance(importance, row, at/same)); err != nil {
			return fmt.Errorf("gguf: tensor %q, from element %d on: %w", t.Name, at, err)
		}
		if _, err := dst.Write(b); err != nil {
			return err
		}
		progress(int64(len(x)) / int64(t.Type.Elements()) * int64(t.Type.Bytes()))
	}
	return nil
}

// rowImportance returns the importances of the rows of a matrix.
func rowImportance(all []float32, row, matrix int64) []float32 {
	if int64(len(all)) <= row {
		return all
	}
	return all[matrix*row:][:row]
}

// checkImportance returns an error if type f needs importances and there are none, or if their number is neither the
// length of a row nor that of a row of each matrix.
func (t *Tensor) checkImportance(f block.Format, importance []float32) error {
	if f == t.Type {
		return nil
	}
	if importance == nil {
		if f.Layout().Weighted {
			return fmt.Errorf("gguf: tensor %q: the type %v needs %w, and QuantizeOptions.Importance has none for this name", t.Name, f, block.ErrImportance)
		}
		return nil
	}
	row, rows := t.Row()
	n, matrices := int64(len(importance)), int64(1)
	if len(t.Dims) > 2 && t.Dims[1] > 0 {
		matrices = rows / t.Dims[1]
	}
	if n == row || n == row*matrices {
		return nil
	}
	return fmt.Errorf("gguf: tensor %q: %w: there are %d, expected %d, one for each element of a row, or %d, for a row of each matrix", t.Name, block.ErrImportance, n, row, row*matrices)
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
