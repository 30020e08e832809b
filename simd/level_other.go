//go:build noasm || !(amd64 || arm64 || js)

package simd

func machineLevels() []Level { return nil }
