//go:build !js

package wgsl

import (
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
)

func init() { irhook.Verify = ir.Verify }
