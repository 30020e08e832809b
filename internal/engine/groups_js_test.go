package engine

import (
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/portable"
)

func init() {
	cpu.UseAll()
	portable.UseAll()
	UseSelfTests()
	UsePasses()
	UseBlocks()
}
