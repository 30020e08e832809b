package op

import (
	"fmt"
	"math"
	"strings"
)

// Shape is the extents of an array, outermost first; arrays are row-major.
// The empty shape is a scalar: one element.
type Shape []int

// Size returns the number of elements, or an ErrShape if an extent is
// negative or the product does not fit an int with room for the bytes.
func (s Shape) Size() (int, error) {
	n := 1
	zero := false
	for _, d := range s {
		switch {
		case d < 0:
			return 0, mismatch("negative extent in %s", s.String()) // not s: it would not stay on the stack
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
		return mismatch("%d extents, the most is %d", len(s), MaxRank)
	}
	_, err := s.Size()
	return err
}

// mismatch returns an ErrShape that says what does not fit.
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

// Spread says how an operand of an elementwise operation is laid over the
// result.
type Spread uint8

const (
	// Full: one element for each element of the result.
	Full Spread = iota
	// Scalar: one element for all.
	Scalar
	// Periodic: the operand has the trailing extents of the result and is
	// repeated over the leading ones: a bias on every row.
	Periodic
	// Stretched: the operand has the leading extents, and ones after them;
	// each element stands for a whole run of the result: a factor per row.
	Stretched
)

// String names the spread.
func (s Spread) String() string {
	return [...]string{"full", "scalar", "periodic", "stretched"}[s&3]
}

// Broadcast returns the shape of an elementwise result over operands of the
// given shapes, by NumPy's rule restricted to what every device does without
// index arithmetic: some operand has all the elements of the result, and each
// other one spreads over it as [SpreadOf] says. No shapes give a scalar.
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
					return nil, mismatch("%v do not broadcast", in)
				}
				out[i] = d
			}
		}
	}
	all, err := out.Size()
	if err != nil {
		return nil, err
	}
	full := len(in) == 0
	for _, s := range in {
		if _, err := SpreadOf(s, out); err != nil {
			return nil, err
		}
		n, err := s.Size()
		if err != nil {
			return nil, err
		}
		full = full || n == all
	}
	if !full {
		return nil, mismatch("%v: none has all the elements of the result %v", in, out)
	}
	return out, nil
}

// at returns extent i of s seen as a shape of that rank: as in NumPy, shapes
// are aligned at the end and missing leading extents are ones.
func (s Shape) at(i, rank int) int {
	if j := i - (rank - len(s)); j >= 0 {
		return s[j]
	}
	return 1
}

// SpreadOf returns how an operand of shape s lies over a result of shape out,
// or an ErrShape.
func SpreadOf(s, out Shape) (Spread, error) {
	rank := len(out)
	if len(s) > rank {
		return 0, mismatch("%v does not spread over %v", s, out)
	}
	// Where s differs from out it has a one. The axes on which it does must
	// all come before or all after those of more than one element on which it
	// agrees: anything else needs index arithmetic.
	const none = -1
	firstOne, lastOne, firstSame, lastSame := none, none, none, none
	for i, d := range out {
		switch e := s.at(i, rank); {
		case e == d && d == 1:
		case e == d:
			if firstSame == none {
				firstSame = i
			}
			lastSame = i
		case e == 1:
			if firstOne == none {
				firstOne = i
			}
			lastOne = i
		default:
			return 0, mismatch("%v does not spread over %v", s, out)
		}
	}
	switch {
	case firstOne == none:
		return Full, nil
	case firstSame == none:
		return Scalar, nil
	case lastOne < firstSame:
		return Periodic, nil
	case lastSame < firstOne:
		return Stretched, nil
	}
	return 0, mismatch("%v spreads over inner axes of %v", s, out)
}
