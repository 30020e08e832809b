//go:build !amd64

package main

// limits returns only a copy loop, because there is no assembly.
func limits(op string, dst, src []float32) []limit {
	if op == "roof-copy" {
		return []limit{{"copy", func() { copy(dst, src) }}}
	}
	return nil
}

const fmaFlops = 12 * 8 * 2
