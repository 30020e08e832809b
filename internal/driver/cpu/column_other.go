//go:build !amd64 || noasm

package cpu

import "github.com/rayo-go/rayo/op"

// columns returns nil, because there are no special kernels for columns here.
func (o *opStep) columns() core { return nil }

// variesColumns reports whether the variances of columns are computed without a copy, which is not
// supported here.
func variesColumns(op.Shape, *op.Layout) bool { return false }

// foldsByteColumns reports whether columns reads bytes, which is not supported here.
func foldsByteColumns(*op.Operation) bool { return false }
