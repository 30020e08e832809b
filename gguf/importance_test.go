package gguf

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/internal/testutil"
)

// statistics holds the measurements of llama-imatrix for a tensor: the sums of the squares of its inputs, and for each
// matrix the number of inputs.
type statistics struct{ sums, counts []float32 }

// measured returns statistics and the importances that follow from them. Powers of two keep every quotient exact.
func measured() (map[string]statistics, map[string][]float32) {
	return map[string]statistics{
			"blk.0.attn_q.weight":        {[]float32{8, 0, 24, 1}, []float32{8}},
			"blk.0.ffn_gate_exps.weight": {[]float32{2, 4, 0, 0, 48, 64}, []float32{2, 0, 16}},
		}, map[string][]float32{
			"blk.0.attn_q.weight":        {1, 0, 3, .125},
			"blk.0.ffn_gate_exps.weight": {1, 2, 1, 1, 3, 4},
		}
}

func floats(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// imatrix returns a GGUF file of importances. kind is the value of general.type.
func imatrix(t testing.TB, kind string, all map[string]statistics) []byte {
	t.Helper()
	m := &Metadata{}
	if err := errors.Join(m.Set("general.type", NewValue(kind)), m.Set("imatrix.datasets", NewArray([]string{"text"})), m.Set("imatrix.chunk_count", NewValue(uint32(2)))); err != nil {
		t.Fatal(err)
	}
	var infos []TensorInfo
	data := map[string][]byte{}
	for name, s := range all {
		n := int64(len(s.counts))
		infos = append(infos, TensorInfo{name + ".in_sum2", block.F32, []int64{int64(len(s.sums)) / n, n}}, TensorInfo{name + ".counts", block.F32, []int64{1, n}})
		data[name+".in_sum2"], data[name+".counts"] = floats(s.sums), floats(s.counts)
	}
	return write(t, m, infos, data)
}

// entry appends an entry of an older file.
func (b raw) entry(name string, calls int32, x ...float32) raw {
	b = append(b.u32(uint32(len(name))), name...).u32(uint32(calls)).u32(uint32(len(x)))
	return append(b, floats(x)...)
}

// dat returns an older file of importances with the data that llama-imatrix writes after the entries. It stores each importance times
// the number of calls.
func dat(all map[string][]float32, calls int32) raw {
	b := raw(nil).u32(uint32(len(all)))
	for name, x := range all {
		y := make([]float32, len(x))
		for i, v := range x {
			y[i] = v * float32(max(1, calls))
		}
		b = b.entry(name, calls, y...)
	}
	return append(b.u32(uint32(calls)).u32(4), "text"...)
}

func readImportance(b []byte) (map[string][]float32, error) {
	return ReadImportance(bytes.NewReader(b), int64(len(b)))
}

func TestReadImportance(t *testing.T) {
	stats, want := measured()
	for name, b := range map[string][]byte{
		"gguf": imatrix(t, "imatrix", stats), "dat": dat(want, 4), "dat without calls": dat(want, 0),
		"dat without a text": dat(want, 4)[:len(dat(want, 4))-12],
	} {
		got, err := readImportance(b)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, want)
		}
	}
	// A large matrix is read in parts.
	r := testutil.Rand(t)
	big := map[string][]float32{"big": make([]float32, 70001)}
	for i := range big["big"] {
		big["big"][i] = r.Float32()
	}
	got, err := readImportance(dat(big, 2))
	if err != nil || !reflect.DeepEqual(got, big) {
		t.Errorf("70,001 importances: %v", err)
	}
}

// TestMalformedImportance checks that mistakes give a FormatError with the field and its place, without much memory.
func TestMalformedImportance(t *testing.T) {
	one := func(sums, counts []float32) []byte {
		return imatrix(t, "imatrix", map[string]statistics{"a": {sums, counts}})
	}
	with := func(infos ...TensorInfo) []byte {
		m, data := &Metadata{}, map[string][]byte{}
		if err := m.Set("general.type", NewValue("imatrix")); err != nil {
			t.Fatal(err)
		}
		for _, i := range infos {
			n, _ := i.Size()
			data[i.Name] = make([]byte, n)
		}
		return write(t, m, infos, data)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	sums, counts := TensorInfo{"a.in_sum2", block.F32, []int64{4, 1}}, TensorInfo{"a.counts", block.F32, []int64{1, 1}}
	half, three, none := sums, counts, sums
	half.Type, three.Dims, none.Dims = block.F16, []int64{1, 3}, []int64{0, 1}
	refusedImportance(t, map[string]mistake{
		"a model":              {imatrix(t, "model", nil), ErrFormat, `"general.type"`},
		"no type":              {rawFile(3, 0, 0), ErrFormat, `"general.type"`},
		"a type of numbers":    {rawFile(3, 0, 1).key("general.type").kind(Uint32).u32(1), ErrFormat, `"general.type"`},
		"no tensors":           {imatrix(t, "imatrix", nil), ErrFormat, "tensors"},
		"only sums":            {with(sums), ErrFormat, `no tensor "a.counts"`},
		"only counts":          {with(counts), ErrFormat, `no tensor "a.in_sum2"`},
		"sums of F16":          {with(half, counts), ErrFormat, "F16"},
		"counts do not divide": {with(sums, three), ErrFormat, "4 sums for 3 matrices"},
		"no sums":              {with(none, counts), ErrFormat, "0 sums"},
		"negative sum":         {one([]float32{1, -2}, []float32{1}), ErrFormat, `"a.in_sum2" element 1`},
		"sum is NaN":           {one([]float32{nan, 2}, []float32{1}), ErrFormat, `"a.in_sum2" element 0`},
		"sum is infinite":      {one([]float32{1, 1, inf, 1}, []float32{1, 1}), ErrFormat, `"a.in_sum2" element 2`},
		"mean overflows":       {one([]float32{1e38, 2}, []float32{1e-30}), ErrFormat, `"a.in_sum2" element 0`},
		"negative count":       {one([]float32{1, 2}, []float32{1, -1}), ErrFormat, `"a.counts" element 1`},
		"count is NaN":         {one([]float32{1, 2}, []float32{nan}), ErrFormat, `"a.counts" element 0`},
		"truncated gguf":       {one([]float32{1, 2}, []float32{1})[:100], ErrTruncated, ""},
	})
}

// TestMalformedOldImportance is TestMalformedImportance for files of the older format.
func TestMalformedOldImportance(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	refusedImportance(t, map[string]mistake{
		"nothing":             {nil, ErrTruncated, "number of entries"},
		"3 bytes":             {[]byte{1, 0, 0}, ErrTruncated, "number of entries"},
		"no entries":          {raw(nil).u32(0).zeros(20), ErrFormat, "number of entries"},
		"-1 entries":          {raw(nil).u32(1<<32 - 1).zeros(20), ErrFormat, "number of entries"},
		"2^31-1 entries":      {raw(nil).u32(1<<31 - 1).zeros(20), ErrTruncated, "number of entries"},
		"negative name":       {raw(nil).u32(1).u32(1 << 31).zeros(40), ErrFormat, "entry 0 name length"},
		"empty name":          {raw(nil).u32(1).entry("", 1, 2).zeros(40), ErrFormat, "entry 0 name length"},
		"long name":           {raw(nil).u32(1).entry("a", 1, 2)[:4].u32(1 << 20).zeros(40), ErrTruncated, "entry 0 name length"},
		"name over 65535":     {raw(nil).u32(1).entry(strings.Repeat("a", 1<<16), 1, 2), ErrLimit, "entry 0 name length"},
		"negative calls":      {raw(nil).u32(1).entry("a", -1, 2), ErrFormat, `entry 0 ("a") number of calls`},
		"no values":           {raw(nil).u32(1).entry("a", 1).zeros(8), ErrFormat, `entry 0 ("a") number of values`},
		"2^31-1 values":       {append(raw(nil).u32(1).u32(1), 'a').u32(1).u32(1<<31 - 1).zeros(40), ErrTruncated, `entry 0 ("a") number of values`},
		"a value too few":     {raw(nil).u32(1).entry("a", 1, 2, 3)[:24], ErrTruncated, `entry 0 ("a") number of values`},
		"second is missing":   {raw(nil).u32(2).entry("a", 1, 2, 3, 4, 5, 6, 7, 8), ErrTruncated, "entry 1 name length"},
		"a name twice":        {raw(nil).u32(2).entry("a", 1, 2).entry("a", 1, 2), ErrFormat, `entry 1 ("a")`},
		"value is NaN":        {raw(nil).u32(1).entry("a", 1, 2, nan), ErrFormat, `entry 0 ("a") value 1 (byte 21)`},
		"value is negative":   {raw(nil).u32(1).entry("a", 1, -2, 1), ErrFormat, `entry 0 ("a") value 0 (byte 17)`},
		"value is infinite":   {raw(nil).u32(1).entry("a", 1, inf), ErrFormat, `entry 0 ("a") value 0`},
		"safetensors or text": {raw(`{"__metadata__":{"format":"pt"}}`).zeros(100), ErrTruncated, "number of entries"},
	})
	for _, r := range []io.ReaderAt{nil, bytes.NewReader(nil)} {
		if _, err := ReadImportance(r, -1); !errors.Is(err, ErrFormat) {
			t.Errorf("a size of -1: %v", err)
		}
	}
	broken := io.NewSectionReader(bytes.NewReader(dat(map[string][]float32{"a": {1}}, 1)), 0, 10)
	if _, err := ReadImportance(broken, 1<<40); !errors.Is(err, ErrTruncated) {
		t.Errorf("a file that is shorter than its size: %v", err)
	}
}

// mistake is a malformed file, and the error that it must give.
type mistake struct {
	file []byte
	want error
	says string
}

// refusedImportance reads files, which must give their errors as FormatErrors, without much memory.
func refusedImportance(t *testing.T, files map[string]mistake) {
	t.Helper()
	for name, c := range files {
		var err error
		used := allocated(func() { _, err = readImportance(c.file) })
		var e *FormatError
		if !errors.Is(err, c.want) || !errors.As(err, &e) || !strings.Contains(err.Error(), c.says) || e.Offset > int64(len(c.file)) {
			t.Errorf("%s: %v; want %v with %q", name, err, c.want, c.says)
		}
		if most := uint64(8*len(c.file) + 256<<10); used > most {
			t.Errorf("%s: %d bytes allocated for a file of %d", name, used, len(c.file))
		}
	}
}

// TestImportancePrefixes truncates files after every byte.
func TestImportancePrefixes(t *testing.T) {
	stats, want := measured()
	old := dat(want, 4)
	old = old[:len(old)-12] // what follows the entries is not read
	for _, b := range [][]byte{imatrix(t, "imatrix", stats), old} {
		for n := range b {
			_, err := readImportance(b[:n])
			var e *FormatError
			if err == nil && n+32 > len(b) && string(b[:4]) == magic {
				continue // only padding is missing
			}
			if !errors.As(err, &e) || !errors.Is(err, ErrTruncated) {
				t.Fatalf("the first %d bytes of %d: %v", n, len(b), err)
			}
		}
	}
}

// FuzzReadImportance reads random bytes. The result must be a FormatError, or importances that quantise.
func FuzzReadImportance(f *testing.F) {
	stats, want := measured()
	for _, b := range [][]byte{imatrix(f, "imatrix", stats), dat(want, 4), dat(want, 0), imatrix(f, "model", stats), raw(nil).u32(1<<31 - 1).zeros(40)} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := readImportance(b)
		if err != nil {
			var e *FormatError
			if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(b)) {
				t.Fatalf("%v is a %T", err, err)
			}
			return
		}
		n := 0
		for name, x := range all {
			n += len(x)
			for i, v := range x {
				if !(v >= 0 && v <= math.MaxFloat32) {
					t.Fatalf("%q %d: %v", name, i, v)
				}
			}
		}
		if n == 0 || 4*n > len(b) {
			t.Fatalf("%d importances in %d bytes", n, len(b))
		}
	})
}

// experts returns a file of one tensor of several matrices with random weights.
func experts(t *testing.T, dims ...int64) *File {
	t.Helper()
	infos := []TensorInfo{{"blk.0.ffn_up_exps.weight", block.F32, dims}}
	n, _ := infos[0].Size()
	x := make([]float32, n/4)
	r := testutil.Rand(t)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	f, err := NewBytes(write(t, &Metadata{}, infos, map[string][]byte{infos[0].Name: floats(x)}))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// random returns n importances over several powers of ten.
func random(t *testing.T, n int64) []float32 {
	r := testutil.Rand(t)
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Exp(2 * r.NormFloat64()))
	}
	return x
}

// quantizedBy quantises a file and opens the result.
func quantizedBy(t *testing.T, f *File, recipe string, o QuantizeOptions) *File {
	t.Helper()
	r, ok := RecipeOf(recipe)
	if !ok {
		t.Fatalf("no recipe %s", recipe)
	}
	path := filepath.Join(t.TempDir(), "out.gguf")
	if err := Quantize(context.Background(), path, f, r, o); err != nil {
		t.Fatal(err)
	}
	g, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

// TestQuantizeExperts checks that each matrix of a tensor is quantised with its importances, also matrices that are longer
// than the parts that are converted at a time, and that one row of importances counts for all matrices.
func TestQuantizeExperts(t *testing.T) {
	for _, c := range []struct {
		recipe string
		dims   []int64
	}{{"IQ2_XS", []int64{256, 8, 3}}, {"Q4_K", []int64{256, 4099, 2}}, {"Q4_0", []int64{32, 5, 2, 3}}} {
		f := experts(t, c.dims...)
		x, row, matrix := f.tensors[0], c.dims[0], c.dims[0]*c.dims[1]
		numbers := make([]float32, x.Elements())
		if err := x.Dequantize(numbers, 0); err != nil {
			t.Fatal(err)
		}
		each := random(t, row*int64(len(numbers))/matrix)
		for _, importance := range [][]float32{each, each[:row]} {
			o := QuantizeOptions{Pure: true, Importance: map[string][]float32{x.Name: importance}}
			got := quantizedBy(t, f, c.recipe, o).tensors[0]
			var want []byte
			for i := range int64(len(numbers)) / matrix {
				size, _ := got.Type.Size(int(matrix))
				b := make([]byte, size)
				if err := got.Type.QuantizeWeighted(b, numbers[i*matrix:][:matrix], importance[i*row%int64(len(importance)):][:row]); err != nil {
					t.Fatal(err)
				}
				want = append(want, b...)
			}
			b, err := io.ReadAll(got.Open())
			if err != nil || !bytes.Equal(b, want) {
				t.Errorf("%s %v with %d importances: other bytes than matrix by matrix (%v)", c.recipe, c.dims, len(importance), err)
			}
		}
		for _, n := range []int64{0, 1, row - 1, row + 1, 2*row*int64(len(numbers))/matrix + row} {
			o := QuantizeOptions{Pure: true, Importance: map[string][]float32{x.Name: make([]float32, n)}}
			r, _ := RecipeOf(c.recipe)
			dir := t.TempDir()
			err := Quantize(context.Background(), filepath.Join(dir, "out.gguf"), f, r, o)
			if !errors.Is(err, block.ErrImportance) || !strings.Contains(err.Error(), x.Name) {
				t.Errorf("%v with %d importances: %v", c.dims, n, err)
			}
		}
	}
}

// weightedError returns the sum of the squared errors of a tensor, times the importances.
func weightedError(t *testing.T, a, b *Tensor, importance []float32) (sum float64) {
	t.Helper()
	x, y := make([]float32, a.Elements()), make([]float32, b.Elements())
	if err := errors.Join(a.Dequantize(x, 0), b.Dequantize(y, 0)); err != nil {
		t.Fatal(err)
	}
	row, _ := a.Row()
	matrix := len(x)
	if int64(len(importance)) > row {
		matrix = len(x) / len(importance) * int(row)
	}
	for i := range x {
		d := float64(x[i] - y[i])
		sum += d * d * float64(importance[i/matrix*int(row)+i%int(row)])
	}
	return sum
}

// TestImportanceOfModels quantises models with importances from files. The weighted error of each matrix must be less than
// with equal importances. The rows of the small models have 64 and 96 elements, so IQ2_XS becomes IQ4_NL there.
func TestImportanceOfModels(t *testing.T) {
	for name, f := range map[string]*File{"llama-moe": golden(t, "llama-moe"), "layers of 512": layered(t, 2, 512)} {
		equal, stats := map[string][]float32{}, map[string]statistics{}
		for x := range f.Tensors() {
			if !quantizable(x) || x.Name == "token_embd.weight" {
				continue
			}
			row, rows := x.Row()
			matrices := int64(1)
			if len(x.Dims) == 3 {
				matrices = rows / x.Dims[1]
			}
			s := statistics{random(t, row*matrices), make([]float32, matrices)}
			for i := range s.counts {
				s.counts[i] = float32(i + 1)
			}
			stats[x.Name] = s
			equal[x.Name] = make([]float32, row)
			for i := range equal[x.Name] {
				equal[x.Name][i] = 1
			}
		}
		importance, err := readImportance(imatrix(t, "imatrix", stats))
		if err != nil {
			t.Fatal(err)
		}
		old, err := readImportance(dat(importance, 1))
		if err != nil || !reflect.DeepEqual(old, importance) {
			t.Errorf("%s: the older format gives other importances (%v)", name, err)
		}
		plain := quantizedBy(t, f, "IQ2_XS", QuantizeOptions{Importance: equal})
		weighted := quantizedBy(t, f, "IQ2_XS", QuantizeOptions{Importance: importance})
		for x, w := range importance {
			before, after := weightedError(t, f.Tensor(x), plain.Tensor(x), w), weightedError(t, f.Tensor(x), weighted.Tensor(x), w)
			t.Logf("%s: %s becomes %v: weighted error %.4g, with equal importances %.4g", name, x, weighted.Tensor(x).Type, after, before)
			if !(after < before) {
				t.Errorf("%s: %s: weighted error %g, with equal importances %g", name, x, after, before)
			}
		}
		if want := map[bool]block.Format{true: block.IQ4_NL, false: block.IQ2_XS}[name == "llama-moe"]; weighted.Tensor("blk.0.attn_q.weight").Type != want {
			t.Errorf("%s: attn_q is of type %v, want %v", name, weighted.Tensor("blk.0.attn_q.weight").Type, want)
		}
	}
}

// golden opens a small model of package llm.
func golden(t *testing.T, name string) *File {
	t.Helper()
	b, err := os.ReadFile("../llm/testdata/" + name + ".gguf.gz")
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(z)
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEmbeddingTypes checks that recipes whose base type needs importances give embeddings a type that needs none.
func TestEmbeddingTypes(t *testing.T) {
	infos := []TensorInfo{{"token_embd.weight", block.F32, []int64{256, 4}}, {"per_layer_token_embd.weight", block.F32, []int64{256, 4}}, {"output.weight", block.F32, []int64{256, 4}}}
	data := map[string][]byte{}
	for _, i := range infos {
		data[i.Name] = make([]byte, 4096)
	}
	f, err := NewBytes(write(t, &Metadata{}, infos, data))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range Recipes() {
		for x := range f.Tensors() {
			got := r.TypeFor(f, x, false)
			if want := r.Base.Layout().Weighted && x.Name != "output.weight"; got.Layout().Weighted || want != (got == block.Q2_K) && r.Base != block.Q2_K {
				t.Errorf("%s: %s becomes %v", r.Name, x.Name, got)
			}
		}
	}
}
