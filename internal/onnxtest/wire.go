package onnxtest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// field is one field of a message in protobuf's wire format.
type field struct {
	number uint64
	wire   wireType
	value  uint64 // of a varint or a fixed number
	bytes  []byte // of a field with a length
}

type wireType uint8

const (
	varintWire  wireType = 0
	fixed64Wire wireType = 1
	bytesWire   wireType = 2
	fixed32Wire wireType = 5
)

var (
	errTruncated = errors.New("truncated")
	errVarint    = errors.New("a varint of more than 64 bits")
)

// varint reads a varint at the start of b and returns the bytes after it.
func varint(b []byte) (v uint64, rest []byte, err error) {
	v, n := binary.Uvarint(b)
	switch {
	case n == 0:
		return 0, nil, errTruncated
	case n < 0:
		return 0, nil, errVarint
	}
	return v, b[n:], nil
}

// next reads the field at the start of b and returns the bytes after it.
func next(b []byte) (f field, rest []byte, err error) {
	key, b, err := varint(b)
	if err != nil {
		return f, nil, err
	}
	f.number, f.wire = key>>3, wireType(key&7)
	if f.number == 0 || f.number > 1<<29-1 {
		return f, nil, fmt.Errorf("field number %d, want 1 to 2^29-1", f.number)
	}
	switch f.wire {
	case varintWire:
		f.value, b, err = varint(b)
		return f, b, err
	case fixed32Wire:
		if len(b) < 4 {
			return f, nil, errTruncated
		}
		f.value = uint64(binary.LittleEndian.Uint32(b))
		return f, b[4:], nil
	case fixed64Wire:
		if len(b) < 8 {
			return f, nil, errTruncated
		}
		f.value = binary.LittleEndian.Uint64(b)
		return f, b[8:], nil
	case bytesWire:
		n, b, err := varint(b)
		if err != nil {
			return f, nil, err
		}
		if n > uint64(len(b)) {
			return f, nil, errTruncated
		}
		f.bytes = b[:n:n]
		return f, b[n:], nil
	}
	return f, nil, fmt.Errorf("field %d has wire type %d, which is not supported", f.number, f.wire)
}

// visit calls the function of each field of a message; fields without one are
// skipped, as protobuf wants it.
func visit(b []byte, on map[uint64]func(field) error) error {
	for len(b) > 0 {
		f, rest, err := next(b)
		if err != nil {
			return err
		}
		if do := on[f.number]; do != nil {
			if err := do(f); err != nil {
				return fmt.Errorf("field %d: %w", f.number, err)
			}
		}
		b = rest
	}
	return nil
}

// want returns an error if the field is not of wire type w.
func (f field) want(w wireType) error {
	if f.wire != w {
		return fmt.Errorf("wire type %d, want %d", f.wire, w)
	}
	return nil
}

// text returns a function that stores the field in s.
func text(s *string) func(field) error {
	return func(f field) error {
		*s = string(f.bytes)
		return f.want(bytesWire)
	}
}

// texts returns a function that appends the field to list.
func texts(list *[]string) func(field) error {
	return func(f field) error {
		*list = append(*list, string(f.bytes))
		return f.want(bytesWire)
	}
}

// raw returns a function that stores the field's bytes in b.
func raw(b *[]byte) func(field) error {
	return func(f field) error {
		*b = f.bytes
		return f.want(bytesWire)
	}
}

// number returns a function that stores a varint in v.
func number(v *int64) func(field) error {
	return func(f field) error {
		*v = int64(f.value)
		return f.want(varintWire)
	}
}

// float returns a function that stores a float in v.
func float(v *float32) func(field) error {
	return func(f field) error {
		*v = math.Float32frombits(uint32(f.value))
		return f.want(fixed32Wire)
	}
}

// numbers returns a function that appends varints to list, packed or one a field.
func numbers(list *[]int64) func(field) error {
	return func(f field) error {
		if f.wire == varintWire {
			*list = append(*list, int64(f.value))
			return nil
		}
		for b := f.bytes; len(b) > 0; {
			v, rest, err := varint(b)
			if err != nil {
				return err
			}
			*list, b = append(*list, int64(v)), rest
		}
		return f.want(bytesWire)
	}
}

// floats returns a function that appends floats to list, packed or one a field.
func floats(list *[]float32) func(field) error {
	return func(f field) error {
		if f.wire == fixed32Wire {
			*list = append(*list, math.Float32frombits(uint32(f.value)))
			return nil
		}
		if len(f.bytes)%4 != 0 {
			return errTruncated
		}
		for b := f.bytes; len(b) > 0; b = b[4:] {
			*list = append(*list, math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return f.want(bytesWire)
	}
}
