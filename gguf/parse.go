package gguf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"unsafe"

	"github.com/rayo-go/rayo/gguf/block"
)

// Limits of the format, and limits of this package.
const (
	magic            = "GGUF"
	maxName          = 65535   // bytes of a key or a tensor's name
	maxDims          = 4       // dimensions of a tensor
	defaultAlignment = 32      // alignment of tensors in the file
	maxAlignment     = 1 << 20 // a limit of this package: a larger alignment would only add padding
	maxHeader        = 1 << 30 // bytes before the tensors: a limit of this package

	minKeyValue = 8 + 4 + 1     // bytes of the shortest key with a value
	minInfo     = 8 + 4 + 4 + 8 // bytes of the shortest description of a tensor

	keyAlignment    = "general.alignment"
	keyArchitecture = "general.architecture"
)

// header is the part of a file before its tensors.
type header struct {
	version   uint32
	order     binary.ByteOrder
	meta      *Metadata
	tensors   []*Tensor
	alignment int64
	end       int64            // the end of the descriptions of tensors
	data      int64            // the byte offset of the first tensor
	places    map[string]int64 // the byte offsets of keys, for messages
}

// parser reads a header from the beginning of a file.
type parser struct {
	r     io.ReaderAt
	b     string // the beginning of the file
	size  int64  // of the file
	at    int    // < len(b)
	order binary.ByteOrder
	big   bool // big-endian files are accepted
}

// readHeader reads and checks a header. It reads the start of the file, and then as much
// more as the parser needs.
func readHeader(r io.ReaderAt, size int64, o options) (*header, error) {
	first := min(size, 1<<20)
	for {
		p := &parser{r: r, size: size, order: binary.LittleEndian, big: o.big}
		if err := p.read(first); err != nil {
			return nil, err
		}
		h, err := p.header()
		if err != nil || h.end >= int64(len(p.b)/2) {
			return h, err
		}
		first = h.end // parse again from a smaller buffer, so that strings keep less memory
	}
}

// read sets b to the first n bytes of the file. Strings that share the memory of the previous b stay valid.
func (p *parser) read(n int64) error {
	b := make([]byte, n)
	from := copy(b, p.b)
	if k, err := p.r.ReadAt(b[from:], int64(from)); k < len(b)-from {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return &FormatError{Field: "header", Offset: int64(from + k), Err: err}
	}
	p.b = unsafe.String(unsafe.SliceData(b), len(b)) // b is not changed any more
	return nil
}

// need reads more of the file if b has fewer than n bytes. The caller has checked that the file has n bytes. expected is an
// estimate of the size of the header; need reads as much if the file has it.
func (p *parser) need(n, expected uint64) error {
	if n <= uint64(len(p.b)) {
		return nil
	}
	if n > maxHeader {
		return &FormatError{Field: "header", Offset: maxHeader, Err: fmt.Errorf("%w: more than %d bytes before the tensors", ErrLimit, maxHeader)}
	}
	return p.read(min(p.size, maxHeader, int64(max(n, expected, 2*uint64(len(p.b))))))
}

// fail returns the error of a field at a byte offset.
func fail[N int | int64](field string, at N, err error, format string, args ...any) error {
	return &FormatError{Field: field, Offset: int64(at), Err: fmt.Errorf("%w: "+format, append([]any{err}, args...)...)}
}

// take returns the next n bytes.
func (p *parser) take(n uint64, field string) (string, error) {
	if left := uint64(p.size) - uint64(p.at); n > left {
		return "", fail(field, p.at, ErrTruncated, "expected %d more bytes, but the file has %d", n, left)
	}
	if err := p.need(uint64(p.at)+n, 0); err != nil {
		return "", err
	}
	s := p.b[p.at:][:n]
	p.at += int(n)
	return s, nil
}

// integer returns the next unsigned integer of 4 or 8 bytes.
func (p *parser) integer(size uint64, field string) (uint64, error) {
	s, err := p.take(size, field)
	if err != nil {
		return 0, err
	}
	return number(Uint64, p.little(s)).bits, nil
}

// little returns the bytes of a number in little-endian order.
func (p *parser) little(s string) string {
	if p.order == binary.LittleEndian {
		return s
	}
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// text returns the next string, which must have at most the given length.
func (p *parser) text(field string, most uint64) (string, error) {
	at := p.at
	n, err := p.integer(8, field+" length")
	if err != nil {
		return "", err
	}
	if n > most && n <= uint64(p.size) {
		return "", fail(field+" length", at, ErrLimit, "%d bytes, expected at most %d", n, most)
	}
	return p.take(n, field)
}

// count returns the next integer, which is the number of items of at least each bytes.
func (p *parser) count(field string, each int64) (int, error) {
	at := p.at
	n, err := p.integer(8, field)
	if err != nil {
		return 0, err
	}
	if left := p.size - int64(p.at); n > uint64(left/each) {
		return 0, fail(field, at, ErrTruncated, "%d elements of at least %d bytes each, but the file has %d more bytes", n, each, left)
	}
	if n > math.MaxInt32 {
		return 0, fail(field, at, ErrLimit, "%d, expected at most %d", n, math.MaxInt32)
	}
	return int(n), nil
}

func (p *parser) header() (*header, error) {
	h := &header{meta: &Metadata{}, places: map[string]int64{}}
	s, err := p.take(4, "magic")
	if err != nil {
		return nil, err
	}
	if s != magic {
		return nil, fail("magic", 0, ErrFormat, "the file begins with %q, expected %q, as GGUF files do", s, magic)
	}
	if h.version, err = p.version(); err != nil {
		return nil, err
	}
	h.order = p.order
	at := p.at
	tensors, err := p.integer(8, "tensor count")
	if err != nil {
		return nil, err
	}
	if left := p.size - int64(p.at); tensors > uint64(left/minInfo) {
		return nil, fail("tensor count", at, ErrTruncated, "%d elements of at least %d bytes each, but the file has %d more bytes", tensors, minInfo, left)
	}
	keys, err := p.count("key count", minKeyValue)
	if err != nil {
		return nil, err
	}
	for i := range keys {
		at := int64(p.at)
		key, err := p.keyValue(h.meta, i)
		if err != nil {
			return nil, err
		}
		h.places[key] = at
	}
	if h.alignment, err = alignmentOf(h.meta, h.places[keyAlignment]); err != nil {
		return nil, err
	}
	return h, p.infos(h, int(tensors))
}

// version reads the version and finds the byte order from it.
func (p *parser) version() (uint32, error) {
	s, err := p.take(4, "version")
	if err != nil {
		return 0, err
	}
	v := binary.LittleEndian.Uint32([]byte(s))
	if v != 0 && v&0xffff == 0 {
		v = bits.ReverseBytes32(v)
		p.order = binary.BigEndian
		if !p.big && (v == 2 || v == 3) {
			return 0, fail("version", 4, ErrByteOrder, "version %d with its bytes reversed; the option BigEndian reads such files", v)
		}
	}
	if v != 2 && v != 3 {
		return 0, fail("version", 4, ErrVersion, "%d, expected 2 or 3", v)
	}
	return v, nil
}

func (p *parser) keyValue(m *Metadata, i int) (string, error) {
	at := p.at
	field := "key " + strconv.Itoa(i)
	key, err := p.text(field, maxName)
	if err != nil {
		return "", err
	}
	if key == "" {
		return "", fail(field, at, ErrFormat, "the key is empty, expected a name")
	}
	field = strconv.Quote(shortened(key))
	if m.has(key) {
		return "", fail(field, at, ErrFormat, "the file has this key twice, expected once")
	}
	v, err := p.value(field)
	if err != nil {
		return "", err
	}
	return key, m.Set(key, v)
}

// shortened returns the beginning of a long name.
func shortened(s string) string {
	if len(s) > 80 {
		return s[:80] + "…"
	}
	return s
}

func (p *parser) kind(field string) (Kind, error) {
	at := p.at
	n, err := p.integer(4, field)
	if err != nil {
		return 0, err
	}
	if k := Kind(n); k.valid() {
		return k, nil
	}
	return 0, fail(field, at, ErrFormat, "%d is not the number of a value type, expected 0 to 12", n)
}

func (p *parser) value(field string) (Value, error) {
	k, err := p.kind(field + " type")
	if err != nil {
		return Value{}, err
	}
	switch k {
	case String:
		s, err := p.text(field, math.MaxInt64)
		return Value{kind: String, data: s}, err
	case Array:
		return p.array(field)
	}
	s, err := p.take(uint64(kinds[k].size), field)
	if err != nil {
		return Value{}, err
	}
	return number(k, p.little(s)), nil
}

func (p *parser) array(field string) (Value, error) {
	at := p.at
	k, err := p.kind(field + " element type")
	if err != nil {
		return Value{}, err
	}
	if k == Array {
		return Value{}, fail(field+" element type", at, ErrFormat, "the array has arrays as elements, which are not supported")
	}
	size := kinds[k].size
	n, err := p.count(field+" element count", int64(max(size, 8*b2i(k == String))))
	if err != nil {
		return Value{}, err
	}
	v := Value{kind: Array, elem: k, n: n}
	if k == String {
		v.data, err = p.texts(field, n)
		return v, err
	}
	if v.data, err = p.take(uint64(n)*uint64(size), field); err != nil {
		return v, err
	}
	if p.order != binary.LittleEndian && size > 1 {
		b := []byte(v.data)
		for e := range slices.Chunk(b, size) {
			slices.Reverse(e)
		}
		v.data = string(b)
	}
	return v, nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// texts returns the bytes of n strings with their lengths.
func (p *parser) texts(field string, n int) (string, error) {
	from := p.at
	for i := p.skipTexts(n); i < n; i += p.skipTexts(n - i) {
		at := p.at
		if int64(len(p.b)) < p.size && i > 0 { // assume that the other strings have the same mean length
			each := uint64(at-from)/uint64(i) + 1
			if err := p.need(uint64(len(p.b))+1, uint64(from)+uint64(n)*each); err != nil {
				return "", err
			}
		}
		k, err := p.integer(8, field)
		if err == nil {
			_, err = p.take(k, field)
		}
		if errors.Is(err, ErrTruncated) {
			err = fail(field+" element "+strconv.Itoa(i), at, ErrTruncated, "the string has %d bytes; the file has %d more", k, p.size-int64(p.at))
		}
		if err != nil {
			return "", err
		}
		i++
	}
	data := p.b[from:p.at]
	if p.order == binary.LittleEndian {
		return data, nil
	}
	b := []byte(data)
	for rest := b; len(rest) > 0; {
		k := int(binary.BigEndian.Uint64(rest))
		slices.Reverse(rest[:8])
		rest = rest[8+k:]
	}
	return string(b), nil
}

// skipTexts skips up to n complete strings, and returns their number.
func (p *parser) skipTexts(n int) int {
	b, big := p.b[p.at:], p.order == binary.BigEndian
	for i := range n {
		if len(b) < 8 {
			return i
		}
		k := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 | uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
		if big {
			k = bits.ReverseBytes64(k)
		}
		if k > uint64(len(b)-8) {
			return i
		}
		b = b[8+k:]
		p.at += 8 + int(k)
	}
	return n
}

// alignmentOf returns the alignment of tensors. at is the byte offset of its key.
func alignmentOf(m *Metadata, at int64) (int64, error) {
	v, ok := m.Get(keyAlignment)
	if !ok {
		return defaultAlignment, nil
	}
	a, ok := v.Uint()
	if !ok || a == 0 || a > maxAlignment || a&(a-1) != 0 {
		return 0, fail(strconv.Quote(keyAlignment), int(at), ErrFormat, "%v of type %v, expected a power of two up to %d", v, v.kind, maxAlignment)
	}
	return int64(a), nil
}

// align returns the least multiple of to, a power of two, that is not below n.
func align(n, to int64) int64 { return (n + to - 1) &^ (to - 1) }

func (p *parser) infos(h *header, n int) error {
	h.tensors = make([]*Tensor, 0, n)
	all := make([]Tensor, n)
	names := make(map[string]bool, n)
	offsets := make([]int, n)
	for i := range n {
		at := p.at
		t := &all[i]
		t.at = int64(at)
		if err := p.info(t, i, &offsets[i]); err != nil {
			return err
		}
		if names[t.Name] {
			return fail(t.field(i), at, ErrFormat, "two tensors have this name, expected different names")
		}
		names[t.Name] = true
		h.tensors = append(h.tensors, t)
	}
	h.end = int64(p.at)
	h.data = min(align(h.end, h.alignment), p.size)
	return p.places(h, offsets)
}

// field names a tensor in messages.
func (t *Tensor) field(i int) string {
	return fmt.Sprintf("tensor %d (%q)", i, shortened(t.Name))
}

// info reads the description of a tensor. It sets offset to the position of the tensor's offset in
// the file.
func (p *parser) info(t *Tensor, i int, offset *int) error {
	field := "tensor " + strconv.Itoa(i)
	var err error
	if t.Name, err = p.text(field+" name", maxName); err != nil {
		return err
	}
	at := p.at
	dims, err := p.integer(4, field+" number of dimensions")
	if err != nil {
		return err
	}
	if dims > maxDims {
		return fail(t.field(i)+" number of dimensions", at, ErrFormat, "%d, expected at most %d", dims, maxDims)
	}
	at = p.at
	t.Dims = make([]int64, dims)
	for j := range t.Dims {
		d, err := p.integer(8, field+" dimension "+strconv.Itoa(j))
		if err != nil {
			return err
		}
		if d > math.MaxInt64 {
			return fail(t.field(i)+" dimension "+strconv.Itoa(j), p.at-8, ErrFormat, "%d, expected at most %d", d, int64(math.MaxInt64))
		}
		t.Dims[j] = int64(d)
	}
	typeAt := p.at
	id, err := p.integer(4, field+" type")
	if err != nil {
		return err
	}
	if t.Type = block.ByID(uint32(id)); t.Type == block.Invalid {
		return fail(t.field(i)+" type", typeAt, ErrFormat, "%d is not the number of a tensor type", id)
	}
	if t.size, err = sizeOf(t.Type, t.Dims); err != nil {
		return fail(t.field(i)+" dimensions", at, err, "%v of %v", t.Dims, t.Type)
	}
	*offset = p.at
	from, err := p.integer(8, field+" offset")
	if err == nil && from > math.MaxInt64 {
		err = fail(t.field(i)+" offset", *offset, ErrFormat, "%d, expected at most %d", from, int64(math.MaxInt64))
	}
	t.offset = int64(from)
	return err
}

// sizeOf returns the number of bytes of a tensor. The error is ErrFormat if its rows are not
// whole blocks, and ErrLimit if a product of its sizes overflows an int64.
func sizeOf(f block.Format, dims []int64) (int64, error) {
	row := int64(1)
	if len(dims) > 0 {
		row = dims[0]
	}
	if row%int64(f.Elements()) != 0 {
		return 0, fmt.Errorf("%w: rows are not whole blocks of %d elements", ErrFormat, f.Elements())
	}
	size := row / int64(f.Elements())
	if !times(&size, int64(f.Bytes())) {
		return 0, ErrLimit
	}
	// The number of elements is checked too, because it may be greater than the number of bytes.
	n := row
	for _, d := range dims[min(1, len(dims)):] {
		if !times(&size, d) || !times(&n, d) {
			return 0, ErrLimit
		}
	}
	return size, nil
}

// times multiplies n by m and reports whether every product fits an int64. Products of the sizes before
// a size of 0 count too.
func times(n *int64, m int64) bool {
	hi, lo := bits.Mul64(uint64(*n), uint64(m))
	*n = int64(lo)
	return hi == 0 && lo <= math.MaxInt64
}

// places checks that tensors are inside the file and do not overlap.
func (p *parser) places(h *header, offsets []int) error {
	room := p.size - h.data
	order := make([]int, len(h.tensors))
	for i, t := range h.tensors {
		order[i] = i
		switch {
		case t.offset%h.alignment != 0:
			return fail(t.field(i)+" offset", offsets[i], ErrFormat, "%d, expected a multiple of the alignment, %d", t.offset, h.alignment)
		case t.offset > room || t.size > room-t.offset:
			return fail(t.field(i)+" offset", offsets[i], ErrTruncated, "the tensor has %d bytes from byte %d on, but the file has %d bytes of tensors", t.size, t.offset, room)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return int(max(-1, min(1, h.tensors[a].offset-h.tensors[b].offset)))
	})
	end, last := int64(0), -1
	for _, i := range order {
		t := h.tensors[i]
		if t.size == 0 {
			continue
		}
		if t.offset < end {
			return fail(t.field(i)+" offset", offsets[i], ErrFormat, "%d lies in %s, which ends at %d", t.offset, h.tensors[last].field(last), end)
		}
		end, last = t.offset+t.size, i
	}
	return nil
}
