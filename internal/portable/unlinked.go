//go:build js && nowebgpu

package portable

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// A page without WebGPU needs portable kernels only for device.WithPortableKernels, and they would
// make every page larger. This file leaves them out, and the references compute the operations.

var errUnlinked = fmt.Errorf("this page was built without WebGPU (tag nowebgpu) and has no portable kernels: %w", op.ErrUnsupported)

// For returns an error that wraps [op.ErrUnsupported].
func For(*Request) (*Plan, error) {
	return nil, errUnlinked
}

// These functions do nothing, because there are no kernels to register.
func UseReductions() {}
func UseRows()       {}
func UseProducts()   {}
func UseConv2D()     {}
func UseAttention()  {}
func UseOrder()      {}
func UseMoves()      {}
func UseAll()        {}

// Finish returns an error that wraps [op.ErrUnsupported].
func Finish(*Request) (*Epilogue, error) {
	return nil, errUnlinked
}

// CheckBroadcast returns an error that wraps [op.ErrUnsupported].
func CheckBroadcast(Operand, int) error { return errUnlinked }

// Ragged reports false.
func Ragged(*Epilogue, int, Target) bool { return false }

// Has reports false.
func Has(*op.Operation) bool { return false }

// Variants returns nil.
func Variants(*op.Operation) []string { return nil }

// Reads reports false.
func Reads(*op.Operation, int, op.Shape, *op.Layout) bool { return false }

// Writes reports false.
func Writes(*op.Operation, op.Shape, *op.Layout) bool { return false }
