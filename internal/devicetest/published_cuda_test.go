//go:build (linux || windows) && !nocuda && !race

package devicetest

import "testing"

// TestCUDAEmulatedONNX runs ONNX's node tests by the kernels of GPUs, emulated.
func TestCUDAEmulatedONNX(t *testing.T) {
	emulate(t, 9, false)
	onnx(t, openCUDA, nil)
}

// TestCUDAEmulatedNumPy compares elementwise functions with NumPy's tables.
func TestCUDAEmulatedNumPy(t *testing.T) {
	emulate(t, 9, false)
	numpy(t, openCUDA)
}

// TestCUDAEmulatedQuotients divides integers by the kernels of GPUs, emulated.
func TestCUDAEmulatedQuotients(t *testing.T) {
	emulate(t, 9, false)
	quotients(t, openCUDA, 5000)
}
