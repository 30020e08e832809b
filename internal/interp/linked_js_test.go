package interp

import "github.com/rayo-go/rayo/internal/ir"

// The tests use all functions.
func init() { ir.UseFunctions() }
