package op

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// ErrShape is the error of sizes, shapes or parameters that an operation does
// not take. Test for it with errors.Is.
var ErrShape = errors.New("shape mismatch")

// ErrUnsupported is the error of something that is well formed but not
// defined or not available: an element type that an operation does not take,
// a feature that a device lacks.
var ErrUnsupported = errors.New("unsupported")

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
			return 0, fmt.Errorf("negative extent in %v: %w", s, ErrShape)
		case d == 0:
			zero = true
		case n > math.MaxInt/16/d:
			return 0, fmt.Errorf("%v overflows the address space: %w", s, ErrShape)
		default:
			n *= d
		}
	}
	if zero {
		return 0, nil
	}
	return n, nil
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
// index arithmetic: some operand has the shape of the result, and each other
// one spreads over it as [SpreadOf] says.
func Broadcast(in ...Shape) (Shape, error) {
	var out Shape
	for _, s := range in {
		if len(s) > len(out) {
			out = s
		} else if len(s) == len(out) {
			for i := range s {
				if s[i] > out[i] || s[i] == 0 {
					out = s
					break
				} else if s[i] < out[i] {
					break
				}
			}
		}
	}
	for _, s := range in {
		if _, err := SpreadOf(s, out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SpreadOf returns how an operand of shape s lies over a result of shape out,
// or an ErrShape.
func SpreadOf(s, out Shape) (Spread, error) {
	if s.Equal(out) {
		return Full, nil
	}
	if len(s) <= len(out) {
		ones := true
		for _, d := range s {
			ones = ones && d == 1
		}
		if ones {
			return Scalar, nil
		}
		// Align at the end, as NumPy does; missing leading extents are ones.
		at := func(i int) int {
			if j := i - (len(out) - len(s)); j >= 0 {
				return s[j]
			}
			return 1
		}
		i := 0
		for i < len(out) && at(i) == 1 && out[i] != 1 {
			i++
		}
		tail := i
		for i < len(out) && at(i) == out[i] {
			i++
		}
		if i == len(out) {
			return Periodic, nil
		}
		if tail == 0 {
			for i < len(out) && at(i) == 1 {
				i++
			}
			if i == len(out) {
				return Stretched, nil
			}
		}
	}
	return 0, fmt.Errorf("%v does not spread over %v: %w", s, out, ErrShape)
}
