//go:build (js || wazero) && !noasm

package simd

import (
	"math"
	"slices"
	"strings"
	"sync"
	"unsafe"

	wasm "github.com/rayo-go/rayo/internal/wasm/host"
)

// mapKernels keeps the functions that mapLevel has made, so that looking up a kernel by name does
// not allocate. A nil function means that the module has no kernel with the name.
var mapKernels struct {
	sync.Mutex
	byName map[string]MapFunc
}

// mapLevel returns the kernel of the module, or nil if there is none.
func mapLevel(level Level, name string) MapFunc {
	if level != SIMD128 {
		return nil
	}
	mapKernels.Lock()
	defer mapKernels.Unlock()
	f, known := mapKernels.byName[name]
	if !known {
		if mapKernels.byName == nil {
			mapKernels.byName = make(map[string]MapFunc)
		}
		f = newMapKernel(name)
		mapKernels.byName[strings.Clone(name)] = f
	}
	return f
}

func newMapKernel(name string) MapFunc {
	if k, found := castKernels[name]; found {
		return castAtPlace(k.place, k.dst, k.src)
	}
	i, found := slices.BinarySearch(mapNames[:], name)
	if !found || mapPlaces[i] == 0 {
		return nil
	}
	kernel := mapAtPlace(uint32(mapPlaces[i]>>2), int(mapPlaces[i]&3))
	if f := trigFunctions[strings.TrimPrefix(name, "code.")]; f != nil {
		return func(dst, x, y, z *float32, n int, p *float32) { trigWithin(maxAbsSIMD128, kernel, f, dst, x, n) }
	}
	return kernel
}

// trigFunctions compute the elements beyond the range of the kernels of the same name: see trig.
var trigFunctions = map[string]func(float64) float64{"sin": math.Sin, "cos": math.Cos, "tan": math.Tan}

// streamLevel returns nil: this level has no non-temporal stores.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}

// castKernels are the indices in the table of functions of the conversions from and to elements of 16
// bits, and the bytes of an element of the result and of the operand.
var castKernels = map[string]struct {
	place    uint32
	dst, src int
}{
	"cast.f16.f32": {elementWidenF16, 4, 2}, "cast.f32.f16": {elementNarrowF16, 2, 4},
	"cast.bf16.f32": {elementWidenBf16, 4, 2}, "cast.f32.bf16": {elementNarrowBf16, 2, 4},
}

func castAtPlace(place uint32, dstSize, srcSize int) MapFunc {
	return func(dst, x, _, _ *float32, n int, _ *float32) {
		c := elements.Begin(place)
		c.Write(0, unsafe.Pointer(dst), dstSize*n)
		c.Read(1, unsafe.Pointer(x), srcSize*n)
		c.Ints[0] = n
		c.Run()
	}
}

// mapAtPlace returns the elementwise kernel whose loop has this index in the table, with the given
// number of parameters. The parameters may be on the stack, which moves, so they are copied.
func mapAtPlace(core uint32, params int) MapFunc {
	return func(dst, x, y, z *float32, n int, p *float32) {
		for first := 0; first < n; first += wasm.Block {
			c := elements.Begin(elementMap)
			c.Core = core
			count := min(n-first, wasm.Block)
			c.Write(0, elementAt(dst, first), 4*count)
			c.Read(1, elementAt(x, first), 4*count)
			c.Read(2, elementAt(y, first), 4*count)
			c.Read(3, elementAt(z, first), 4*count)
			for i, v := range unsafe.Slice(p, params) {
				c.Floats[i] = v
			}
			c.Ints[0] = count
			c.Run()
		}
	}
}

// elementAt returns the address of element i of an array, or nil if the array is nil.
func elementAt(x *float32, i int) unsafe.Pointer {
	if x == nil {
		return nil
	}
	return unsafe.Add(unsafe.Pointer(x), 4*i)
}
