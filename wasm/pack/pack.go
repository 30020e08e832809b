package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// maxGap is the longest run of zeros, in bytes, that joins two segments. A program is larger with 16, and as small with more.
const maxGap = 256

// The identifiers of sections, and codes.
const (
	memorySection = 5
	dataSection   = 11
	countSection  = 12
	active        = 0 // kind of a segment that is copied to memory 0 at the start
	i32Const      = 0x41
	end           = 0x0b
)

var (
	errModule = errors.New("this is not a WebAssembly module of version 1")
	errLayout = errors.New("the module has data that programs of Go do not have")
	magic     = []byte("\x00asm\x01\x00\x00\x00")
)

// segment is bytes that are copied to memory at an offset.
type segment struct {
	at   int64
	data []byte
}

// reader reads a module. After a mistake, failed is set and all values are 0.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.failed = true
		n = 0
	}
	b := r.b[:n:n]
	r.b = r.b[n:]
	return b
}

func (r *reader) byte() byte {
	if b := r.bytes(1); len(b) > 0 {
		return b[0]
	}
	return 0
}

func (r *reader) unsigned() uint64 {
	v, n := binary.Uvarint(r.b)
	r.failed = r.failed || n <= 0
	r.bytes(uint64(max(n, 0)))
	return v
}

func (r *reader) signed() int64 {
	v, shift := int64(0), 0
	for shift < 64 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		shift += 7
		if b < 0x80 {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
	r.failed = true
	return 0
}

// pack returns the module with joined segments.
func pack(module []byte) ([]byte, error) {
	if !bytes.HasPrefix(module, magic) {
		return nil, errModule
	}
	out, r, own := slices.Clone(magic), &reader{b: module[len(magic):]}, false
	for len(r.b) > 0 {
		id := r.byte()
		body := r.bytes(r.unsigned())
		switch {
		case r.failed:
			return nil, errModule
		case id == countSection, id == dataSection && !own:
			return nil, errLayout // an imported memory may have other bytes than zeros in the gaps
		case id == memorySection:
			own = true
		case id == dataSection:
			list, err := segments(body)
			if err != nil {
				return nil, err
			}
			body = section(join(list))
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(body)))
		out = append(out, body...)
	}
	return out, nil
}

// segments returns the segments of a data section.
func segments(body []byte) ([]segment, error) {
	r := &reader{b: body}
	var list []segment
	for n := r.unsigned(); n > 0 && !r.failed; n-- {
		kind, code := r.unsigned(), r.byte()
		at := r.signed()
		if kind != active || code != i32Const || r.byte() != end || r.failed {
			return nil, errLayout
		}
		list = append(list, segment{at & (1<<32 - 1), r.bytes(r.unsigned())})
	}
	if r.failed || len(r.b) > 0 {
		return nil, errModule
	}
	slices.SortFunc(list, func(a, b segment) int { // an empty segment may have the offset of another one
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(len(a.data), len(b.data)))
	})
	for i := 1; i < len(list); i++ {
		if list[i-1].at+int64(len(list[i-1].data)) > list[i].at {
			return nil, errLayout // later segments would have to come later
		}
	}
	return list, nil
}

// join joins neighbours with at most maxGap bytes between them.
func join(list []segment) (joined []segment) {
	for _, s := range list {
		if n := len(joined); n > 0 {
			last := &joined[n-1]
			if gap := s.at - last.at - int64(len(last.data)); gap <= maxGap {
				last.data = append(append(last.data, make([]byte, gap)...), s.data...)
				continue
			}
		}
		joined = append(joined, s)
	}
	return joined
}

// section returns the body of a data section.
func section(list []segment) []byte {
	out := binary.AppendUvarint(nil, uint64(len(list)))
	for _, s := range list {
		out = append(out, active, i32Const)
		out = appendSigned(out, int64(int32(s.at)))
		out = append(out, end)
		out = binary.AppendUvarint(out, uint64(len(s.data)))
		out = append(out, s.data...)
	}
	return out
}

// appendSigned appends v in the signed variable-length encoding of WebAssembly.
func appendSigned(out []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}
