package wgsl

import "github.com/rayo-go/rayo/internal/ir"

func init() { ir.UseFunctions() }
