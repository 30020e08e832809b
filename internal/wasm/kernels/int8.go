package kernels

import (
	"math"

	"github.com/rayo-go/rayo/internal/wasm"
)

// integerFormat is a format of blocks of 32 numbers that are multiplied by integers of 8 bits: the
// offsets of its factors and codes, and the kind of the codes.
type integerFormat struct {
	name    string
	bytes   int
	minimum int // offset of the minimum, or 0 without
	first   int // offset of the codes
	nibbles bool
	offset  bool // codes are numbers plus an offset
}

var integerFormats = []integerFormat{
	{name: "q40", bytes: 18, first: 2, nibbles: true, offset: true},
	{name: "q80", bytes: 34, first: 2},
	{name: "q41", bytes: 20, minimum: 2, first: 4, nibbles: true},
}

// columnsAtOnce is the number of columns that a kernel computes at a time: the number of lanes of a vector of sums.
const columnsAtOnce = 4

// columns is a kernel under construction. The kernel multiplies a row of integers by rows of blocks, four rows at a
// time: it reads the integers once for four rows, and converts four factors to floats at once.
type columns struct {
	kernel
	integerFormat
	x, scales, sums, quads wasm.Local // addresses for the current block of the row of integers
	w                      [columnsAtOnce]wasm.Local
	acc                    [columnsAtOnce]wasm.Local
	total                  wasm.Local
	lower, upper           wasm.Local // integers of the row
	codes                  wasm.Local // the codes that are unpacked
	halves                 wasm.Local
	magnitude, exponent    wasm.Local // bits of a half
	up, infinite           wasm.Local // constants that convert these bits to those of a float
	nibble                 wasm.Local // the lower bits of codes
}

// integerColumns writes the kernels of all formats. Their arguments are the addresses of the results, of the integers,
// of their scales, of the sums of their groups, of the quads (sums of four integers, times the negated offset of codes)
// and of the blocks; then the bytes of a row of blocks, the number of its blocks, and the number of columns, a multiple
// of four.
func (s *Set) integerColumns() {
	for _, format := range integerFormats {
		s.add("int8."+format.name, func(k kernel) { writeColumns(k, format) })
	}
}

func writeColumns(k kernel, format integerFormat) {
	c := &columns{kernel: k, integerFormat: format}
	dst, src := k.pointer(0), k.pointer(5)
	row, blocks, count := k.int(0), k.int(1), k.int(2)
	c.x, c.scales, c.sums, c.quads = k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32), k.Local(wasm.I32)
	for i := range columnsAtOnce {
		c.w[i], c.acc[i] = k.Local(wasm.I32), k.Local(wasm.V128)
	}
	c.total, c.lower, c.codes, c.halves = k.Local(wasm.V128), k.Local(wasm.V128), k.Local(wasm.V128), k.Local(wasm.V128)
	c.magnitude, c.exponent = c.constant(0x7fff), c.constant(0x7c00)
	c.up, c.infinite = c.constant(math.Float32bits(0x1p112)), c.constant(0x7f800000)
	if c.nibbles {
		c.upper, c.nibble = k.Local(wasm.V128), c.constant(0x000f000f)
	}
	x, scales, sums, quads := k.pointer(1), k.pointer(2), k.pointer(3), k.pointer(4)
	n := k.Local(wasm.I32)
	k.While(count, columnsAtOnce, func() {
		for _, p := range [][2]wasm.Local{{c.x, x}, {c.scales, scales}, {c.sums, sums}, {c.quads, quads}, {n, blocks}, {c.w[0], src}} {
			k.Get(p[1])
			k.Set(p[0])
		}
		for i := 1; i < columnsAtOnce; i++ {
			k.Get(c.w[i-1])
			k.Get(row)
			k.Op(wasm.I32Add)
			k.Set(c.w[i])
		}
		k.Get(c.w[columnsAtOnce-1])
		k.Get(row)
		k.Op(wasm.I32Add)
		k.Set(src)
		k.Splat(0)
		k.Set(c.total)
		k.While(n, 1, func() {
			c.block()
			k.Add(n, -1)
		})
		k.Get(dst)
		k.Get(c.total)
		k.Store(wasm.V128Store, 0)
		k.Add(dst, 4*columnsAtOnce)
		k.Add(count, -columnsAtOnce)
	})
}

// constant returns a variable with the same bits in all lanes.
func (c *columns) constant(bits uint32) wasm.Local {
	l := c.Local(wasm.V128)
	c.Splat(bits)
	c.Set(l)
	return l
}

// block adds the products of one block of each of four rows, and advances to the next blocks.
func (c *columns) block() {
	for i := range columnsAtOnce {
		if !c.offset {
			c.Splat(0)
		} else if i == 0 {
			for at := range 2 {
				c.Get(c.quads)
				c.Load(wasm.V128Load, 16*at)
			}
			c.Op(wasm.I32x4Add)
		} else {
			c.Get(c.acc[0])
		}
		c.Set(c.acc[i])
	}
	if c.nibbles {
		c.nibbleProducts()
	} else {
		for at := 0; at < 32; at += 8 {
			c.integers(c.lower, at)
			for i, w := range c.w {
				c.product(i, c.lower, func() {
					c.Get(w)
					c.Load(wasm.V128Load8x8S, c.first+at)
				})
			}
		}
	}
	c.join()
	// For each row, add the sum of its products times both factors.
	c.Get(c.total)
	c.Get(c.acc[0])
	c.Op(wasm.F32x4ConvertS)
	c.factors(0)
	c.Op(wasm.F32x4Mul)
	c.Get(c.scales)
	c.Load(wasm.V128Load32Splat, 0)
	c.Op(wasm.F32x4Mul, wasm.F32x4Add)
	if c.minimum > 0 {
		c.factors(c.minimum)
		c.Get(c.sums)
		c.Load(wasm.V128Load32Splat, 0)
		c.Op(wasm.F32x4Mul, wasm.F32x4Add)
	}
	c.Set(c.total)
	for i := range columnsAtOnce {
		c.Add(c.w[i], c.bytes)
	}
	c.Add(c.x, 32)
	c.Add(c.scales, 4)
	c.Add(c.sums, 4)
	c.Add(c.quads, 32)
}

// integers sets v to eight integers of the row as words.
func (c *columns) integers(v wasm.Local, at int) {
	c.Get(c.x)
	c.Load(wasm.V128Load8x8S, at)
	c.Set(v)
}

// product adds the products of eight integers x and of eight words that push pushes to the sums of row i.
func (c *columns) product(i int, x wasm.Local, push func()) {
	c.Get(c.acc[i])
	push()
	c.Get(x)
	c.Op(wasm.I32x4Dot, wasm.I32x4Add)
	c.Set(c.acc[i])
}

// nibbleProducts adds the products of codes of four bits. The lower halves of bytes are the first 16 numbers.
func (c *columns) nibbleProducts() {
	for at := 0; at < 16; at += 8 {
		c.integers(c.lower, at)
		c.integers(c.upper, 16+at)
		for i, w := range c.w {
			c.Get(w)
			c.Load(wasm.V128Load8x8U, c.first+at)
			c.Set(c.codes)
			c.product(i, c.lower, func() {
				c.Get(c.codes)
				c.Get(c.nibble)
				c.Op(wasm.V128And)
			})
			c.product(i, c.upper, func() {
				c.Get(c.codes)
				c.Int(4)
				c.Op(wasm.I16x8ShrU)
			})
		}
	}
}

// join adds up the four sums of each row. The sum of row i goes to lane i of the first variable.
func (c *columns) join() {
	pair := func(to, a, b wasm.Local, first, second [4]byte) {
		for _, lanes := range [][4]byte{first, second} {
			c.Get(a)
			c.Get(b)
			c.ShuffleWords(lanes[0], lanes[1], lanes[2], lanes[3])
		}
		c.Op(wasm.I32x4Add)
		c.Set(to)
	}
	for i := 0; i < columnsAtOnce; i += 2 {
		pair(c.acc[i], c.acc[i], c.acc[i+1], [4]byte{0, 4, 1, 5}, [4]byte{2, 6, 3, 7})
	}
	pair(c.acc[0], c.acc[0], c.acc[2], [4]byte{0, 1, 4, 5}, [4]byte{2, 3, 6, 7})
}

// factors pushes the binary16 numbers at an offset in the blocks of all four rows as floats.
func (c *columns) factors(offset int) {
	c.Splat(0)
	c.Set(c.halves)
	for i, w := range c.w {
		c.Get(w)
		c.Get(c.halves)
		c.LoadLane(wasm.V128Load16Lane, offset, 2*i)
		c.Set(c.halves)
	}
	// Shifted to the position of a float's bits, the magnitude of a half is 2**-112 times its value.
	c.Get(c.halves)
	c.Get(c.magnitude)
	c.Op(wasm.V128And)
	c.Int(13)
	c.Op(wasm.I32x4Shl)
	c.Get(c.up)
	c.Op(wasm.F32x4Mul)
	c.Get(c.halves)
	c.Get(c.exponent)
	c.Op(wasm.V128And)
	c.Get(c.exponent)
	c.Op(wasm.I32x4Eq)
	c.Get(c.infinite)
	c.Op(wasm.V128And, wasm.V128Or)
	c.Get(c.halves)
	c.Get(c.magnitude)
	c.Op(wasm.V128AndNot)
	c.Int(16)
	c.Op(wasm.I32x4Shl, wasm.V128Or)
}
