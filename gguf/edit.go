package gguf

import (
	"io"
	"os"
	"path/filepath"
)

// Edit changes the metadata of a file: change modifies a copy of it, and the result replaces the
// old metadata. Tensors do not change. In a split file, Edit changes the part with the given name.
//
// Where the new metadata fits between the file's beginning and its first tensor,
// only this is written, in one call. Otherwise a new file is written beside the
// old one and takes its name; rewritten reports which it was. A new alignment
// writes the file anew. The error is ErrByteOrder for a big-endian file.
func Edit(path string, change func(*Metadata) error) (rewritten bool, err error) {
	path, err = filepath.EvalSymlinks(path) // a link stays one
	if err != nil {
		return false, err
	}
	p, err := openPart(path, options{})
	if err != nil {
		return false, err
	}
	f, err := newFile(p, options{})
	if err != nil {
		return false, err
	}
	defer f.Close()
	meta := f.meta.Clone()
	if err := change(meta); err != nil {
		return false, err
	}
	alignment, err := alignmentOf(meta, 0)
	if err != nil {
		return false, err
	}
	b := f.encode(meta)
	if alignment == f.alignment && align(int64(len(b)), alignment) == f.data {
		return false, overwrite(path, append(b, make([]byte, f.data-int64(len(b)))...))
	}
	return true, f.rewrite(path, meta)
}

// infos returns the descriptions of the tensors.
func (f *File) infos() []TensorInfo {
	all := make([]TensorInfo, len(f.tensors))
	for i, t := range f.tensors {
		all[i] = t.Info()
	}
	return all
}

// encode returns the header with other metadata, the tensors where they are.
func (f *File) encode(meta *Metadata) []byte {
	offsets := make([]int64, len(f.tensors))
	for i, t := range f.tensors {
		offsets[i] = t.offset
	}
	return appendHeader(f.version, meta, f.infos(), offsets)
}

// overwrite replaces the beginning of a file.
func overwrite(path string, b []byte) error {
	w, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = w.WriteAt(b, 0)
	if err == nil {
		err = w.Sync()
	}
	if e := w.Close(); err == nil {
		err = e
	}
	return err
}

// rewrite writes the file anew with other metadata.
func (f *File) rewrite(path string, meta *Metadata) error {
	w, err := createExact(path, meta, f.infos())
	if err != nil {
		return err
	}
	defer w.Abort()
	for t := range f.Tensors() {
		dst, err := w.Tensor(t.Name)
		if err == nil {
			_, err = io.Copy(dst, t.Open())
		}
		if err != nil {
			return err
		}
	}
	f.Close() // some systems rename no file over one that is open
	return w.Close()
}

// createExact is Create for one part, and keeps all keys.
func createExact(path string, meta *Metadata, tensors []TensorInfo) (*FileWriter, error) {
	f := &FileWriter{parts: []*outPart{{path: path, meta: meta, tensors: tensors}}}
	if err := f.parts[0].open(); err != nil {
		f.Abort()
		return nil, err
	}
	if s, err := os.Stat(path); err == nil {
		_ = f.parts[0].file.Chmod(s.Mode()) // where the system has modes
	}
	return f, nil
}
