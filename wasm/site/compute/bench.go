package compute

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/rayo-go/rayo/device"
)

// Timing has the times of one run of a benchmark, in milliseconds.
type Timing struct {
	Name          string
	Device, Plain float64
}

// The rows and columns of the operand of softmax, and of the matrices.
const (
	softmaxRows, softmaxCols = 1000, 1000
	matrix                   = 256
)

// Bench measures a matrix product or softmax on the device and in plain Go, in turn, and returns
// medians. It returns an error if their results differ.
func Bench(ctx context.Context, dev *device.Device, name string) (Timing, error) {
	var onDevice func(y, x []float32) error
	var plain func(y, x []float32)
	t := Timing{Name: name}
	n := matrix * matrix
	switch name {
	case "matmul":
		onDevice = func(y, x []float32) error { return dev.MatMul(ctx, y, x, x, nil, matrix, matrix, matrix) }
		plain = func(y, x []float32) { product(y, x, x, matrix) }
	case "softmax":
		n = softmaxRows * softmaxCols
		onDevice = func(y, x []float32) error { return dev.Softmax(ctx, y, x, softmaxRows, softmaxCols) }
		plain = func(y, x []float32) { softmax(y, x, softmaxCols) }
	default:
		return t, fmt.Errorf("no benchmark is called %q, expected matmul or softmax: %w", name, device.ErrUnsupported)
	}
	x, y, z := make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(i*7%13)/13 - 0.5
	}
	var times [2][]float64
	for run := range 6 {
		began := time.Now()
		if err := onDevice(y, x); err != nil {
			return t, err
		}
		half := time.Now()
		plain(z, x)
		if run > 0 { // the first run compiles kernels
			times[0] = append(times[0], milliseconds(half.Sub(began)))
			times[1] = append(times[1], milliseconds(time.Since(half)))
		}
	}
	for i := range y {
		if d := math.Abs(float64(y[i] - z[i])); !(d <= 1e-3) {
			return t, fmt.Errorf("%s: element %d is %v on device %v, but %v in plain Go", name, i, y[i], dev, z[i])
		}
	}
	t.Device, t.Plain = median(times[0]), median(times[1])
	return t, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// product is a matrix product in plain Go: it adds scaled rows of b to rows of c.
func product(c, a, b []float32, n int) {
	clear(c)
	for i := range n {
		row := c[i*n : (i+1)*n]
		for k := range n {
			f := a[i*n+k]
			for j, v := range b[k*n : (k+1)*n] {
				row[j] += f * v
			}
		}
	}
}

func softmax(y, x []float32, cols int) {
	for at := 0; at < len(x); at += cols {
		in, out := x[at:at+cols], y[at:at+cols]
		top := in[0]
		for _, v := range in {
			top = max(top, v)
		}
		sum := float32(0)
		for i, v := range in {
			out[i] = float32(math.Exp(float64(v - top)))
			sum += out[i]
		}
		for i := range out {
			out[i] /= sum
		}
	}
}
