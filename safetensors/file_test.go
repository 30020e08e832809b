package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func write(t testing.TB, infos []TensorInfo, data map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, map[string]string{"format": "pt", "ä": "\n"}, infos)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range infos {
		dst, err := w.Tensor(i.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dst.Write(data[i.Name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sample(t testing.TB) ([]TensorInfo, map[string][]byte) {
	infos := []TensorInfo{{"scalar", "F32", nil}, {"empty", "I64", []int64{3, 0}}}
	data := map[string][]byte{"scalar": {0, 0, 0x80, 0x3f}}
	for d := range dtypes {
		i := TensorInfo{string(d), d, []int64{2, 3}}
		n, err := i.Size()
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(7*j + len(d))
		}
		infos, data[i.Name] = append(infos, i), b
	}
	return infos, data
}

func TestWriteRead(t *testing.T) {
	infos, data := sample(t)
	b := write(t, infos, data)
	f, err := NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	if f.NumTensors() != len(infos) {
		t.Errorf("%d tensors, want %d", f.NumTensors(), len(infos))
	}
	meta := map[string]string{}
	for k, v := range f.Metadata() {
		meta[k] = v
	}
	if len(meta) != 2 || meta["ä"] != "\n" {
		t.Error(meta)
	}
	i := 0
	for x := range f.Tensors() {
		if x.Name != infos[i].Name || x.Type != infos[i].Type || f.Tensor(x.Name) != x {
			t.Errorf("tensor %d is %+v", i, x.TensorInfo)
		}
		i++
		got, err := io.ReadAll(x.Open())
		if err != nil || !bytes.Equal(got, data[x.Name]) {
			t.Errorf("%s: %v", x.Name, err)
		}
		y := make([]float32, x.Elements())
		if err := x.Float32(y, 0); errors.Is(err, ErrType) == x.Type.Format().Valid() || err != nil && x.Type.Format().Valid() {
			t.Errorf("%s: %v", x.Name, err)
		}
		if err := x.Float32(make([]float32, 7), 0); err == nil {
			t.Errorf("%s: read beyond its end", x.Name)
		}
	}
	if i != len(infos) {
		t.Errorf("%d tensors", i)
	}
	one := make([]float32, 1)
	if err := f.Tensor("BF16").Float32(one, 4); err != nil || one[0] != math.Float32frombits(uint32(binary.LittleEndian.Uint16(data["BF16"][8:]))<<16) {
		t.Error(one, err)
	}
}

// file returns a file with a header and so many bytes behind it.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestMalformed(t *testing.T) {
	const f32 = `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}`
	for name, c := range map[string]struct {
		b    []byte
		want error
	}{
		"empty":              {nil, ErrTruncated},
		"length only":        {file("", 0)[:7], ErrTruncated},
		"length 2^64-1":      {bytes.Repeat([]byte{255}, 100), ErrTruncated},
		"no object":          {file("[]", 0), ErrFormat},
		"nothing":            {file("", 0), ErrFormat},
		"half an object":     {file(f32, 8), ErrFormat},
		"behind the object":  {file(f32+"}x", 8), ErrFormat},
		"bytes left":         {file(f32+"}", 9), ErrFormat},
		"data missing":       {file(f32+"}", 7), ErrTruncated},
		"twice":              {file(f32+","+f32[1:]+"}", 8), ErrFormat},
		"overlap":            {file(f32+`,"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), ErrFormat},
		"hole":               {file(f32+`,"b":{"dtype":"F32","shape":[1],"data_offsets":[12,16]}}`, 16), ErrFormat},
		"no type":            {file(strings.Replace(f32, "F32", "F99", 1)+"}", 8), ErrFormat},
		"no shape":           {file(`{"a":{"dtype":"F32","data_offsets":[0,4]}}`, 4), ErrFormat},
		"negative extent":    {file(strings.Replace(f32, "[2]", "[-2]", 1)+"}", 8), ErrFormat},
		"extents wrap":       {file(strings.Replace(f32, "[2]", "[4294967296,4294967296,4]", 1)+"}", 8), ErrFormat},
		"size and offsets":   {file(strings.Replace(f32, "[2]", "[3]", 1)+"}", 8), ErrFormat},
		"negative offset":    {file(strings.Replace(f32, "[0,8]", "[-8,0]", 1)+"}", 8), ErrFormat},
		"fractional extent":  {file(strings.Replace(f32, "[2]", "[2.5]", 1)+"}", 8), ErrFormat},
		"metadata no object": {file(`{"__metadata__":3}`, 0), ErrFormat},
		"metadata no string": {file(`{"__metadata__":{"a":3}}`, 0), ErrFormat},
		"nested":             {file(`{"a":`+strings.Repeat("[", 100000), 0), ErrFormat},
	} {
		_, err := NewReader(bytes.NewReader(c.b), int64(len(c.b)))
		var e *FormatError
		if !errors.Is(err, c.want) || !errors.As(err, &e) || e.Field == "" {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	good := file(f32+"}   ", 8)
	if _, err := NewReader(bytes.NewReader(good), int64(len(good))); err != nil {
		t.Error(err)
	}
}

func FuzzReader(f *testing.F) {
	infos, data := sample(f)
	f.Add(write(f, infos, data))
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := NewReader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for y := range x.Tensors() {
			if n, err := io.Copy(io.Discard, y.Open()); err != nil || n != y.Size() {
				t.Fatal(n, err)
			}
		}
	})
}
