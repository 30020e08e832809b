package portable

// Target has the features of a device. A field of 0 means the minimum that every device has.
type Target struct {
	Lanes   int // of a workgroup; 256
	Shared  int // bytes of workgroup memory; 16 KiB
	Buffers int // that one kernel binds; 8
	Groups  int // of a grid along one dimension; 65535
	// Subgroups says that the device has operations of subgroups that are worth
	// using: kernels hold for subgroups of any size, one lane included.
	Subgroups bool
	// Subgroup is how many lanes every subgroup has, 0 where that is not known.
	Subgroup int
	// Votes says that every subgroup has 32 lanes and that a vote of all of them, a bit of a
	// word each, is worth its time: see [radixCounts].
	Votes bool
	F16   bool // half floats in memory and registers
	// Ordered says that the device begins workgroups in the order of their numbers, as long as
	// there is room, and has a large cache: see [partials.lookBack].
	Ordered bool
	// MapLanes is the lanes of a workgroup of elementwise kernels; 128. With more of them a
	// GPU waits longer for the last of a workgroup, with fewer there are not enough
	// workgroups at a time.
	MapLanes int
	// MapMuch is from how many instructions an element of an elementwise program with
	// functions takes lanes have several vectors; 120.
	MapMuch int
	// MapBranches means that each of a lane's vectors has its own branch: with one branch for all,
	// compilers interleave their computations, and some run out of registers.
	MapBranches bool
	// MapGuarded says that a greatest or least of two numbers takes much longer where one
	// may be NaN: vectors of elements that are not large are computed without.
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
