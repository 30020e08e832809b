package gguf

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
)

// sample returns metadata of every kind, and tensors of every type with random
// contents.
func sample(t testing.TB, seed uint64) (*Metadata, []TensorInfo, map[string][]byte) {
	t.Helper()
	m := &Metadata{}
	set := func(key string, v Value) {
		if err := m.Set(key, v); err != nil {
			t.Fatal(err)
		}
	}
	set(keyArchitecture, NewValue("llama"))
	set("u8", NewValue(uint8(200)))
	set("i8", NewValue(int8(-100)))
	set("u16", NewValue(uint16(60000)))
	set("i16", NewValue(int16(-30000)))
	set("u32", NewValue(uint32(4e9)))
	set("i32", NewValue(int32(-2e9)))
	set("u64", NewValue(uint64(math.MaxUint64)))
	set("i64", NewValue(int64(math.MinInt64)))
	set("f32", NewValue(float32(1e-5)))
	set("f64", NewValue(math.Inf(-1)))
	set("bool", NewValue(true))
	set("empty", NewArray([]string{}))
	set("texts", NewArray([]string{"a", "", "ä\n", strings.Repeat("x", 1000)}))
	set("numbers", NewArray([]float32{1, 2.5, float32(math.NaN())}))
	set("ids", NewArray([]int32{-1, 0, 1}))
	set("flags", NewArray([]bool{true, false}))
	r := rand.New(rand.NewPCG(seed, 1))
	var infos []TensorInfo
	data := map[string][]byte{}
	for _, f := range block.Formats() {
		info := TensorInfo{"t." + f.String(), f, []int64{int64(f.Elements()) * 3, 5}}
		size, err := info.Size()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, size)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		infos, data[info.Name] = append(infos, info), b
	}
	infos = append(infos, TensorInfo{"scalar", block.F32, nil}, TensorInfo{"none", block.Q4_K, []int64{256, 0}})
	data["scalar"], data["none"] = []byte{0, 0, 0x80, 0x3f}, nil
	return m, infos, data
}

// write returns the bytes of a file.
func write(t testing.TB, m *Metadata, infos []TensorInfo, data map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, m, infos)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, w, infos, data)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func fill(t testing.TB, w interface {
	Tensor(string) (io.Writer, error)
}, infos []TensorInfo, data map[string][]byte) {
	t.Helper()
	for _, i := range infos {
		dst, err := w.Tensor(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		for b := range slices.Chunk(data[i.Name], 100) {
			if _, err := dst.Write(b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// same fails unless a file has the metadata and the tensors.
func same(t *testing.T, f *File, m *Metadata, infos []TensorInfo, data map[string][]byte) {
	t.Helper()
	var keys []string
	for k, v := range f.Metadata().All() {
		if strings.HasPrefix(k, "split.") {
			continue
		}
		want, ok := m.Get(k)
		if !ok || !v.Equal(want) {
			t.Errorf("%s is %v, want %v", k, v, want)
		}
		keys = append(keys, k)
	}
	if len(keys) != m.Len() {
		t.Errorf("keys %v, want %d", keys, m.Len())
	}
	var got []TensorInfo
	for x := range f.Tensors() {
		got = append(got, x.Info())
		b, err := io.ReadAll(x.Open())
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, data[x.Name]) {
			t.Errorf("%s: other bytes", x.Name)
		}
		if f.Tensor(x.Name) != x {
			t.Errorf("%s is not found", x.Name)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(infos) {
		t.Errorf("tensors %v, want %v", got, infos)
	}
}

func TestWriteRead(t *testing.T) {
	m, infos, data := sample(t, 1)
	for _, alignment := range []uint32{0, 1, 8, 256, 4096} {
		m := m.Clone()
		if alignment > 0 {
			if err := m.Set(keyAlignment, NewValue(alignment)); err != nil {
				t.Fatal(err)
			}
		}
		b := write(t, m, infos, data)
		f, err := NewBytes(b)
		if err != nil {
			t.Fatal(err)
		}
		same(t, f, m, infos, data)
		for x := range f.Tensors() {
			if x.Offset()%int64(max(alignment, 1)) != 0 {
				t.Errorf("%s stands at %d", x.Name, x.Offset())
			}
			view, err := x.Bytes()
			if err != nil || !bytes.Equal(view, data[x.Name]) {
				t.Errorf("%s: view: %v", x.Name, err)
			}
		}
	}
}

// TestBigEndian converts a file to big-endian byte order by hand: metadata, descriptions and the words of blocks.
func TestBigEndian(t *testing.T) {
	m, infos, data := sample(t, 2)
	b := turn(t, write(t, m, infos, data))
	if _, err := open(b); !errors.Is(err, ErrByteOrder) {
		t.Errorf("without the option: %v", err)
	}
	f, err := NewBytes(b, BigEndian())
	if err != nil {
		t.Fatal(err)
	}
	same(t, f, m, infos, data)
	if _, err := f.Tensor("t.Q8_0").Bytes(); !errors.Is(err, ErrByteOrder) {
		t.Errorf("a view: %v", err)
	}
	if b, err := f.Tensor("t.MXFP4").Bytes(); err != nil || !bytes.Equal(b, data["t.MXFP4"]) {
		t.Errorf("a view of bytes: %v", err)
	}
	// Reads that begin and end inside blocks and words.
	x := f.Tensor("t.Q6_K")
	for from := range 250 {
		got := make([]byte, 1+from*3)
		if _, err := x.ReadAt(got, int64(from)); err != nil || !bytes.Equal(got, data[x.Name][from:][:len(got)]) {
			t.Fatalf("%d bytes from %d on: %v", len(got), from, err)
		}
	}
}

// turn returns the big-endian version of a file.
func turn(t *testing.T, b []byte) []byte {
	f, err := NewBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	out := slices.Clone(b)
	at := 4
	swap := func(n int) { slices.Reverse(out[at:][:n]); at += n }
	text := func() { n := int(binary.LittleEndian.Uint64(b[at:])); swap(8); at += n }
	swap(4)
	swap(8)
	swap(8)
	for _, v := range f.Metadata().All() {
		text()
		swap(4)
		switch v.Kind() {
		case String:
			text()
		case Array:
			swap(4)
			swap(8)
			for range v.Len() {
				if v.Elem() == String {
					text()
				} else {
					swap(kinds[v.Elem()].size)
				}
			}
		default:
			swap(kinds[v.Kind()].size)
		}
	}
	for x := range f.Tensors() {
		text()
		swap(4)
		for range x.Dims {
			swap(8)
		}
		swap(4)
		swap(8)
		for one := range slices.Chunk(out[x.Offset():][:x.Size()], x.Type.Bytes()) {
			reverseWords(one, x.Type.Layout().Words)
		}
	}
	return out
}

func TestValues(t *testing.T) {
	m, _, _ := sample(t, 3)
	if n, ok := m.Uint("u64"); !ok || n != math.MaxUint64 {
		t.Error(n, ok)
	}
	for _, key := range []string{"i8", "f32", "bool", "texts", "missing", keyArchitecture} {
		if n, ok := m.Uint(key); ok {
			t.Errorf("%s is %d", key, n)
		}
	}
	if s, ok := m.Text(keyArchitecture); !ok || s != "llama" {
		t.Error(s, ok)
	}
	if _, ok := m.Text("missing"); ok {
		t.Error("a missing key has a text")
	}
	if x, ok := m.Float("i8"); !ok || x != -100 {
		t.Error(x, ok)
	}
	if b, ok := m.Bool("bool"); !ok || !b {
		t.Error(b, ok)
	}
	texts, _ := m.Get("texts")
	if got, err := Slice[string](texts); err != nil || len(got) != 4 || got[2] != "ä\n" {
		t.Error(got, err)
	}
	ids, _ := m.Get("ids")
	if got, err := Slice[int64](ids); err != nil || !reflect.DeepEqual(got, []int64{-1, 0, 1}) {
		t.Error(got, err)
	}
	if got, err := Slice[uint32](ids); !errors.Is(err, ErrValue) {
		t.Error(got, err)
	}
	if got, err := Slice[uint8](NewArray([]int64{255, 256})); !errors.Is(err, ErrValue) {
		t.Error(got, err)
	}
	if got, err := Slice[string](NewValue("x")); !errors.Is(err, ErrValue) {
		t.Error(got, err)
	}
	if s := NewArray([]int32{1, 2, 3, 4, 5, 6, 7, 8, 9}).String(); s != "[1, 2, 3, 4, 5, 6, 7, 8, … 9 in all]" {
		t.Error(s)
	}
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var back map[string]any
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	if back["f64"] != "-Infinity" || back["i16"] != -30000.0 || len(back["texts"].([]any)) != 4 {
		t.Errorf("%s", b)
	}
}

// TestDequantize reads parts of tensors and compares with package block.
func TestDequantize(t *testing.T) {
	m, infos, data := sample(t, 4)
	f, err := open(write(t, m, infos, data))
	if err != nil {
		t.Fatal(err)
	}
	for x := range f.Tensors() {
		per := int64(x.Type.Elements())
		all := make([]float32, x.Elements())
		if err := x.Type.Dequantize(all, data[x.Name]); err != nil {
			t.Fatal(err)
		}
		if len(all) < 2 {
			continue
		}
		got := make([]float32, 4*per)
		if err := x.Dequantize(got, 2*per); err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if math.Float32bits(v) != math.Float32bits(all[2*per+int64(i)]) && v == v {
				t.Fatalf("%s: element %d is %v", x.Name, i, v)
			}
		}
		if err := x.Dequantize(got, x.Elements()); !errors.Is(err, ErrLimit) {
			t.Errorf("%s beyond the end: %v", x.Name, err)
		}
		var e *block.SizeError
		if err := x.Dequantize(got[1:], 0); per > 1 && !errors.As(err, &e) {
			t.Errorf("%s: a part of a block: %v", x.Name, err)
		}
	}
}

func TestSplit(t *testing.T) {
	m, infos, data := sample(t, 5)
	dir := t.TempDir()
	w, err := Create(filepath.Join(dir, "model.gguf"), m, infos, SplitAt(2000))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	fill(t, w, infos, data)
	if names, _ := os.ReadDir(dir); !strings.HasPrefix(names[0].Name(), ".") {
		t.Errorf("%v before Close", names)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	paths := w.Paths()
	if len(paths) < 4 {
		t.Fatalf("%d parts", len(paths))
	}
	for _, path := range []string{paths[0], paths[2]} {
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		same(t, f, m, infos, data)
		if f.Parts() != len(paths) {
			t.Errorf("%d parts", f.Parts())
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	f, err := OpenFS(os.DirFS(dir), filepath.Base(paths[0]))
	if err != nil {
		t.Fatal(err)
	}
	same(t, f, m, infos, data)
	f.Close()

	other := filepath.Join(dir, "other.gguf")
	if err := os.Rename(paths[0], other); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(other); !errors.Is(err, ErrSplit) {
		t.Errorf("a part of another name: %v", err)
	}
	if _, err := Open(paths[1]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part is missing: %v", err)
	}
	if err := os.Rename(paths[1], paths[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(paths[0]); !errors.Is(err, ErrSplit) {
		t.Errorf("a part in the place of another: %v", err)
	}
}

// TestAbort checks that Abort leaves no temporary file and does not change the old file.
func TestAbort(t *testing.T) {
	m, infos, data := sample(t, 6)
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, end := range []func(*FileWriter) error{func(w *FileWriter) error { w.Abort(); return nil }, (*FileWriter).Close} {
		w, err := Create(path, m, infos)
		if err != nil {
			t.Fatal(err)
		}
		dst, err := w.Tensor(infos[0].Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Write(data[infos[0].Name][1:]); err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Write(make([]byte, 2)); !errors.Is(err, ErrLimit) {
			t.Errorf("more bytes than the tensor has: %v", err)
		}
		if _, err := w.Tensor(infos[1].Name); !errors.Is(err, errOrder) {
			t.Errorf("the next tensor before the end of one: %v", err)
		}
		if err := end(w); err == nil && w.Close() == nil {
			t.Error("closed without all tensors")
		}
		if b, err := os.ReadFile(path); err != nil || string(b) != "old" {
			t.Errorf("%q, %v", b, err)
		}
		if names, _ := os.ReadDir(dir); len(names) != 1 {
			t.Errorf("left: %v", names)
		}
	}
}

func TestEdit(t *testing.T) {
	m, infos, data := sample(t, 7)
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(path, write(t, m, infos, data), 0o600); err != nil {
		t.Fatal(err)
	}
	edit := func(key string, v *Value) bool {
		change := func(m *Metadata) error {
			if v == nil {
				m.Delete(key)
				return nil
			}
			return m.Set(key, *v)
		}
		rewritten, err := Edit(path, change)
		if err != nil {
			t.Fatal(err)
		}
		if err := change(m); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		same(t, f, m, infos, data)
		return rewritten
	}
	value := func(v Value) *Value { return &v }
	if edit(keyArchitecture, value(NewValue("qwen3"))) {
		t.Error("a text of the same length rewrote the file")
	}
	if !edit("general.name", value(NewValue(strings.Repeat("name", 100)))) {
		t.Error("a long text found room")
	}
	if !edit(keyAlignment, value(NewValue(uint32(64)))) {
		t.Error("another alignment found room")
	}
	edit("texts", nil)
	if s, err := os.Stat(path); err != nil || s.Mode() != 0o600 {
		t.Error(s.Mode(), err)
	}
	before, _ := os.ReadFile(path)
	if _, err := Edit(path, func(m *Metadata) error { return errOrder }); !errors.Is(err, errOrder) {
		t.Error(err)
	}
	if _, err := Edit(path, func(m *Metadata) error { return m.Set(keyAlignment, NewValue(uint32(3))) }); !errors.Is(err, ErrFormat) {
		t.Error(err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("a failed edit changed the file")
	}
}

// TestWriterRefuses checks that the writer returns errors for contents that readers would reject.
func TestWriterRefuses(t *testing.T) {
	aligned := &Metadata{}
	if err := aligned.Set(keyAlignment, NewValue("32")); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		m *Metadata
		t []TensorInfo
	}{
		"alignment":   {aligned, nil},
		"a part":      {&Metadata{}, []TensorInfo{{"a", block.Q4_0, []int64{33}}}},
		"no type":     {&Metadata{}, []TensorInfo{{"a", block.Invalid, []int64{33}}}},
		"negative":    {&Metadata{}, []TensorInfo{{"a", block.F32, []int64{-1}}}},
		"twice":       {&Metadata{}, []TensorInfo{{"a", block.F32, nil}, {"a", block.F32, nil}}},
		"5":           {&Metadata{}, []TensorInfo{{"a", block.F32, []int64{1, 1, 1, 1, 1}}}},
		"overflow":    {&Metadata{}, []TensorInfo{{"a", block.F32, []int64{1 << 40, 1 << 40}}}},
		"sum of both": {&Metadata{}, []TensorInfo{{"a", block.I8, []int64{1 << 62}}, {"b", block.I8, []int64{1 << 62}}}},
	} {
		if _, err := NewWriter(io.Discard, c.m, c.t); !errors.Is(err, ErrFormat) && !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzOpen opens random bytes. The result must be an error, or a file that can be read and written.
func FuzzOpen(f *testing.F) {
	for _, b := range corpus(f) {
		if len(b) < 4096 {
			f.Add(b)
		}
	}
	m, infos, data := sample(f, 8)
	f.Add(write(f, m, infos[:3], data))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, opts := range [][]Option{nil, {BigEndian()}} {
			x, err := NewBytes(b, opts...)
			if err != nil {
				var e *FormatError
				if !errors.As(err, &e) {
					t.Fatalf("%v is a %T", err, err)
				}
				continue
			}
			if _, err := json.Marshal(x.Metadata()); err != nil {
				t.Fatal(err)
			}
			for k, v := range x.Metadata().All() {
				_, _ = k, v.String()
			}
			again := x.infos()
			var out bytes.Buffer
			w, err := NewWriter(&out, x.Metadata(), again)
			if err != nil {
				t.Fatal(err)
			}
			for y := range x.Tensors() {
				dst, err := w.Tensor(y.Name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := io.Copy(dst, y.Open()); err != nil {
					t.Fatal(err)
				}
				_ = y.Check()
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := NewBytes(out.Bytes()); err != nil {
				t.Fatalf("what was written is not read: %v", err)
			}
		}
	})
}
