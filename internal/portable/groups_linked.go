//go:build !js

package portable

func init() { UseAll() }
