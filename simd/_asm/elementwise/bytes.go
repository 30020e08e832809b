package main

import (
	"math"
	"strings"
)

// bytes returns the loop of a conversion from or to elements of one byte. Register 7 holds the
// upper limit of the elements, register 6 the lower limit.
func (f *x86File) bytes(name string, constant func(bits uint32, r int)) string {
	const load, store = "VMOVUPS (SI)(AX*4), V0; ", "; VMOVUPS V0, (DI)(AX*4)"
	from, to, _ := strings.Cut(name, "To")
	switch {
	case from == "U8" && to == "F32":
		return "VPMOVZXBD (SI)(AX*1), V0; VCVTDQ2PS V0, V0" + store
	case from == "I8" && to == "F32":
		return "VPMOVSXBD (SI)(AX*1), V0; VCVTDQ2PS V0, V0" + store
	case from == "U8":
		return "VPMOVZXBD (SI)(AX*1), V0" + store
	case from == "I8":
		return "VPMOVSXBD (SI)(AX*1), V0" + store
	}
	lo, hi := float32(0), float32(math.MaxUint8)
	if to == "I8" {
		lo, hi = math.MinInt8, math.MaxInt8
	}
	body := load
	if from == "F32" {
		// Replace NaN by 0 first: the maximum of NaN and the limit would be the limit.
		constant(math.Float32bits(lo), 6)
		constant(math.Float32bits(hi), 7)
		if f.wide {
			body += "VCMPPS $7, V0, V0, K2; VMOVAPS.Z V0, K2, V0; "
		} else {
			body += "VCMPPS $7, V0, V0, V1; VANDPS V1, V0, V0; "
		}
		body += "VMAXPS V6, V0, V0; VMINPS V7, V0, V0; VCVTTPS2DQ V0, V0; "
	}
	if f.wide {
		return body + "VPMOVDB V0, X0; VMOVDQU X0, (DI)(AX*1)"
	}
	// Two pack instructions convert words to bytes. They saturate, so only the low bytes may be
	// set. They pack each 128-bit lane separately, so the halves are combined first.
	constant(math.MaxUint8, 5)
	return body + "VPAND V5, V0, V0; VEXTRACTI128 $1, V0, X1; VPACKUSDW X1, X0, X0; VPACKUSWB X0, X0, X0; VMOVQ X0, (DI)(AX*1)"
}
