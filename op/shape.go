package op

import (
	"math"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Shape is the extents of an array, outermost first; arrays are row-major.
// The empty shape is a scalar: one element.
type Shape []int

// Size returns the number of elements, or an ErrShape if an extent is
// negative or if the number of bytes could overflow an int.
func (s Shape) Size() (int, error) {
	n := 1
	zero := false
	for _, d := range s {
		switch {
		case d < 0:
			return 0, mismatch("negative extent in %s", s.String()) // String keeps s on the stack
		case d == 0:
			zero = true
		case n > math.MaxInt/16/d:
			return 0, mismatch("%s overflows the address space", s.String())
		default:
			n *= d
		}
	}
	if zero {
		return 0, nil
	}
	return n, nil
}

// check returns an ErrShape if a device could not hold an array of shape s.
func (s Shape) check() error {
	if len(s) > MaxRank {
		return mismatch("the shape has %d extents: at most %d are supported", len(s), MaxRank)
	}
	_, err := s.Size()
	return err
}

// mismatch returns an ErrShape with a formatted reason. It is not inlined, which makes pages smaller.
//
//go:noinline
func mismatch(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrShape)...)
}

// Equal reports whether s and t have the same extents.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Rows splits s into rows along the last axis: rows·cols elements. A scalar is
// one row of one element.
func (s Shape) Rows() (rows, cols int) {
	if len(s) == 0 {
		return 1, 1
	}
	rows = 1
	for _, d := range s[:len(s)-1] {
		rows *= d
	}
	return rows, s[len(s)-1]
}

// String returns the extents as [2 3 4].
func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(&b, d)
	}
	b.WriteByte(']')
	return b.String()
}

// texts returns the shapes as texts.
func texts(shapes []Shape) []string {
	list := make([]string, len(shapes))
	for i, s := range shapes {
		list[i] = s.String()
	}
	return list
}

// A BroadcastKind names a layout of an operand over the result of an elementwise
// operation. All kinds but Strided need no index arithmetic. See [Layout.BroadcastKind].
type BroadcastKind uint8

const (
	// Full: the operand has one element for each element of the result.
	Full BroadcastKind = iota
	// Scalar: the operand has one element for all elements of the result.
	Scalar
	// Tiled: the operand has the trailing extents of the result and is
	// repeated over the leading ones: a bias on every row.
	Tiled
	// Repeated: the operand has the leading extents of the result, followed by ones, so each
	// element applies to a contiguous run of the result: a factor per row.
	Repeated
	// Strided: any other [Layout].
	Strided
)

// String names the kind of broadcast.
func (s BroadcastKind) String() string {
	return [...]string{"full", "scalar", "tiled", "repeated", "strided"}[min(s, Strided)]
}

// Broadcast returns the shape of an elementwise result over operands of the
// given shapes, by NumPy's rule: shapes are aligned at the end, absent leading
// extents are ones, and an extent of one repeats. No shapes give a scalar.
func Broadcast(in ...Shape) (Shape, error) {
	same, rank := len(in) > 0, 0
	for _, s := range in {
		same = same && s != nil && s.Equal(in[0])
		rank = max(rank, len(s))
	}
	if same {
		return in[0], nil // the usual case, without allocation
	}
	out := make(Shape, rank)
	for i := range out {
		out[i] = 1
		for _, s := range in {
			if d := s.at(i, rank); d != 1 && d != out[i] {
				if out[i] != 1 {
					return nil, mismatch("%v do not broadcast: aligned at the last axis, extents %d and %d differ and neither is 1", texts(in), out[i], d)
				}
				out[i] = d
			}
		}
	}
	_, err := out.Size()
	return out, err
}

// at returns extent i of s broadcast to rank extents: as in NumPy, shapes are aligned
// at the end and missing leading extents are ones.
func (s Shape) at(i, rank int) int {
	if j := i - (rank - len(s)); j >= 0 {
		return s[j]
	}
	return 1
}

// BroadcastOf returns the broadcast kind of a contiguous operand of shape s for a result of shape
// out, or an ErrShape.
func BroadcastOf(s, out Shape) (BroadcastKind, error) {
	l, err := Over(s, out)
	if err != nil {
		return 0, err
	}
	n, err := s.Size()
	return l.BroadcastKind(n), err
}
