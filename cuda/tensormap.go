package cuda

// A TensorMap describes a tensor in memory to the units of the device that copy
// tiles of it (TMA, capability 9.0). A kernel takes it as a parameter at a
// multiple of 64: p.Bytes(m[:], 64).
type TensorMap [128]byte

// ElementType is the type of the elements of a tensor map.
type ElementType uint32

// Types of elements.
const (
	ElementU8       ElementType = 0
	ElementU16      ElementType = 1
	ElementU32      ElementType = 2
	ElementI32      ElementType = 3
	ElementU64      ElementType = 4
	ElementI64      ElementType = 5
	ElementF16      ElementType = 6
	ElementF32      ElementType = 7
	ElementF64      ElementType = 8
	ElementBF16     ElementType = 9
	ElementF32Flush ElementType = 10 // subnormal numbers are zero
	ElementTF32     ElementType = 11
)

// Swizzle says how the lines of a tile are permuted in shared memory, by the
// bytes that a line has.
type Swizzle uint32

// Ways to permute lines.
const (
	NoSwizzle  Swizzle = 0
	Swizzle32  Swizzle = 1
	Swizzle64  Swizzle = 2
	Swizzle128 Swizzle = 3
)

// Promotion says how much of the second cache a copy fills at once.
type Promotion uint32

// Sizes of L2 fetches.
const (
	NoPromotion Promotion = 0
	Promote64   Promotion = 1
	Promote128  Promotion = 2
	Promote256  Promotion = 3
)

// A Tiled describes a tensor of one to five axes, the innermost first, and the
// tile that is copied at once.
type Tiled struct {
	Type    ElementType
	Address Ptr      // a multiple of 16
	Size    []uint64 // of the tensor along each axis, in elements
	Stride  []uint64 // in bytes, of each axis but the innermost, multiples of 16
	Tile    []uint32 // of the tile along each axis, at most 256
	Step    []uint32 // from one element to the next along each axis, or nil for 1
	Swizzle Swizzle
	Promote Promotion
	NaN     bool // elements beyond the tensor read as NaN instead of 0
}

// TensorMap makes the map of a tensor. It needs CUDA 12.0.
func (d *Device) TensorMap(t Tiled) (TensorMap, error) {
	var m TensorMap
	f, err := d.enter()
	if err != nil {
		return m, err
	}
	defer d.exit(f)
	const axes = 5
	rank := len(t.Size)
	if rank < 1 || rank > axes || len(t.Stride) != rank-1 || len(t.Tile) != rank || t.Step != nil && len(t.Step) != rank {
		return m, invalid("a tensor map with %d sizes, %d strides, %d sides of a tile and %d steps", rank, len(t.Stride), len(t.Tile), len(t.Step))
	}
	in := newTensorArguments()
	copy(in.size[:], t.Size)
	copy(in.stride[:], t.Stride)
	copy(in.tile[:], t.Tile)
	in.step = [axes]uint32{1, 1, 1, 1, 1}
	copy(in.step[:], t.Step)
	fill := uintptr(0)
	if t.NaN {
		fill = 1
	}
	// The driver wants the map at a multiple of 64.
	off := -addressOf(&in.room) & 63
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = addressOf(&in.room)+off, uintptr(t.Type), uintptr(rank), uintptr(t.Address)
	f.Args[4], f.Args[5], f.Args[6], f.Args[7] = addressOf(&in.size), addressOf(&in.stride), addressOf(&in.tile), addressOf(&in.step)
	f.Args[8], f.Args[9], f.Args[10], f.Args[11] = 0, uintptr(t.Swizzle), uintptr(t.Promote), fill
	err = d.prim.call(f, cuTensorMapEncodeTiled)
	copy(m[:], in.room[off:])
	keep(in)
	return m, err
}

// tensorArguments has the memory to which the call's arguments point.
type tensorArguments struct {
	room   [128 + 64]byte
	size   [5]uint64
	stride [5]uint64
	tile   [5]uint32
	step   [5]uint32
}

//go:noinline
func newTensorArguments() *tensorArguments { return new(tensorArguments) }
