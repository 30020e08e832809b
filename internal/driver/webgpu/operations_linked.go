//go:build !js

package webgpu

func init() {
	UseOperations()
	UseGraphs()
}
