package simd

// A ColumnFold combines each of n elements of dst, at least 1, with the elements of the same column in
// rows rows of x, which are stride elements apart.
type ColumnFold func(dst, x *uint32, n, rows, stride int)
