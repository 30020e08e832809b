package gguf

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// The keys of a split file.
const (
	keySplitNo      = "split.no"
	keySplitCount   = "split.count"
	keySplitTensors = "split.tensors.count"
)

// partName matches the name of a part, for example NAME-00001-of-00003.gguf.
var partName = regexp.MustCompile(`^(.*)-(\d{5})-of-(\d{5})(\.gguf)$`)

// PartName returns the name of part i, counted from 0, of n.
func PartName(base string, i, n int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", strings.TrimSuffix(base, ".gguf"), i+1, n)
}

// maxParts bounds the files that are opened for one model.
const maxParts = 4096

// openParts opens the file with the given name and, if it is a part, the other parts.
func openParts(path string, o options, open func(string) (*part, error)) (*File, error) {
	p, err := open(path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(p, o)
	if err != nil {
		return nil, err
	}
	count, _ := f.meta.Uint(keySplitCount)
	if count < 2 {
		return f, nil
	}
	f.Close()
	dir, name := filepath.Split(path)
	m := partName.FindStringSubmatch(name)
	if m == nil || count > maxParts {
		return nil, splitError(path, "%d parts, and the name is not like NAME-00001-of-%05d.gguf", count, count)
	}
	if n, _ := strconv.Atoi(m[3]); uint64(n) != count {
		return nil, splitError(path, "%d parts, and %s in its name", count, m[3])
	}
	return joinParts(dir, m[1], int(count), o, open)
}

func splitError(file, format string, args ...any) error {
	return &FormatError{File: file, Field: strconv.Quote(keySplitCount), Err: fmt.Errorf("%w: "+format, append([]any{ErrSplit}, args...)...)}
}

// joinParts opens all parts and joins them to the first.
func joinParts(dir, base string, count int, o options, open func(string) (*part, error)) (_ *File, err error) {
	var all *File
	defer func() {
		if err != nil && all != nil {
			all.Close()
		}
	}()
	for i := range count {
		// The name cannot leave the folder: base has no path separator.
		path := filepath.Join(dir, PartName(base, i, count))
		p, err := open(path)
		if err != nil {
			return all, fmt.Errorf("gguf: part %d of %d: %w", i+1, count, err)
		}
		f, err := newFile(p, o)
		if err != nil {
			return all, err
		}
		if all == nil {
			all = f
		} else {
			all.parts = append(all.parts, p)
		}
		if err := all.join(f, i, count, path); err != nil {
			return all, err
		}
	}
	want, ok := all.meta.Uint(keySplitTensors)
	if ok && want != uint64(len(all.tensors)) {
		return all, splitError(PartName(base, 0, count), "%q is %d, the parts have %d tensors", keySplitTensors, want, len(all.tensors))
	}
	return all, nil
}

// join checks part i, and adds its tensors unless it is the first.
func (f *File) join(p *File, i, count int, path string) error {
	no, _ := p.meta.Uint(keySplitNo)
	n, _ := p.meta.Uint(keySplitCount)
	if no != uint64(i) || n != uint64(count) {
		return splitError(path, "it says that it is part %d of %d, its name that it is %d of %d", no+1, n, i+1, count)
	}
	if f == p {
		return nil
	}
	for _, t := range p.tensors {
		if f.byName[t.Name] != nil {
			return splitError(path, "tensor %q is in two parts", t.Name)
		}
		f.byName[t.Name] = t
		f.tensors = append(f.tensors, t)
	}
	return nil
}
