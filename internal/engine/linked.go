//go:build !js

package engine

func init() {
	UseBlocks()
	UseSelfTests()
	UsePasses()
}
