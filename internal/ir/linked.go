//go:build !js

package ir

func init() { UseFunctions() }
