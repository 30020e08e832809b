//go:build !amd64 || noasm

package cpu

import "github.com/rayo-go/rayo/op"

// columns returns the core that reduces columns by kernels of their own, or nil: there is none here.
func (o *opStep) columns() core { return nil }

// variesColumns reports whether the variances of columns are computed without a copy: not here.
func variesColumns(op.Shape, *op.Layout) bool { return false }
