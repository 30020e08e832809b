//go:build !noasm

package roofline

import "unsafe"

//go:noescape
func fmaNEON(n int)

//go:noescape
func readNEON(x *float32, n int)

func machine() loops {
	m := plain()
	m.fma = []fma{{fmaNEON, 16 * 4 * 2}}
	m.read = append(m.read, func(x []float32) { readNEON(unsafe.SliceData(x), len(x)) })
	return m
}
