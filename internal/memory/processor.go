//go:build !js

package memory

import "github.com/klauspost/cpuid/v2"

func processorCaches() Caches {
	c := &cpuid.CPU.Cache
	return Caches{c.L1D, c.L2, c.L3}
}

func processorName() string { return cpuid.CPU.BrandName }
