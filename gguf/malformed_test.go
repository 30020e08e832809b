package gguf

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// accepted has the expected outcome for files of the corpus that readers may accept or reject.
var accepted = map[string]bool{
	"12_key_empty": false, "23_bool_2": true, "30_tensor_name_300": true, "33_ndims_0": true,
	"34_dim_zero": true, "51_name_nul": true, "52_key_invalid_utf8": true,
}

// corpus returns the files of testdata/malformed.zip.
func corpus(t testing.TB) map[string][]byte {
	t.Helper()
	z, err := zip.OpenReader("testdata/malformed.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = b
	}
	return files
}

// allocated returns the bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// open reads a file that does not know its bytes' number is small.
func open(b []byte) (*File, error) { return NewReader(bytes.NewReader(b), int64(len(b))) }

// A counter counts the bytes that are read, including requested bytes after the end.
type counter struct {
	io.ReaderAt
	reads, bytes int
}

func (c *counter) ReadAt(b []byte, off int64) (int, error) {
	c.reads, c.bytes = c.reads+1, c.bytes+len(b)
	return c.ReaderAt.ReadAt(b, off)
}

// refused opens a file and returns the error, which must be a FormatError with a field and an offset in the file. The
// allocated bytes, the bytes read and the number of allocations must be at most small multiples of the file's size.
func refused(t *testing.T, name string, b []byte) error {
	t.Helper()
	var err error
	c := &counter{ReaderAt: bytes.NewReader(b)}
	used := allocated(func() { _, err = NewReader(c, int64(len(b))) })
	if most := uint64(4*len(b) + 64<<10); used > most {
		t.Errorf("%s: %d bytes allocated for a file of %d", name, used, len(b))
	}
	if c.bytes > 4*len(b) || c.reads > 8 {
		t.Errorf("%s: %d bytes read of a file of %d, in %d reads", name, c.bytes, len(b), c.reads)
	}
	if n := testing.AllocsPerRun(1, func() { _, _ = open(b) }); n > float64(len(b)/8+100) {
		t.Errorf("%s: %v allocations for a file of %d bytes", name, n, len(b))
	}
	var e *FormatError
	if err != nil && (!errors.As(err, &e) || e.Field == "" || e.Offset < 0 || e.Offset > int64(len(b))) {
		t.Errorf("%s: %v (%T) names no field", name, err, err)
	}
	return err
}

func TestMalformed(t *testing.T) {
	files := corpus(t)
	var manifest map[string]struct{ Expect, Note string }
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 43 {
		t.Fatalf("%d files", len(manifest))
	}
	for name, m := range manifest {
		b, ok := files[name+".gguf"]
		if !ok {
			t.Fatalf("no file %s", name)
		}
		err := refused(t, name, b)
		want := m.Expect == "ok" || m.Expect == "either" && accepted[name]
		if (err == nil) != want {
			t.Errorf("%s (%s): %v, want it accepted: %v", name, m.Note, err, want)
		}
		t.Logf("%s: %v", name, err)
	}
	if _, err := open(files["07_big_endian_v3.gguf"]); !errors.Is(err, ErrByteOrder) {
		t.Errorf("big-endian: %v", err)
	}
	if _, err := open(files["06_version_future.gguf"]); !errors.Is(err, ErrVersion) {
		t.Errorf("version 4: %v", err)
	}
}

// raw builds files that no writer writes.
type raw []byte

func rawFile(version uint32, tensors, keys uint64) raw {
	return raw(magic).u32(version).u64(tensors).u64(keys)
}

func (b raw) u32(v uint32) raw { return binary.LittleEndian.AppendUint32(b, v) }
func (b raw) u64(v uint64) raw { return binary.LittleEndian.AppendUint64(b, v) }
func (b raw) str(s string) raw { return append(b.u64(uint64(len(s))), s...) }
func (b raw) zeros(n int) raw  { return append(b, make([]byte, n)...) }
func (b raw) pad(to int) raw   { return b.zeros((to - len(b)%to) % to) }
func (b raw) key(s string) raw { return b.str(s) }
func (b raw) kind(k Kind) raw  { return b.u32(uint32(k)) }
func (b raw) info(name string, typ uint32, offset uint64, dims ...uint64) raw {
	b = b.str(name).u32(uint32(len(dims)))
	for _, d := range dims {
		b = b.u64(d)
	}
	return b.u32(typ).u64(offset)
}

// TestMalformedFields tests malformed files that the corpus does not contain.
func TestMalformedFields(t *testing.T) {
	many := func(n int) []uint64 { return make([]uint64, n) }
	for name, c := range map[string]struct {
		file raw
		want error
		says string
	}{
		"key count 2^64-1":       {rawFile(3, 0, 1<<64-1), ErrTruncated, "key count"},
		"key of 1 GiB":           {rawFile(3, 0, 1).u64(1 << 30).zeros(13), ErrTruncated, "key 0"},
		"element type 99":        {rawFile(3, 0, 1).key("a").kind(Array).u32(99).u64(1).zeros(9), ErrFormat, "element type"},
		"2^61 strings":           {rawFile(3, 0, 1).key("a").kind(Array).kind(String).u64(1 << 61).zeros(9), ErrTruncated, "element count"},
		"string beyond the end":  {rawFile(3, 0, 1).key("a").kind(Array).kind(String).u64(2).str("b").u64(99).zeros(9), ErrTruncated, `"a" element 1`},
		"alignment is a string":  {rawFile(3, 0, 1).key(keyAlignment).kind(String).str("32"), ErrFormat, "alignment"},
		"alignment 2^21":         {rawFile(3, 0, 1).key(keyAlignment).kind(Uint32).u32(1 << 21), ErrFormat, "alignment"},
		"2^32-1 dimensions":      {rawFile(3, 1, 0).str("t").u32(1<<32 - 1).zeros(99), ErrFormat, "number of dimensions"},
		"dimensions [2^64-1, 3]": {rawFile(3, 1, 0).info("t", 0, 0, 1<<64-1, 3).pad(32).zeros(32), ErrFormat, "dimension 0"},
		"type 2^32-1":            {rawFile(3, 1, 0).info("t", 1<<32-1, 0, 32).pad(32).zeros(128), ErrFormat, "type"},
		"offset and size wrap":   {rawFile(3, 1, 0).info("t", 0, 1<<63-32, 32).pad(32).zeros(128), ErrTruncated, "offset"},
		"offset 2^64-32":         {rawFile(3, 1, 0).info("t", 0, 1<<64-32, 32).pad(32).zeros(128), ErrFormat, "offset"},
		"a name twice":           {rawFile(3, 2, 0).info("t", 0, 0, 32).info("t", 0, 128, 32).pad(32).zeros(256), ErrFormat, `tensor 1 ("t")`},
		"dimensions wrap to 0":   {rawFile(3, 1, 0).info("t", 0, 0, 1<<32, 1<<32, 0).pad(32), ErrLimit, "dimensions"},
		"elements wrap":          {rawFile(3, 1, 0).info("t", 41, 0, 1<<62, 2).pad(32), ErrLimit, "dimensions"},
		"5 dimensions":           {rawFile(3, 1, 0).info("t", 0, 0, many(5)...), ErrFormat, "number of dimensions"},
		"overlap backwards":      {rawFile(3, 2, 0).info("b", 0, 32, 32).info("a", 0, 0, 32).pad(32).zeros(256), ErrFormat, "lies in"},
		"only a version":         {raw(magic).u32(3), ErrTruncated, "tensor count"},
		"version 0x00030001":     {raw(magic).u32(0x00030001).zeros(16), ErrVersion, "version"},
		"a key of 65536 bytes":   {rawFile(3, 0, 1).key(strings.Repeat("k", 1<<16)).kind(Bool).zeros(99), ErrLimit, "key 0 length"},
	} {
		err := refused(t, name, c.file)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %v with %q", name, err, c.want, c.says)
		}
	}
	for name, b := range map[string]raw{
		"nothing":           rawFile(2, 0, 0),
		"tensors backwards": rawFile(3, 2, 0).info("b", 0, 128, 32).info("a", 0, 0, 32).pad(32).zeros(256),
		"a gap":             rawFile(3, 2, 0).info("a", 0, 0, 32).info("b", 0, 256, 32).pad(32).zeros(384),
		"no last padding":   rawFile(3, 1, 0).info("a", 24, 0, 3).pad(32).zeros(3),
		"an empty tensor":   rawFile(3, 1, 0).info("a", 24, 0, 3, 0),
	} {
		if _, err := open(b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEveryPrefix truncates a file after every byte.
func TestEveryPrefix(t *testing.T) {
	m, infos, data := sample(t, 9)
	m.Delete("texts") // the long one
	b := write(t, m, infos[:4], data)
	f, err := open(b)
	if err != nil {
		t.Fatal(err)
	}
	last := f.Tensor(infos[3].Name)
	for n := range last.Offset() + last.Size() {
		_, err := open(b[:n])
		var e *FormatError
		if !errors.As(err, &e) || !errors.Is(err, ErrTruncated) || e.Offset > n {
			t.Fatalf("the first %d bytes of %d: %v", n, len(b), err)
		}
	}
}
