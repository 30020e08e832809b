//go:build !amd64 || noasm

package simd

// FoldColumns returns nil, because there are no kernels for columns here.
func FoldColumns(string) ColumnFold { return nil }
