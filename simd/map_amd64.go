//go:build amd64 && !noasm && !wazero

package simd

import "unsafe"

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

// streamLevel returns the kernel with non-temporal stores, or nil.
func streamLevel(level Level, name string) MapFunc {
	switch level {
	case AVX2:
		return mapStreamAVX2(name)
	case AVX512:
		return mapStreamAVX512(name)
	}
	return nil
}

// nearOr runs the kernel near, which is accurate for x >= low, and replaces the results of
// elements below low by those of the kernel far. An element's result does not depend on its
// neighbours.
func nearOr(near, far MapFunc, low float32, dst, x *float32, n int) {
	least := reduceKernelsOf(AVX512).block[kindMin]
	for n > 0 {
		m := min(n, mapBlock)
		if least(x, nil, m) >= low {
			near(dst, x, nil, nil, m, nil)
		} else {
			nearAndFar(near, far, low, dst, x, m)
		}
		if n -= m; n > 0 {
			dst, x = after(dst, m), after(x, m)
		}
	}
}

func nearAndFar(near, far MapFunc, low float32, dst, x *float32, n int) {
	var kept, beyond [mapBlock]float32 // dst may be x
	copy(kept[:n], unsafe.Slice(x, n))
	far((*float32)(noescape(unsafe.Pointer(&beyond))), x, nil, nil, n, nil)
	near(dst, x, nil, nil, n, nil)
	d := unsafe.Slice(dst, n)
	for i, v := range kept[:n] {
		if v < low {
			d[i] = beyond[i]
		}
	}
}
