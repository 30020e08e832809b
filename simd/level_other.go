//go:build noasm || !(amd64 || arm64)

package simd

func machineLevels() []Level { return nil }
