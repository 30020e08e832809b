package interp

import "math"

// The arithmetic of single lanes that takes more than an expression.

func truth(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

// fma returns a*b + c, rounded once. The product is exact in float64 and the sum
// is off by less than half a unit there, which shows only where the sum ends
// halfway between two float32, or is so small that those are farther apart.
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if u := math.Float64bits(s); u&(1<<29-1) == 1<<28 || u<<1 < 897<<53 && u<<1 != 0 {
		return float32(oddSum(p, float64(c), s))
	}
	return float32(s)
}

// oddSum returns p + c rounded to the neighbour with an odd last bit unless s,
// the nearest, is exact. What is rounded again, to at most 51 bits, is then
// rounded as the exact sum would be.
func oddSum(p, c, s float64) float64 {
	if s-s != 0 {
		return s
	}
	t := s - p
	low := (p - (s - t)) + (c - t)
	u := math.Float64bits(s)
	if low == 0 || u&1 != 0 {
		return s
	}
	if (low > 0) == (s > 0) {
		return math.Float64frombits(u + 1)
	}
	return math.Float64frombits(u - 1)
}

// A float that is no number becomes 0, one that is too large the largest.

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
	return a / b // the least by -1 is itself, as Go defines it
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
