//go:build !js

package cpu

func init() {
	UseKernels()
	UseAll()
}
