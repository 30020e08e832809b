//go:build !amd64 || noasm

package linalg

// isFlat returns false: there are no kernels for small matrices.
func isFlat(rows, cols int) bool { return false }

func luFlat(Matrix, []int32) {}

func choleskyFlat(Matrix) bool { return false }
