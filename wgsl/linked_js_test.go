package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

// The tests use all functions, and kernels that must be refused.
func init() {
	ir.UseFunctions()
	irhook.Verify = ir.Verify
}
