package safetensors

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
)

const metadataKey = "__metadata__"

// parser reads the header, a JSON object.
type parser struct {
	f          *File
	r          io.ReaderAt
	data, size int64 // where tensors begin, and the file ends
	d          *json.Decoder
}

// at returns where in the file the decoder is.
func (p *parser) at() int64 { return 8 + p.d.InputOffset() }

func (p *parser) header(b []byte) error {
	p.d = json.NewDecoder(bytes.NewReader(b))
	seen := map[string]bool{}
	err := p.object("header", func(key string) error {
		if seen[key] {
			return fail(fmt.Sprintf("tensor %q", key), p.at(), ErrFormat, "the header has this name twice, expected once")
		}
		seen[key] = true
		if key == metadataKey {
			return p.metadata()
		}
		return p.tensor(key)
	})
	if err != nil {
		return err
	}
	if rest := bytes.TrimRight(b[p.d.InputOffset():], " "); len(rest) > 0 {
		return fail("header", p.at(), ErrFormat, "the JSON object is followed by other text, expected only spaces")
	}
	return nil
}

// object calls f for each key of an object, with the decoder before its value.
func (p *parser) object(field string, f func(key string) error) error {
	if err := p.delim(field, '{'); err != nil {
		return err
	}
	for p.d.More() {
		t, err := p.d.Token()
		if err != nil {
			return fail(field, p.at(), ErrFormat, "%v", err)
		}
		if err := f(t.(string)); err != nil { // keys are strings, or Token fails
			return err
		}
	}
	return p.delim(field, '}')
}

func (p *parser) delim(field string, want json.Delim) error {
	t, err := p.d.Token()
	if err == nil && t != want {
		err = fmt.Errorf("found %v, expected %v", t, want)
	}
	if err != nil {
		return fail(field, p.at(), ErrFormat, "%v", err)
	}
	return nil
}

func (p *parser) metadata() error {
	return p.object(metadataKey, func(key string) error {
		t, err := p.d.Token()
		if err != nil {
			return fail(metadataKey, p.at(), ErrFormat, "%v", err)
		}
		s, ok := t.(string)
		if !ok {
			return fail(metadataKey, p.at(), ErrFormat, "the value of %q is of another type, expected a string", key)
		}
		p.f.meta = append(p.f.meta, keyValue{key, s})
		return nil
	})
}

// tensor reads the description of one tensor.
func (p *parser) tensor(name string) error {
	at := p.at()
	field := fmt.Sprintf("tensor %q", name)
	var v struct {
		Type    *string  `json:"dtype"`
		Shape   *[]int64 `json:"shape"`
		Offsets []int64  `json:"data_offsets"`
	}
	if err := p.d.Decode(&v); err != nil {
		return fail(field, at, ErrFormat, "%v", err)
	}
	if v.Type == nil || v.Shape == nil || len(v.Offsets) != 2 {
		return fail(field, at, ErrFormat, "a member is missing, expected dtype, shape, and data_offsets with two numbers")
	}
	t := &Tensor{TensorInfo: TensorInfo{name, DType(*v.Type), *v.Shape}, r: p.r}
	n, err := t.TensorInfo.Size()
	if err != nil {
		return &FormatError{field, at, err}
	}
	from, to := v.Offsets[0], v.Offsets[1]
	switch {
	case from < 0 || to < from || to-from != n:
		return fail(field, at, ErrFormat, "data_offsets are %d and %d, expected a range of %d bytes, as type and shape say", from, to, n)
	case to > p.size-p.data:
		return fail(field, at, ErrTruncated, "data_offsets are %d and %d, but the file has %d bytes of tensors", from, to, p.size-p.data)
	}
	t.offset, t.size = p.data+from, n
	p.f.tensors = append(p.f.tensors, t)
	p.f.byName[name] = t
	return nil
}

// places checks that tensors lie one behind the other up to the end, as the
// format demands.
func (p *parser) places() error {
	order := slices.Clone(p.f.tensors)
	slices.SortStableFunc(order, func(a, b *Tensor) int {
		if a.offset != b.offset {
			return int(max(-1, min(1, a.offset-b.offset)))
		}
		return int(max(-1, min(1, a.size-b.size)))
	})
	end := p.data
	for _, t := range order {
		if t.offset != end {
			return fail(fmt.Sprintf("tensor %q", t.Name), t.offset, ErrFormat, "the tensor begins at byte %d, expected %d, where the previous tensor ends", t.offset, end)
		}
		end += t.size
	}
	if end != p.size {
		return fail("data", end, ErrFormat, "%d bytes belong to no tensor", p.size-end)
	}
	return nil
}
