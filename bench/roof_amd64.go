package main

import "github.com/klauspost/cpuid/v2"

//go:noescape
func fma512(n int)

//go:noescape
func fma256(n int)

//go:noescape
func read512(p *float32, n int)

//go:noescape
func read256(p *float32, n int)

//go:noescape
func stream256(dst, src *float32, n int)

// limits returns, for one limit of the machine, the loops that may reach it. The fastest one
// counts. Each loop processes all elements, or does as many rounds of fused multiply-adds.
func limits(op string, dst, src []float32) []limit {
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3) {
		return nil
	}
	wide := cpuid.CPU.Supports(cpuid.AVX512F)
	n := len(src) &^ 127
	var ls []limit
	switch op {
	case "roof-fma":
		ls = append(ls, limit{"12 × FMA of 256 bits", func() { fma256(len(src)) }})
		if wide {
			// Half the rounds have the same number of operations.
			ls = append(ls, limit{"12 × FMA of 512 bits", func() { fma512(len(src) / 2) }})
		}
	case "roof-read":
		ls = append(ls, limit{"loads of 256 bits", func() { read256(&src[0], n) }})
		if wide {
			ls = append(ls, limit{"loads of 512 bits, prefetched", func() { read512(&src[0], n) }})
		}
	case "roof-copy":
		ls = append(ls,
			limit{"copy", func() { copy(dst, src) }},
			limit{"non-temporal stores", func() { stream256(&dst[0], &src[0], n) }})
	}
	return ls
}

// fmaFlops is the number of operations of one round of roof-fma.
const fmaFlops = 12 * 8 * 2
