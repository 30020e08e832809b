package ptxkernels

import (
	"errors"
	"fmt"
	"math"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Plan is the sequence of launches that computes a request. A stage sees the writes of the earlier
// stages.
type Plan struct {
	Scratch []int64 // bytes of each temporary; its initial contents are undefined
	// Zeros has the bytes of further temporaries, which follow those of Scratch. They contain zeros
	// at the first run of the plan, and keep their contents between runs.
	Zeros   []int64
	Stages  []Stage
	Variant string // the chosen variant: "warp", "wgmma128x256"
	// Anywhere, if not nil, is the plan for arrays whose addresses are only multiples of their
	// element size. It has the same arrays and no temporaries.
	Anywhere *Plan
	// InPlace means that result 0 may be the memory of operand 0: no thread reads an element after
	// another thread may have written it.
	InPlace bool
}

// Stage is one launch.
type Stage struct {
	Kernel *Kernel
	Grid   [3]uint32 // blocks
	Args   []Arg     // one for each parameter of the kernel
	// Zero names a temporary that is filled with zeros before the launch, or is -1.
	Zero int
}

// Kernel is the specialised code of a launch: the same pointer means the same code, for as long as
// the process runs.
type Kernel struct {
	Name    string     // an identifier of PTX
	Target  ptx.Target // the oldest target that it runs on
	Block   [3]uint32  // threads
	Cluster uint32     // blocks in a cluster, along x; 0 without clusters
	// Build writes the code; the ptx.Kernel then has the bytes of shared memory. It depends only on
	// the module's target.
	Build func(k *ptx.Kernel)
}

// ArgKind says what an argument is.
type ArgKind uint8

// The kinds of arguments.
const (
	Pointer ArgKind = iota // the address of an array, 8 bytes
	Word                   // 4 bytes
	Double                 // 8 bytes
	Map                    // a tensor map, 128 bytes at a multiple of 64
)

// Arg is an argument of a kernel.
type Arg struct {
	Kind  ArgKind
	Array portable.Ref // for Pointer and Map: an operand, a result or a temporary
	Off   int64        // offset in the array, in bytes
	Bits  uint64       // for Word and Double
	Tiles *Tiles       // for Map
}

// Tiles describes a tensor and the tile that a copy moves, in the form of cuTensorMapEncodeTiled:
// the innermost axis is the first, and there are at most five axes. Elements beyond the sizes read
// as 0.
type Tiles struct {
	Type    op.DType // F32, F16, BF16, or U32
	Size    []int    // elements
	Stride  []int    // in bytes, of all axes but the first: multiples of 16
	Tile    []int    // elements, at most 256
	Swizzle ptx.Swizzle
	// Lines means that a copy makes the L2 cache read lines of 128 bytes, instead of 256 bytes. It
	// is faster if rows of tiles are short and unaligned.
	Lines bool
}

// aligned is the alignment of every array of a plan. For memory with a smaller alignment use
// [Plan.Anywhere], copies, or the portable kernels.
const aligned = 16

// Alignment is the required alignment of the address of every array.
func Alignment() int { return aligned }

// ptr, word and float make arguments.
func ptr(kind portable.RefKind, index int) Arg {
	return Arg{Kind: Pointer, Array: portable.Ref{Kind: kind, Index: index}}
}
func input(i int) Arg   { return ptr(portable.InputRef, i) }
func output(i int) Arg  { return ptr(portable.OutputRef, i) }
func scratch(i int) Arg { return ptr(portable.ScratchRef, i) }
func word(v uint32) Arg { return Arg{Kind: Word, Bits: uint64(v)} }

// Device has the properties that decide the choice of a variant.
type Device struct {
	Target          ptx.Target
	Multiprocessors int
	Shared          int // largest shared memory of a block, in bytes

	candidates *[]candidate // collects the candidates of Variants, else nil
}

// planner plans a request that For has checked, for one family of kernels. Its error wraps
// op.ErrUnsupported if the family does not support the request.
type planner func(r *portable.Request, d *Device) (*Plan, error)

var families = map[*op.Operation][]planner{}

// register adds p to the planners of the operations. Several families may support an operation, for
// example for different types; For uses the first whose error is not op.ErrUnsupported.
func register(p planner, ops ...*op.Operation) {
	for _, o := range ops {
		families[o] = append(families[o], p)
	}
}

// Has reports whether there are kernels for the operation on some device.
func Has(o *op.Operation) bool { return families[o] != nil }

// For returns the launches that compute r on the device. The error wraps [op.ErrShape] if op
// rejects the shapes, and [op.ErrUnsupported] if there is no kernel for the operation, its element
// types, its sizes or the device.
func For(r *portable.Request, d Device) (*Plan, error) {
	if r.Op == nil {
		return planMap(r)
	}
	planners := families[r.Op]
	if len(planners) == 0 || r.Inner > 0 {
		return nil, unsupported("no kernel")
	}
	if r.Op != op.Attention {
		for _, a := range append(r.In[:len(r.In):len(r.In)], r.Out...) {
			if a.Layout != nil {
				return nil, unsupported("no kernel for the layout %v", a.Layout)
			}
		}
	}
	if err := checkRequest(r); err != nil {
		return nil, fmt.Errorf("%s: %w", r.Op.Name(), err)
	}
	for i := range r.Out {
		if size(r.Out[i].Shape) > 0 {
			var err error
			for _, p := range planners {
				var plan *Plan
				if plan, err = p(r, &d); err == nil {
					return plan, nil
				}
				if !errors.Is(err, op.ErrUnsupported) {
					break
				}
			}
			return nil, fmt.Errorf("%s: %w", r.Op.Name(), err)
		}
	}
	return &Plan{}, nil
}

// checkRequest returns an error unless the operands and results have the shapes and types that the
// operation requires.
func checkRequest(r *portable.Request) error {
	for _, a := range r.In {
		if a.Shape == nil {
			continue
		}
		if n, err := a.Shape.Size(); err != nil {
			return err
		} else if n > math.MaxInt32 {
			return unsupported("%d elements in one array", n)
		}
	}
	made, results, err := r.Results()
	if err != nil {
		return err
	}
	if r.Post == nil && len(r.Out) != len(made) || r.Post != nil && (len(made) != 1 || len(r.Out) != len(r.Post.Exprs)) {
		return fmt.Errorf("%d arrays to write: %w", len(r.Out), op.ErrShape)
	}
	for i, o := range r.Out {
		want := results[min(i, len(results)-1)]
		n, err := o.Shape.Size()
		if err != nil {
			return err
		}
		if n != size(want) {
			return fmt.Errorf("result %d of shape %v, not %v: %w", i, o.Shape, want, op.ErrShape)
		}
		if n > math.MaxInt32 || r.Post == nil && o.Type != made[i] {
			return unsupported("result %d of %d elements of type %v", i, n, o.Type)
		}
	}
	return nil
}

func unsupported(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, op.ErrUnsupported)...)
}

// size returns the number of elements of a valid shape.
func size(s op.Shape) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
