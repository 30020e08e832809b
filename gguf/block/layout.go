package block

import "math"

// Layout describes the bytes of a block and how they encode numbers. Element i of a block is
//
//	y[i] = (scale · sub(i)) · level(i) + bias · subBias(i)
//
// rounded to float32 after each operation. Every part is a field of bits in the
// block, described by a [Field], so a decoder and an encoder for any instruction set
// can be derived from the description. [Format.Dequantize] uses a derived decoder for
// formats without a hand-written loop, and the tests compare each hand-written loop
// with the derived decoder.
//
// A block of a scalar type, for example F16, has one element and no level: the
// element is the scale.
type Layout struct {
	Name     string // ggml's name
	ID       uint32 // ggml's number of the type
	Elements int    // of a block
	Bytes    int    // of a block

	Scale   Float   // the factor of the levels
	Sub     Integer // small factors of the scale, each for a group of elements; may be absent
	Bias    Float   // the factor of the summand; may be absent
	SubBias Integer // small factors of the bias; may be absent
	Level   Level

	// Words lists the numbers of several bytes in the block. In a big-endian file
	// the bytes of each are reversed.
	Words []Word

	// Weighted says that encoding to this format needs importances: its few levels
	// are useful only if important elements get them.
	Weighted bool
}

// Field describes the positions of the items of one field in a block: a strided layout over bits.
// Item First+k, with k written in mixed radix, the digit of Steps[0] varying fastest, has its least
// bit at
//
//	At + Σ digit[j]·Steps[j].Stride
//
// where bit b is bit b%8 of byte b/8. A field without steps has one item.
type Field struct {
	Bits  int
	At    int
	Steps []Step
	Shift int // the number of bits by which the item is shifted left in its number
	First int

	// Ternary items are digits to base 3: "bit" b is digit b%8 of byte b/8, and
	// digit n of byte v is (v·3ⁿ mod 256)·3 / 256, rounded down.
	Ternary bool
}

// Step is one digit of a field's index: its number of values and their distance in bits.
type Step struct{ Count, Stride int }

// Items returns the number of items of the field.
func (f *Field) Items() int {
	n := 1
	for _, s := range f.Steps {
		n *= s.Count
	}
	return n
}

// Number is a sequence of unsigned integers: number k is the sum of the items k
// of all fields, each shifted by its Shift.
type Number []Field

// Items returns the number of integers.
func (n Number) Items() int {
	items := 0
	for i := range n {
		items = max(items, n[i].First+n[i].Items())
	}
	return items
}

// bits returns the bits of one integer.
func (n Number) bits() int {
	bits := 0
	for i := range n {
		bits = max(bits, n[i].Shift+n[i].Bits)
	}
	return bits
}

// Encoding is the floating-point format that an integer encodes.
type Encoding uint8

// The encodings.
const (
	NoFloat Encoding = iota
	Binary16
	BFloat16
	Binary32
	Binary64
	E8M0  // 2^(v-128): half of the power of two, because MXFP4's levels are doubled
	UE4M3 // half of an unsigned number with 4 bits of exponent and 3 of mantissa; 0 for 0x7f
)

// Float is a sequence of floating-point numbers. Each applies to an equal share of
// neighbouring elements of the block.
type Float struct {
	Encoding Encoding
	Number   Number
}

// Integer is a sequence of small factors Mul·v + Add. Each applies to an equal share
// of neighbouring elements of the block. An absent factor is 1. With the values of Mul
// and Add, a factor times a scale is rounded once.
type Integer struct {
	Number   Number
	Mul, Add float32
	Signed   bool // v is in two's complement
}

// Level is the part of an element that the scale multiplies.
type Level struct {
	// Number is the code of each element or, with a Grid, of each of the grid's
	// runs of elements. Without fields the level is 1.
	Number Number
	// Signed codes are in two's complement.
	Signed bool
	// Offset is added to a code that has no Table and no Grid.
	Offset int
	// Table has the level of each code.
	Table []int8
	// Grid has the levels of several elements for each code.
	Grid *Grid
	// Signs has one bit for each element, which is set if the element is negative, or
	// 7 bits for each 8 elements: the sign of the eighth makes the number of negative
	// elements even.
	Signs Number
	// Shift has one bit for each group of elements: 1/8 is added to their levels,
	// or subtracted if the bit is set.
	Shift Number
}

// Word is Count numbers of Size bytes each, Stride bytes apart; the first is at byte At.
type Word struct{ At, Size, Count, Stride int }

// field returns a field of items of the given number of bits, starting at bit at.
func field(bits, at int, steps ...Step) Field { return Field{Bits: bits, At: at, Steps: steps} }

// up returns the field with items shifted left in their numbers.
func (f Field) up(shift int) Field {
	f.Shift = shift
	return f
}

// half16 returns a binary16 at byte at.
func half16(at int) Float { return Float{Binary16, Number{field(16, 8*at)}} }

// unpack adds the items of the field to the integers of dst. b has at least 8
// bytes more than the block.
func (f *Field) unpack(dst []uint32, b []byte) {
	f.walk(len(f.Steps)-1, f.First, f.At, func(i, at, count, stride int) {
		dst := dst[i:][:count]
		if f.Ternary {
			for j := range dst {
				dst[j] += uint32(ternary(b[at>>3], at&7)) << f.Shift
				at += stride
			}
			return
		}
		mask := uint32(1)<<f.Bits - 1
		if stride&7 == 0 && at&7+f.Bits <= 8 {
			from, shift := b[at>>3:], at&7
			for j := range dst {
				dst[j] += uint32(from[j*(stride>>3)]>>shift) & mask << f.Shift
			}
			return
		}
		for j := range dst {
			dst[j] += word(b[at>>3:]) >> (at & 7) & mask << f.Shift
			at += stride
		}
	})
}

// pack writes the integers of src to the items of the field. The bits of the items must be 0.
// Ternary fields are packed by packTernary.
func (f *Field) pack(b []byte, src []uint32) {
	f.walk(len(f.Steps)-1, f.First, f.At, func(i, at, count, stride int) {
		src, mask := src[i:][:count], uint32(1)<<f.Bits-1
		if stride&7 == 0 && at&7+f.Bits <= 8 {
			to, down, up := b[at>>3:], uint(f.Shift)&31, uint(at)&7
			if stride == 8 {
				to = to[:len(src)]
				for j, v := range src {
					to[j] |= byte(v >> down & mask << up)
				}
				return
			}
			for j, v := range src {
				to[j*(stride>>3)] |= byte(v >> down & mask << up)
			}
			return
		}
		for _, v := range src {
			v = v >> f.Shift & mask
			for p, rest := at>>3, uint64(v)<<(at&7); rest != 0; p, rest = p+1, rest>>8 {
				b[p] |= byte(rest)
			}
			at += stride
		}
	})
	if f.Ternary {
		f.packTernary(b, src)
	}
}

// packTernary sets each byte that holds digits of the field to the least byte with these digits.
func (f *Field) packTernary(b []byte, src []uint32) {
	var sums [maxBytes]uint32
	var used [maxBytes]bool
	pow := [...]uint32{81, 27, 9, 3, 1}
	f.walk(len(f.Steps)-1, f.First, f.At, func(i, at, count, stride int) {
		for _, v := range src[i:][:count] {
			sums[at>>3] += v * pow[at&7]
			used[at>>3] = true
			at += stride
		}
	})
	for p, u := range used {
		if u {
			b[p] = byte((sums[p]*256 + 242) / 243)
		}
	}
}

// ternary returns digit n of a byte.
func ternary(v byte, n int) byte {
	for range n {
		v *= 3
	}
	return byte(uint16(v) * 3 >> 8)
}

func word(b []byte) uint32 {
	_ = b[3]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// walk calls run for each run of items along Steps[0]. Its arguments are the index and the bit of the
// first item, the number of items and their distance in bits.
func (f *Field) walk(step, item, at int, run func(item, at, count, stride int)) {
	if step <= 0 {
		if len(f.Steps) == 0 {
			run(item, at, 1, 0)
		} else {
			run(item, at, f.Steps[0].Count, f.Steps[0].Stride)
		}
		return
	}
	inner := 1
	for _, s := range f.Steps[:step] {
		inner *= s.Count
	}
	for range f.Steps[step].Count {
		f.walk(step-1, item, at, run)
		item, at = item+inner, at+f.Steps[step].Stride
	}
}

func (n Number) unpack(dst []uint32, b []byte) {
	clear(dst)
	for i := range n {
		n[i].unpack(dst, b)
	}
}

func (n Number) pack(b []byte, src []uint32) {
	for i := range n {
		n[i].pack(b, src)
	}
}

// float returns the number that bits encode in e.
func (e Encoding) float(bits uint32) float32 {
	switch e {
	case Binary16:
		return half([]byte{byte(bits), byte(bits >> 8)})
	case BFloat16:
		return math.Float32frombits(bits << 16)
	case Binary32:
		return math.Float32frombits(bits)
	case E8M0:
		if bits < 2 {
			return math.Float32frombits(0x200000 << bits)
		}
		return math.Float32frombits((bits - 1) << 23)
	case UE4M3:
		return ue4m3(bits)
	}
	return 1
}

// ue4m3 returns half of the number that 7 bits encode in UE4M3.
func ue4m3(bits uint32) float32 {
	e, m := bits>>3&15, float32(bits&7)
	switch {
	case bits&0x7f == 0x7f:
		return 0
	case e == 0:
		return m * 0x1p-10
	}
	return math.Float32frombits((e+119)<<23) * (1 + m/8)
}
