package batch

import (
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/portable"
)

// Pages link the kernels of the operations that only this package records with this package.
func init() {
	cpu.UseAll()
	engine.UseBlocks()
	engine.UseSelfTests()
	engine.UsePasses()
	portable.UseAll()
}
