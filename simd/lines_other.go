//go:build !amd64 || noasm

package simd

import "unsafe"

// HasLines reports false: there are no kernels.
func HasLines(_ int) bool { return false }

// TransposeLines is never called: see HasLines.
func TransposeLines(_, _ unsafe.Pointer, _ int, _, _ []int, _ *LinesMemory, _, _ bool) {}

// HasPlanes reports false: there are no kernels.
func HasPlanes(_ int) bool { return false }

// MixPlanes is never called: see HasPlanes.
func MixPlanes(_, _ unsafe.Pointer, _, _, _, _ int, _ bool) {}
