//go:build !js

// Package env reads the variables of the environment. In pages it does so without the package os, which opens
// the standard files.
package env

import "os"

// Get returns the value of a variable, "" if it is not set.
func Get(name string) string { return os.Getenv(name) }
