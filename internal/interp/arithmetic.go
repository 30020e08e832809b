package interp

import (
	"math"

	"github.com/rayo-go/rayo/internal/ir"
)

// The arithmetic of single lanes that takes more than an expression.

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// sumOf returns a*b + c in float64, where the product is exact and the sum off by less than half a
// unit, and in the top bit of flag whether rounding it to float32 may differ from rounding the
// exact sum: it is set if the sum is near the midpoint between two float32, or if the result is
// subnormal.
func sumOf(a, b, c float64) (s float64, flag uint64) {
	s = a*b + c
	u := math.Float64bits(s)
	return s, (u&(1<<29-1) ^ 1<<28 - 1) | (u>>52&0x7ff-897)&^(u<<1-1) // 0 is exact
}

// fma returns a*b + c, rounded once.
func fma(a, b, c float32) float32 {
	s, flag := sumOf(float64(a), float64(b), float64(c))
	if flag>>63 != 0 {
		return float32(ir.OddSum(float64(a)*float64(b), float64(c), s))
	}
	return float32(s)
}

// NaN becomes 0, and a float that is too large becomes the largest integer.

func toI32(x float32) int32 {
	switch {
	case x >= 1<<31:
		return math.MaxInt32
	case x >= -1<<31:
		return int32(x)
	case x == x:
		return math.MinInt32
	}
	return 0
}

func toU32(x float32) uint32 {
	switch {
	case x >= 1<<32:
		return math.MaxUint32
	case x > 0:
		return uint32(int64(x))
	}
	return 0
}

func divU32(a, b uint32) uint32 {
	if b == 0 {
		return a
	}
	return a / b
}

func modU32(a, b uint32) uint32 {
	if b == 0 {
		return 0
	}
	return a % b
}

func divI32(a, b int32) int32 {
	if b == 0 {
		return a
	}
	return a / b // the least integer divided by -1 is itself, as in Go
}

func modI32(a, b int32) int32 {
	if b == 0 {
		return 0
	}
	return a % b
}

func dot4I8(a, b, c uint32) uint32 {
	s := int32(c)
	for k := 0; k < 32; k += 8 {
		s += int32(int8(a>>k)) * int32(int8(b>>k))
	}
	return uint32(s)
}

func dot4U8(a, b, c uint32) uint32 {
	for k := 0; k < 32; k += 8 {
		c += a >> k & 255 * (b >> k & 255)
	}
	return c
}

// widen and narrow convert a block. They are separate from the arithmetic between them because the
// conversion instruction has a false dependency on its destination register, which would serialise
// the lanes.

func widen(z *[block]float64, a *[block]float32) {
	z[0], z[1], z[2], z[3] = float64(a[0]), float64(a[1]), float64(a[2]), float64(a[3])
	z[4], z[5], z[6], z[7] = float64(a[4]), float64(a[5]), float64(a[6]), float64(a[7])
}

func narrow(z *[block]float32, a *[block]float64) {
	z[0], z[1], z[2], z[3] = float32(a[0]), float32(a[1]), float32(a[2]), float32(a[3])
	z[4], z[5], z[6], z[7] = float32(a[4]), float32(a[5]), float32(a[6]), float32(a[7])
}
