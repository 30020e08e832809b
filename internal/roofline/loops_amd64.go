//go:build !noasm

package roofline

import (
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/simd"
)

//go:noescape
func fmaAVX2(n int)

//go:noescape
func fmaAVX512(n int)

//go:noescape
func readAVX2(x *float32, n int)

//go:noescape
func streamAVX2(dst, src *float32, n int)

// machine returns the loops for the instructions of the processor, independently of RAYO_SIMD.
func machine() loops {
	m := plain()
	levels := simd.Supported()
	if !slices.Contains(levels, simd.AVX2) {
		return m
	}
	m.fma = []fma{{fmaAVX2, 12 * 8 * 2}}
	m.read = append(m.read, func(x []float32) { readAVX2(unsafe.SliceData(x), len(x)) })
	m.copy = append(m.copy, func(dst, src []float32) { streamAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), len(dst)) })
	if slices.Contains(levels, simd.AVX512) {
		m.fma = append(m.fma, fma{fmaAVX512, 12 * 16 * 2})
	}
	return m
}
