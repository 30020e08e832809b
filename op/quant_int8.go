package op

import "math"

// Int8Group is the number of neighbouring elements of a row that share one scale in [RoundInt8].
const Int8Group = 32

// leastInt8 is the magnitude below which [RoundInt8] rounds numbers to 0. It is far below any
// magnitude that matters in a model, and large enough that 127 divided by it does not overflow and
// the product of its scale and a block's scale does not underflow.
const leastInt8 = 0x1p-100

// RoundInt8 rounds each number x to q·d, where q is an integer from -127 to 127 and d is the scale of
// its group of [Int8Group] numbers: the greatest magnitude of the group divided by 127. [MatMulQ]
// rounds its first operand in this way with option Int8. The bits of the results are the same on every
// machine: d and the factor 127/max|x| are float32 quotients, and q is the float32 product of x and
// the factor, rounded to the nearest integer with ties to even.
//
// If a number of a group is not finite, the group's scale is NaN and its integers are 0. If all numbers
// of a group are below 2^-100 in magnitude, its scale and integers are 0. The last group may be short.
// q must have room for len(x) integers, and scales for one scale for each group.
func RoundInt8(q []int8, scales, x []float32) {
	for i := range (len(x) + Int8Group - 1) / Int8Group {
		end := min((i+1)*Int8Group, len(x))
		group, to := x[i*Int8Group:end], q[i*Int8Group:end]
		scales[i] = roundGroup(to, group)
	}
}

func roundGroup(q []int8, x []float32) (scale float32) {
	most, finite := float32(0), float32(0)
	for _, v := range x {
		finite += v * 0 // NaN if v is NaN or infinite
		most = max(most, v, -v)
	}
	if finite != 0 || most < leastInt8 {
		clear(q)
		return finite
	}
	factor := 127 / most
	for i, v := range x {
		q[i] = int8(math.RoundToEven(float64(float32(v * factor))))
	}
	return most / 127
}

// roundedInt8 returns the products d·q of rows of k numbers, and the scales d of their groups.
func roundedInt8(x []float64, k int) (rounded, scales []float64) {
	if k == 0 {
		return x, nil
	}
	groups := (k + Int8Group - 1) / Int8Group
	row, q, d := make([]float32, k), make([]int8, k), make([]float32, groups)
	rounded = make([]float64, 0, len(x))
	for ; len(x) > 0; x = x[k:] {
		for i := range row {
			row[i] = float32(x[i])
		}
		RoundInt8(q, d, row)
		for i, v := range q {
			rounded = append(rounded, float64(v)*float64(d[i/Int8Group]))
		}
		for _, v := range d {
			scales = append(scales, float64(v))
		}
	}
	return rounded, scales
}

// lostInt8 returns, in units of ε, a bound of the error of x·w in addition to the roundings of a
// sum, if x was rounded to v with a scale. It includes the whole difference between x and v, because
// a device need not round x. It also includes the rounding of the product of the two scales if that
// is subnormal, times at most 127·127.
func lostInt8(x, v, scale, w float64) float64 {
	lost := math.Abs(x-v) * math.Abs(w) / epsilon
	if p := math.Abs(scale * w); p > 0 && p < 128*minNormal {
		lost += 127 * 127 * minULP / epsilon
	}
	return lost
}
