//go:build !linux

package memory

func systemCaches() Caches { return Caches{} }
