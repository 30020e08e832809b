//go:build amd64 || arm64 || wasm

package frame

import "unsafe"

// Call is the layout of one call, on machines whose int and pointers have 64 bits. Pointers must be addresses on
// the heap, where Go does not move memory.
type Call struct {
	Kernel, Core uint32
	Pointers     [NumPointers]uintptr
	Ints         [NumInts]int
	Floats       [NumFloats]float32
	Results      [2]float32
	Scratch      [NumScratch]float32
}

// The constants of this package are the offsets of the fields.
var (
	_ = [1]struct{}{}[unsafe.Offsetof(Call{}.Pointers)-Pointers]
	_ = [1]struct{}{}[unsafe.Offsetof(Call{}.Ints)-Ints]
	_ = [1]struct{}{}[unsafe.Offsetof(Call{}.Floats)-Floats]
	_ = [1]struct{}{}[unsafe.Offsetof(Call{}.Results)-Results]
	_ = [1]struct{}{}[unsafe.Offsetof(Call{}.Scratch)-Scratch]
	_ = [1]struct{}{}[unsafe.Sizeof(Call{})-Size]
)
