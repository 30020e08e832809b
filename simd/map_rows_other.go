//go:build !amd64 || noasm

package simd

// MapRows returns the kernel for rows of a kernel of [Map], or nil.
func MapRows(string) MapRowsFunc { return nil }
