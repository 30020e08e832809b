package kernel

import "github.com/rayo-go/rayo/internal/ir"

// Subgroups are the lanes of a workgroup that a device runs together: a power of two of them, up to
// 128. A device without subgroup operations has subgroups of one lane, for which reductions,
// shuffles and broadcasts return their operand. A kernel must be correct for each size. To reduce
// over a workgroup, combine the results of the subgroups in workgroup memory. All lanes of the
// workgroup must reach a subgroup operation.

func subgroup[T Value](b *Builder, c ir.Code, flag uint8, x T, lane handle, imm uint32) T {
	b = b.owner()
	b.together()
	k := kindFor[T]()
	p := b.use(handle(x), k)
	var q ir.Value
	if c == ir.SubgroupShuffle {
		q = b.use(lane, kU32)
	}
	return T(handle{b: b, id: b.push(head(c, k, flag), p, q, 0, imm)})
}

// SubgroupAdd returns the sum of x over the subgroup, in each of its lanes. The order of a
// floating-point sum is fixed for a device.
func SubgroupAdd[T Scalar](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupOp, ir.ReduceAdd, x, handle{}, 0)
}

// SubgroupMin returns the least x of the subgroup.
func SubgroupMin[T Scalar](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupOp, ir.ReduceMin, x, handle{}, 0)
}

// SubgroupMax returns the greatest x of the subgroup.
func SubgroupMax[T Scalar](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupOp, ir.ReduceMax, x, handle{}, 0)
}

// SubgroupAnd returns the bitwise AND of x over the subgroup; for Bool, whether all x are true.
func SubgroupAnd[T I32 | U32 | Bool](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupOp, ir.ReduceAnd, x, handle{}, 0)
}

// SubgroupOr returns the bitwise OR of x over the subgroup; for Bool, whether any x is true.
func SubgroupOr[T I32 | U32 | Bool](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupOp, ir.ReduceOr, x, handle{}, 0)
}

// SubgroupScanAdd returns the sum of x over the earlier lanes of the subgroup, and 0 in the first
// lane.
func SubgroupScanAdd[T Scalar](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupScan, ir.ReduceAdd, x, handle{}, 0)
}

// SubgroupShuffle returns x of lane i of the subgroup. i must be less than the subgroup size.
func SubgroupShuffle[T Scalar](b *Builder, x T, i U32) T {
	return subgroup(b, ir.SubgroupShuffle, 0, x, handle(i), 0)
}

// SubgroupXor returns x of the subgroup's lane whose number is this lane's number XOR mask. mask is
// a power of two below the subgroup size. If the subgroup is not larger than mask, the value is
// undefined; in a subgroup of one lane it is x.
func SubgroupXor[T Scalar](b *Builder, x T, mask int) T {
	if mask < 1 || mask > 64 || mask&(mask-1) != 0 {
		return T(b.owner().fail("SubgroupXor by %d: it must be a power of two up to 64", mask))
	}
	return subgroup(b, ir.SubgroupXor, 0, x, handle{}, uint32(mask))
}

// SubgroupFirst returns x of the first lane of the subgroup.
func SubgroupFirst[T Scalar](b *Builder, x T) T {
	return subgroup(b, ir.SubgroupFirst, 0, x, handle{}, 0)
}
