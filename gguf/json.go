package gguf

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// MarshalJSON writes an object with the keys in their order. Bytes that are not
// UTF-8 become U+FFFD. Numbers that are not finite become the strings NaN, Infinity
// and -Infinity.
func (m *Metadata) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for k, v := range m.All() {
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendText(b, k), ':')
		b = v.appendJSON(b)
	}
	return append(b, '}'), nil
}

// MarshalJSON writes a string, number, boolean or array.
func (v Value) MarshalJSON() ([]byte, error) { return v.appendJSON(nil), nil }

func (v Value) appendJSON(b []byte) []byte {
	switch {
	case v.kind == String:
		return appendText(b, v.data)
	case v.kind == Array:
		b = append(b, '[')
		for i, e := range v.All() {
			if i > 0 {
				b = append(b, ',')
			}
			b = e.appendJSON(b)
		}
		return append(b, ']')
	case kinds[v.kind].float:
		x, _ := v.Float()
		switch {
		case math.IsNaN(x):
			return append(b, `"NaN"`...)
		case math.IsInf(x, 1):
			return append(b, `"Infinity"`...)
		case math.IsInf(x, -1):
			return append(b, `"-Infinity"`...)
		}
		return strconv.AppendFloat(b, x, 'g', -1, 8*kinds[v.kind].size)
	}
	return append(b, v.String()...)
}

func appendText(b []byte, s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // strings can be encoded
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte{'\n'})...)
}
