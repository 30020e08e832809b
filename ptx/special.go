package ptx

// Special is a number that the device gives to each thread.
type Special uint8

// The special registers: the index of the thread in its block, the size of the block, the index of
// the block in the grid, the size of the grid, and the registers of the warp and of the cluster.
// Cluster registers need sm_90.
const (
	TidX Special = iota
	TidY
	TidZ
	NtidX
	NtidY
	NtidZ
	CtaidX
	CtaidY
	CtaidZ
	NctaidX
	NctaidY
	NctaidZ
	LaneID     // place in the warp
	LaneMaskLt // a bit for each lane before this one
	LaneMaskLe // likewise with this one
	LaneMaskEq // a bit for this lane
	LaneMaskGe // a bit for each lane after this one and this one
	LaneMaskGt // a bit for each lane after this one

	SmID              // the multiprocessor, by chance
	NsmID             // above all numbers of multiprocessors
	DynamicSharedSize // bytes of shared memory that the launch asked for

	ClusterCtaidX // place of the block in its cluster
	ClusterCtaidY
	ClusterCtaidZ
	ClusterNctaidX // size of the cluster, in blocks
	ClusterNctaidY
	ClusterNctaidZ
	ClusterRank // number of the block in its cluster
	ClusterSize // blocks in the cluster
	ClusterIDX  // place of the cluster in the grid
	ClusterIDY
	ClusterIDZ
	NclusterIDX // size of the grid, in clusters
	NclusterIDY
	NclusterIDZ
	numSpecials
)

// specialNames holds what PTX calls the special numbers.
var specialNames = [numSpecials]string{
	"%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z",
	"%nctaid.x", "%nctaid.y", "%nctaid.z", "%laneid", "%lanemask_lt", "%lanemask_le", "%lanemask_eq", "%lanemask_ge", "%lanemask_gt",
	"%smid", "%nsmid", "%dynamic_smem_size",
	"%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z", "%cluster_nctaid.x", "%cluster_nctaid.y", "%cluster_nctaid.z",
	"%cluster_ctarank", "%cluster_nctarank", "%clusterid.x", "%clusterid.y", "%clusterid.z",
	"%nclusterid.x", "%nclusterid.y", "%nclusterid.z",
}

// Special returns a special number. It is read once, before everything else.
func (k *Kernel) Special(s Special) U32 {
	k = k.owner()
	if s >= numSpecials {
		k.fail("no special number %d", s)
		return U32{k: k, c: k.age}
	}
	if k.target == 0 {
		k.ready()
		return U32{k: k, c: k.age}
	}
	if k.specials[s] == 0 {
		if s >= ClusterCtaidX && !k.needs(specialNames[s], 78, SM90) {
			return U32{k: k, c: k.age}
		}
		k.specials[s] = k.fresh(classR)
		k.first(opSpecial, 0, k.specials[s], tagged(tagSpecial, int(s)))
	}
	return U32{k, k.specials[s], k.age}
}

// needs notes that something is used which not all versions and targets have.
func (k *Kernel) needs(what string, version uint8, t Target) bool {
	if !k.ready() {
		return false
	}
	if t > k.target {
		k.failure(ErrTarget, "%s needs %v, the module is for %v", what, t, k.m.target)
		return false
	}
	k.version = max(k.version, version)
	return true
}
