//go:build !amd64 || noasm

package simd

// FoldColumns returns nil, because there are no special kernels for columns here.
func FoldColumns(string) ColumnFold { return nil }
