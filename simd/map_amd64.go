//go:build amd64 && !noasm

package simd

// mapLevel returns the kernel in assembly, or nil if there is none.
func mapLevel(level Level, name string) MapFunc {
	switch level {
	case AVX2:
		return mapAVX2(name)
	case AVX512:
		return mapAVX512(name)
	}
	return nil
}
