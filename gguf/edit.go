package gguf

import (
	"io"
	"os"
	"path/filepath"
)

// Edit changes the metadata of a file: change modifies a copy of it, and the result replaces the
// old metadata. Tensors do not change. In a split file, Edit changes the part with the given name.
//
// If the new metadata fits before the first tensor, Edit overwrites only this part of the
// file, in one call. Otherwise, or if the alignment changes, it writes a new file beside
// the old one and renames it to the old name; then rewritten is true. The error is
// ErrByteOrder for a big-endian file.
func Edit(path string, change func(*Metadata) error) (rewritten bool, err error) {
	path, err = filepath.EvalSymlinks(path) // so that a symbolic link remains, and its target changes
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

// encode returns the header with other metadata and unchanged offsets of tensors.
func (f *File) encode(meta *Metadata) []byte {
	offsets := make([]int64, len(f.tensors))
	for i, t := range f.tensors {
		offsets[i] = t.offset
	}
	return appendHeader(f.version, meta, f.infos(), offsets)
}

// overwrite replaces the start of a file by b.
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

// rewrite writes a new file with other metadata, which replaces the file.
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
	f.Close() // some systems cannot replace a file that is open
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
		_ = f.parts[0].file.Chmod(s.Mode()) // fails on systems without modes
	}
	return f, nil
}
