// Package simd computes on float32 slices with the widest vector instructions of the
// machine: AVX-512, or AVX2 with FMA, on amd64, NEON on arm64, and SIMD128 of WebAssembly
// in JavaScript. On other machines, and under the build tag noasm, it uses plain Go.
//
// The functions take slices and return no errors. A wrong length panics, as an index out
// of range does. Packages device and batch check lengths before they call package simd.
package simd

import (
	"strings"

	"github.com/rayo-go/rayo/internal/env"
	"github.com/rayo-go/rayo/internal/fmt"
)

// Level is a set of vector instructions for which this package has kernels. Levels are
// ordered from the narrowest to the widest.
type Level uint8

// The levels. A machine supports Generic and at most one other family.
const (
	Generic Level = iota // plain Go, the reference for the other levels
	SIMD128              // WebAssembly in JavaScript: 4 lanes
	NEON                 // arm64: 4 lanes
	AVX2                 // amd64: 8 lanes, with FMA and F16C
	AVX512               // amd64: 16 lanes: F, DQ, BW, VL, VBMI2
)

var levelNames = [...]string{"generic", "simd128", "neon", "avx2", "avx512"}

// String returns the name of the level in RAYO_SIMD.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// active is the level of this process. It is set before any kernel runs.
var active, refused = choose(env.Get("RAYO_SIMD"))

// Active returns the level that the kernels of this process use: the level that RAYO_SIMD
// names if the machine supports it, otherwise the widest supported level.
func Active() Level { return active }

// Refused returns the reason for which RAYO_SIMD was ignored, or "" if it was not ignored.
func Refused() string { return refused }

// Supported returns the levels that this machine can run, narrowest first.
func Supported() []Level {
	ls := []Level{Generic}
	return append(ls, machineLevels()...)
}

func choose(want string) (Level, string) {
	ls := Supported()
	best := ls[len(ls)-1]
	if want == "" {
		return best, ""
	}
	for _, l := range ls {
		if l.String() == want {
			return l, ""
		}
	}
	var names []string
	for _, l := range ls {
		names = append(names, l.String())
	}
	return best, fmt.Sprintf("RAYO_SIMD=%s is none of %s, which this machine has", want, strings.Join(names, ", "))
}
