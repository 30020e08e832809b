package onnxtest

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"
)

// message writes fields by number and value, as protobuf does: int is a varint,
// float32 a fixed number, []byte a field with a length.
func message(fields ...any) []byte {
	var b []byte
	for i := 0; i < len(fields); i += 2 {
		key := uint64(fields[i].(int)) << 3
		switch v := fields[i+1].(type) {
		case int:
			b = binary.AppendUvarint(binary.AppendUvarint(b, key), uint64(v))
		case float32:
			b = binary.LittleEndian.AppendUint32(binary.AppendUvarint(b, key|5), math.Float32bits(v))
		case []byte:
			b = append(binary.AppendUvarint(binary.AppendUvarint(b, key|2), uint64(len(v))), v...)
		}
	}
	return b
}

func TestParseTensor(t *testing.T) {
	for name, c := range map[string]struct {
		in   []byte
		want []float64
		err  string
	}{
		"floats":           {in: message(1, 2, 2, 1, 4, float32(1.5), 4, float32(-2)), want: []float64{1.5, -2}},
		"packed floats":    {in: message(1, 1, 2, 1, 4, []byte{0, 0, 0x80, 0x3f}), want: []float64{1}},
		"raw i64":          {in: message(1, 1, 2, 7, 9, bytes.Repeat([]byte{0xff}, 8)), want: []float64{-1}},
		"raw f16":          {in: message(1, 1, 2, 10, 9, []byte{0, 0x3c}), want: []float64{1}},
		"raw bf16":         {in: message(1, 1, 2, 16, 9, []byte{0x80, 0x3f}), want: []float64{1}},
		"listed f16":       {in: message(1, 1, 2, 10, 5, 0xbc00), want: []float64{-1}},
		"listed u8":        {in: message(1, 2, 2, 2, 5, []byte{200, 1, 7}), want: []float64{200, 7}},
		"negative i8":      {in: message(1, 1, 2, 3, 5, -3), want: []float64{-3}},
		"listed i64":       {in: message(1, 1, 2, 7, 7, -5), want: []float64{-5}},
		"listed u32":       {in: message(1, 1, 2, 12, 11, math.MaxUint32), want: []float64{math.MaxUint32}},
		"scalar":           {in: message(2, 9, 9, []byte{1}), want: []float64{1}},
		"empty":            {in: message(1, 0, 1, 3, 2, 1), want: []float64{}},
		"nothing":          {in: nil, err: "type 0"},
		"f64":              {in: message(2, 11), err: "type 11"},
		"too few":          {in: message(1, 3, 2, 1, 9, []byte{1, 2, 3, 4}), err: "1 elements for [3]"},
		"part of one":      {in: message(1, 1, 2, 1, 9, []byte{1, 2, 3}), err: "truncated"},
		"negative extent":  {in: message(1, -1, 2, 1), err: "extent"},
		"huge":             {in: message(1, 1<<31-1, 1, 1<<31-1, 1, 1<<31-1, 2, 1), err: "extent"},
		"huge extent":      {in: message(1, 1<<40, 2, 1), err: "extent"},
		"short length":     {in: []byte{9<<3 | 2, 5, 1}, err: "truncated"},
		"huge length":      {in: append([]byte{9<<3 | 2}, binary.AppendUvarint(nil, math.MaxUint64)...), err: "truncated"},
		"endless varint":   {in: bytes.Repeat([]byte{0x80}, 11), err: "64 bits"},
		"group":            {in: []byte{1<<3 | 3}, err: "wire type 3"},
		"field 0":          {in: []byte{0, 0}, err: "field number 0"},
		"name is a number": {in: message(8, 1), err: "want 2"},
		"elsewhere":        {in: message(2, 1, 14, 1), err: "another file"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseTensor(c.in)
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("got %v, %v, want an error with %q", got, err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.Data, c.want) {
				t.Errorf("got %v, want %v", got.Data, c.want)
			}
		})
	}
}

func TestParseModel(t *testing.T) {
	attribute := message(1, []byte("axis"), 3, -2, 8, []byte{1, 2}, 2, float32(0.5), 4, []byte("s"))
	node := message(1, []byte("x"), 1, []byte(""), 2, []byte("y"), 4, []byte("Op"), 5, attribute)
	graph := message(1, node, 11, message(1, []byte("x")), 12, message(1, []byte("y")))
	m, err := ParseModel(message(1, 8, 7, graph))
	if err != nil {
		t.Fatal(err)
	}
	n := m.Nodes[0]
	a := n.Attributes["axis"]
	if len(m.Nodes) != 1 || n.Operator != "Op" || !slices.Equal(n.In, []string{"x", ""}) || !slices.Equal(m.Outputs, []string{"y"}) ||
		a.Int != -2 || a.Float != 0.5 || a.Text != "s" || !slices.Equal(a.Ints, []int64{1, 2}) {
		t.Errorf("got %+v", m)
	}
	for i := range graph {
		if _, err := ParseModel(message(7, graph[:i])); err == nil && i > 2 && i < len(node) {
			t.Errorf("no error for %d bytes of %d", i, len(graph))
		}
	}
}

// FuzzParse reads any bytes as a model and as a tensor, without panics and
// without more memory than they need.
func FuzzParse(f *testing.F) {
	f.Add(message(1, 2, 2, 1, 4, float32(1.5), 4, float32(-2)))
	f.Add(message(1, 8, 7, message(1, message(4, []byte("Op"), 5, message(1, []byte("axis"), 3, -2)))))
	f.Add(message(1, 1, 2, 7, 9, bytes.Repeat([]byte{0xff}, 8)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseModel(b); err == nil && m == nil {
			t.Error("no model and no error")
		}
		if x, err := ParseTensor(b); err == nil {
			if n, err := x.Shape.Size(); err != nil || n != len(x.Data) || n > len(b) {
				t.Errorf("%d elements for %v of %d bytes: %v", len(x.Data), x.Shape, len(b), err)
			}
		}
	})
}
