package wgsl

import (
	"strconv"

	"github.com/rayo-go/rayo/internal/ir"
)

// text is a buffer for the printed text. Half of printing is appending a few bytes: methods on a
// buffer and a length are faster than append, which stores a slice each time.
type text struct {
	buf   []byte
	n     int        // bytes written
	start int        // where the current line begins
	lines []ir.Value // the instruction of each line
	spare []byte
}

// room is the minimum number of bytes by which a buffer grows.
const room = 4096

// grow makes room for n more bytes. It is a separate function because its callers are inlined in
// hundreds of places, and its code would make browser programs larger.
//
//go:noinline
func (t *text) grow(n int) {
	b := make([]byte, 2*len(t.buf)+n+room)
	copy(b, t.buf[:t.n])
	t.buf = b
}

// s writes a string.
func (t *text) s(s string) {
	if len(s) > len(t.buf)-t.n {
		t.grow(len(s))
	}
	t.n += copy(t.buf[t.n:], s)
}

// c writes a character.
//
//go:noinline
func (t *text) c(c byte) {
	if t.n == len(t.buf) {
		t.grow(1)
	}
	t.buf[t.n] = c
	t.n++
}

// u writes a number.
func (t *text) u(n uint32) {
	if len(t.buf)-t.n < 10 {
		t.grow(10)
	}
	b := t.buf[t.n:]
	switch {
	case n < 10:
		b[0] = byte('0' + n)
		t.n++
	case n < 100:
		b[0], b[1] = byte('0'+n/10), byte('0'+n%10)
		t.n += 2
	case n < 1000:
		b[0], b[1], b[2] = byte('0'+n/100), byte('0'+n/10%10), byte('0'+n%10)
		t.n += 3
	default:
		t.n = len(strconv.AppendUint(t.buf[:t.n], uint64(n), 10))
	}
}

const spaces = "                                                                "

// begin begins a line with the given indentation.
//
//go:noinline
func (t *text) begin(indent int) {
	t.start = t.n
	for indent *= 2; indent > 0; indent -= len(spaces) {
		t.s(spaces[:min(indent, len(spaces))])
	}
}

// end ends the line, which belongs to instruction v.
func (t *text) end(v ir.Value) {
	t.c('\n')
	t.lines = append(t.lines, v)
}

// before calls f, which prints lines, and inserts these lines before the current line.
func (t *text) before(f func()) {
	line := append(t.spare[:0], t.buf[t.start:t.n]...)
	t.n = t.start
	f()
	t.start = t.n
	for len(line) > len(t.buf)-t.n {
		t.grow(len(line))
	}
	t.n += copy(t.buf[t.n:], line)
	t.spare = line
}

func (t *text) reset() { t.n, t.start, t.lines = 0, 0, t.lines[:0] }
