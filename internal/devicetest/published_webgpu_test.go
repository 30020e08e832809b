//go:build !nowebgpu && !js && !race

package devicetest

import "testing"

// TestWebGPUONNX runs ONNX's node tests on software.
func TestWebGPUONNX(t *testing.T) { onnx(t, webGPU(t, "lavapipe"), nil) }

// TestWebGPUNumPy compares elementwise functions with NumPy's tables.
func TestWebGPUNumPy(t *testing.T) { numpy(t, webGPU(t, "lavapipe")) }

// TestWebGPUQuotients divides integers on software.
func TestWebGPUQuotients(t *testing.T) { quotients(t, webGPU(t, "lavapipe"), 100_000) }
