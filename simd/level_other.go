//go:build noasm || !(amd64 || arm64 || js || wazero)

package simd

func machineLevels() []Level { return nil }
