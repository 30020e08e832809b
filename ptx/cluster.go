package ptx

// MaxCluster is the number of blocks that a cluster can have on every device.
const MaxCluster = 8

// Cluster promises that blocks are launched in clusters of x·y·z blocks, at most 16. Not all
// devices support more than [MaxCluster]. It needs sm_90.
func (k *Kernel) Cluster(x, y, z int) {
	k = k.owner()
	if !k.needs("a cluster", 78, SM90) {
		return
	}
	if x < 1 || y < 1 || z < 1 || x > 16 || y > 16 || z > 16 || x*y*z > 16 {
		k.failure(ErrLimit, "a cluster of %d x %d x %d blocks is invalid: it must have 1 to 16 blocks", x, y, z)
		return
	}
	k.cluster = [3]uint32{uint32(x), uint32(y), uint32(z)}
}

// ClusterArrive arrives at the barrier of the cluster and releases this thread's earlier writes;
// [Kernel.ClusterWait] must follow. It needs sm_90.
func (k *Kernel) ClusterArrive() { k.together(opClusterArrive) }

// ClusterArriveRelaxed is [Kernel.ClusterArrive], but does not order memory accesses.
func (k *Kernel) ClusterArriveRelaxed() { k.together(opClusterArriveRelaxed) }

// ClusterWait waits for all threads of the cluster to have arrived.
func (k *Kernel) ClusterWait() { k.together(opClusterWait) }

// ClusterSync is [Kernel.Sync] for the cluster.
func (k *Kernel) ClusterSync() {
	k.ClusterArrive()
	k.ClusterWait()
}

// Remote points to elements in the shared memory of another block of the cluster.
type Remote[T Element] address

// MapShared returns the address of p in block rank of the cluster. That block must be running: see
// [Kernel.ClusterSync]. It needs sm_90.
func MapShared[T Element](p Shared[T], rank U32) Remote[T] {
	a := address(p)
	k := a.live()
	a.v = k.result(opMapSharedU32, a.v, k.use(handle(rank), kU32), 0).v
	a.how = newHow(a.how.kind(), inCluster, Cached)
	return Remote[T](a)
}

// At returns the address of element i, relative to p. A constant i costs no instruction.
func (p Remote[T]) At(i U32) Remote[T] { return Remote[T](address(p).at(handle(i))) }

// Offset returns the address of the element n elements after p, at no cost.
func (p Remote[T]) Offset(n int) Remote[T] { return Remote[T](address(p).offset(n)) }

// Load returns the element.
func (p Remote[T]) Load() T { return T(address(p).load1()) }

// Load4 returns four elements: see [Global.Load4].
func (p Remote[T]) Load4() [4]T {
	h := address(p).load(4)
	return [4]T{T(h), T(h.next(1)), T(h.next(2)), T(h.next(3))}
}

// Store writes the element.
func (p Remote[T]) Store(v T) { address(p).store1(handle(v)) }

// Store4 writes four elements: see [Global.Load4].
func (p Remote[T]) Store4(v [4]T) {
	if k := address(p).beginStore(4); k != nil {
		k.list(handle(v[0]), p.how.kind())
		k.list(handle(v[1]), p.how.kind())
		k.list(handle(v[2]), p.how.kind())
		k.list(handle(v[3]), p.how.kind())
		address(p).endStore(k, 4)
	}
}

// WaitDependencies waits until the earlier grids that the launch may overlap have finished and
// their writes are visible. It needs sm_90.
func (k *Kernel) WaitDependencies() { k.owner().put(opWaitDependencies, 0, 0, 0, 0, 0) }

// LaunchDependents allows the next grid to begin when all blocks have called it or ended. It needs
// sm_90.
func (k *Kernel) LaunchDependents() { k.owner().put(opLaunchDependents, 0, 0, 0, 0, 0) }
