package portable

import "github.com/rayo-go/rayo/internal/incomparable"

// Target has the features of a device. A field of 0 means the minimum that every device has.
type Target struct {
	_ incomparable.Type

	Lanes   int // maximum number of lanes of a workgroup; at least 256
	Shared  int // bytes of workgroup memory; at least 16 KiB
	Buffers int // maximum number of buffers of a kernel; at least 8
	Groups  int // maximum number of workgroups along one dimension of a grid; at least 65535
	// Subgroups says that the device has fast subgroup operations. Kernels work with subgroups of
	// any size, including 1.
	Subgroups bool
	// Subgroup is the number of lanes of every subgroup, or 0 if it is unknown.
	Subgroup int
	// Votes says that every subgroup has 32 lanes and that votes are fast: a vote gives each lane a
	// word with one bit for each lane of the subgroup. See [radixCounts].
	Votes bool
	F16   bool // kernels can use half floats in memory and registers
	// Ordered says that the device starts workgroups in the order of their numbers, as soon as
	// there is room, and that it has a large cache: see [partials.lookBack].
	Ordered bool
	// Serial says that software emulates the GPU on a CPU: one thread runs the lanes of a workgroup one after the
	// other, so barriers and workgroup memory are slow.
	Serial bool
	// MapLanes is the number of lanes of a workgroup of elementwise kernels; the default is 128.
	// With more lanes, a GPU waits longer for the last lane of a workgroup. With fewer lanes, too
	// few run at a time.
	MapLanes int
	// MapMuch is the number of instructions for each element from which on a lane computes several
	// vectors, in elementwise programs with functions; the default is 120.
	MapMuch int
	// MapBranches means that each of a lane's vectors has its own branch: with one branch for all,
	// compilers interleave their computations, and some run out of registers.
	MapBranches bool
	// MapGuarded says that Min and Max are much slower if an operand may be NaN. Kernels then test
	// whether all operands are moderate, and compute moderate vectors without the code for NaN.
	MapGuarded bool
}

func (t Target) withDefaults() Target {
	or := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&t.Lanes, 256)
	or(&t.Shared, 16<<10)
	or(&t.Buffers, 8)
	or(&t.Groups, 65535)
	or(&t.MapLanes, 128)
	or(&t.MapMuch, 120)
	return t
}
