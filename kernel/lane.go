package kernel

import "github.com/rayo-go/rayo/internal/ir"

// LocalSize sets the number of lanes of a workgroup along x, y and z. Every kernel must call it
// once.
func (b *Builder) LocalSize(x, y, z int) {
	if !b.ready() {
		return
	}
	if b.sized {
		b.fail("LocalSize is called twice")
		return
	}
	if x < 1 || y < 1 || z < 1 {
		b.fail("LocalSize(%d, %d, %d): all must be at least 1", x, y, z)
		return
	}
	if x > MaxLanes || y > MaxLanes || z > 64 || x*y*z > MaxLanes {
		b.failure(ErrLimit, "LocalSize(%d, %d, %d): a workgroup has at most %d lanes, 64 along z", x, y, z, MaxLanes)
		return
	}
	b.local, b.sized = [3]uint32{uint32(x), uint32(y), uint32(z)}, true
}

// PreferRegisters asks the compiler for more registers for each lane instead of more
// resident lanes. Use it in kernels that compute on many values at a time. It is a hint
// that not every compiler follows.
func (b *Builder) PreferRegisters() {
	if b.ready() {
		b.preferRegisters = true
	}
}

// Lanes returns the number of lanes of a workgroup, the product of the local size.
func (b *Builder) Lanes() int {
	if !b.localKnown("Lanes") {
		return 1
	}
	return int(b.local[0] * b.local[1] * b.local[2])
}

func (b *Builder) localKnown(name string) bool {
	if !b.ready() {
		return false
	}
	if !b.sized {
		b.fail("%s before LocalSize: call LocalSize first", name)
		return false
	}
	return true
}

// Budget sets the maximum number of iterations of a loop that is not known to end, each time that
// it is entered. The default is [DefaultBudget].
func (b *Builder) Budget(iterations int) {
	if !b.ready() {
		return
	}
	if iterations < 1 || uint64(iterations) > 1<<32-1 {
		b.fail("Budget of %d iterations: expected 1 or more", iterations)
		return
	}
	b.budget = uint32(iterations)
}

func (b *Builder) builtIn(flag uint8) U32 {
	b = b.owner()
	state := uint32(live)
	if flag < ir.BuiltInGroupX || flag > ir.BuiltInGroupsZ {
		state |= unsure
	}
	return U32{b: b, id: b.intern(head(ir.BuiltIn, kU32, flag), 0, 0, 0, 0, state)}
}

// localID returns a position in the workgroup. It is 0 along an axis of one lane.
func (b *Builder) localID(axis uint8) U32 {
	if b.ready() && b.sized && b.local[axis] == 1 {
		return U(0)
	}
	return b.builtIn(ir.BuiltInLocalX + axis)
}

// LocalX returns the position of the lane in its workgroup along x.
func (b *Builder) LocalX() U32 { return b.localID(0) }

// LocalY returns the position of the lane in its workgroup along y.
func (b *Builder) LocalY() U32 { return b.localID(1) }

// LocalZ returns the position of the lane in its workgroup along z.
func (b *Builder) LocalZ() U32 { return b.localID(2) }

// Lane returns the number of the lane in its workgroup. x varies fastest, then y, then z.
func (b *Builder) Lane() U32 {
	if b.ready() && b.sized && b.local[1] == 1 && b.local[2] == 1 {
		return b.LocalX()
	}
	return b.builtIn(ir.BuiltInLane)
}

// GroupX returns the position of the workgroup in the grid along x.
func (b *Builder) GroupX() U32 { return b.builtIn(ir.BuiltInGroupX) }

// GroupY returns the position of the workgroup in the grid along y.
func (b *Builder) GroupY() U32 { return b.builtIn(ir.BuiltInGroupY) }

// GroupZ returns the position of the workgroup in the grid along z.
func (b *Builder) GroupZ() U32 { return b.builtIn(ir.BuiltInGroupZ) }

// GroupsX returns the number of workgroups of the grid along x.
func (b *Builder) GroupsX() U32 { return b.builtIn(ir.BuiltInGroupsX) }

// GroupsY returns the number of workgroups of the grid along y.
func (b *Builder) GroupsY() U32 { return b.builtIn(ir.BuiltInGroupsY) }

// GroupsZ returns the number of workgroups of the grid along z.
func (b *Builder) GroupsZ() U32 { return b.builtIn(ir.BuiltInGroupsZ) }

// GlobalX returns the position of the lane in the grid along x. For more than 65,535 workgroups
// along one dimension, use [Builder.Index].
func (b *Builder) GlobalX() U32 { return b.global(0, b.GroupX()) }

// GlobalY returns the position of the lane in the grid along y.
func (b *Builder) GlobalY() U32 { return b.global(1, b.GroupY()) }

// GlobalZ returns the position of the lane in the grid along z.
func (b *Builder) GlobalZ() U32 { return b.global(2, b.GroupZ()) }

func (b *Builder) global(axis uint8, group U32) U32 {
	if !b.localKnown("a place in the grid") {
		return U32{b: b.owner()}
	}
	return group.Mul(U(b.local[axis])).Add(b.localID(axis))
}

// Group returns the number of the workgroup in a grid of one dimension, also if [GridFor] or
// [GridOf] has folded the grid into two dimensions.
func (b *Builder) Group() U32 { return b.GroupY().Mul(b.GroupsX()).Add(b.GroupX()) }

// Index returns the number of the lane in a grid of one dimension, also if [GridFor] or [GridOf]
// has folded the grid into two dimensions. A grid usually has more lanes than elements, so compare
// the index with the number of elements.
func (b *Builder) Index() U32 {
	if !b.localKnown("Index") {
		return U32{b: b.owner()}
	}
	return b.Group().Mul(U(uint32(b.Lanes()))).Add(b.Lane())
}

// SubgroupSize returns the number of lanes of a subgroup: a power of two up to 128, and 1 on a
// device without subgroups.
func (b *Builder) SubgroupSize() U32 { return b.builtIn(ir.BuiltInSubgroupSize) }

// SubgroupLane returns the number of the lane in its subgroup.
func (b *Builder) SubgroupLane() U32 { return b.builtIn(ir.BuiltInSubgroupLane) }

// Subgroup returns the number of the subgroup in its workgroup. Subgroup n has the lanes n·size to
// (n+1)·size-1.
func (b *Builder) Subgroup() U32 { return b.builtIn(ir.BuiltInSubgroup) }

// Barrier waits for all lanes of the workgroup; their writes to workgroup memory and buffers are
// then visible to each other. All lanes must reach it: a Barrier under a condition that may differ
// between lanes is an error.
func (b *Builder) Barrier() {
	if b.ready() {
		b.together()
		b.push(head(ir.Barrier, 0, 0), 0, 0, 0, 0)
	}
}
