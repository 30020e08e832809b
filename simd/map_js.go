//go:build js && !noasm

package simd

import "unsafe"

// mapLevel returns the kernel of the module, or nil if there is none.
func mapLevel(level Level, name string) MapFunc {
	if level == SIMD128 {
		return mapSIMD128(name)
	}
	return nil
}

// streamLevel: there are no stores around the caches.
func streamLevel(Level, string) MapFunc { return nil }

func streamFence() {}

// mapAtPlace returns the elementwise kernel whose loop has that place in the table, and
// so many parameters. These may be on the stack, which moves: they are copied.
func mapAtPlace(core uint32, params int) MapFunc {
	return func(dst, x, y, z *float32, n int, p *float32) {
		c := begin(placeMap)
		c.Core = core
		pointersTo(c, dst, x, y, z)
		copy(c.Floats[:], unsafe.Slice(p, params))
		c.Ints[0] = n
		host.Run()
	}
}
