package emu

// cluster is a set of blocks that run at the same time, wait for each other, and access each
// other's shared memory. A block without a cluster is a cluster of one block.
type cluster struct {
	blocks  []*block
	phase   uint32 // number of completed phases of the barrier
	arrived int    // number of warps that have arrived in this phase
	telling epochs // accesses before the arrivals of this phase
	told    epochs // accesses before the arrivals of the previous phase
}

// An address in shared memory from mapa has the number of the block, counted from 1, above these
// bits.
const (
	rankShift = 24
	placeMask = 1<<rankShift - 1
)

// clusterBarrier is the barrier number of warps that wait for the cluster.
const clusterBarrier = len(block{}.bars)

// size returns the number of blocks of a cluster of the launch.
func (r *launch) size() int { return max(r.k.cluster, 1) }

// rank returns the number of the block in its cluster. Clusters lie along x, and their blocks have
// consecutive numbers.
func (b *block) rank() int { return int(b.number) % b.run.size() }

// arriveCluster executes the barrier of the cluster for a warp.
func (w *warp) arriveCluster(release bool) bool {
	c := w.b.cluster
	if w.came {
		w.stop(BadOperand, w.pc, lowest(w.mask), "arrived twice at the barrier of the cluster without a wait in between")
		return false
	}
	w.came, w.phase = true, c.phase+1
	if release {
		if c.telling == nil {
			c.telling = epochs{}
		}
		for i, v := range w.clock.warps {
			if v > 0 {
				id := w.b.number<<5 | uint32(i)
				c.telling[id] = max(c.telling[id], v)
			}
		}
		c.telling.join(w.clock.remote)
		w.clock.synced = w.clock.now
		w.tick()
	}
	w.b.run.counts[w.pc].Barriers++
	c.arrived++
	c.complete()
	return true
}

// complete ends a phase if all warps that have not returned have arrived.
func (c *cluster) complete() {
	live := 0
	for _, b := range c.blocks {
		live += b.live
	}
	if c.arrived == 0 || c.arrived < live {
		return
	}
	c.phase, c.arrived = c.phase+1, 0
	c.told, c.telling = c.telling, nil
	for _, b := range c.blocks {
		for _, w := range b.warps {
			if w.state == waiting && w.barrier == clusterBarrier && w.phase == c.phase {
				w.state, w.barrier = running, -1
				w.learnRemote(c.told)
			}
		}
	}
}

// waitCluster makes a warp wait until all warps of the cluster have arrived.
func (w *warp) waitCluster() bool {
	c := w.b.cluster
	if !w.came {
		w.stop(BadOperand, w.pc, lowest(w.mask), "waits for the cluster without having arrived at its barrier")
		return false
	}
	w.came = false
	if w.phase <= c.phase {
		w.learnRemote(c.told)
		return true
	}
	w.state, w.barrier = waiting, clusterBarrier
	return true
}

// waitsForCluster reports whether a warp waits for other blocks.
func (b *block) waitsForCluster() bool {
	for _, w := range b.warps {
		if w.state == waiting && w.barrier == clusterBarrier {
			return true
		}
	}
	return false
}

// peer returns the block whose shared memory contains an address of the cluster. It returns nil
// after a finding.
func (w *warp) peer(pc, lane int, addr uint64) *block {
	rank := int(uint32(addr) >> rankShift)
	if rank == 0 {
		return w.b
	}
	c := w.b.cluster
	if rank > len(c.blocks) {
		w.find(OutOfBounds, pc, lane, "the address belongs to no block of the cluster", nil)
		return nil
	}
	b := c.blocks[rank-1]
	switch {
	case b == w.b:
	case c.phase == 0:
		w.find(Race, pc, lane, "the other block may not have started: wait at the barrier of the cluster first", nil)
		return nil
	case b.cluster != c || b.live == 0:
		w.find(Race, pc, lane, "the other block has ended", nil)
		return nil
	}
	return b
}

// mapa computes the address of shared memory in another block of the cluster.
func (c *compiler) mapa(in *inst) {
	if c.st.name != "mapa.shared::cluster.u32" {
		c.fail(unsupported)
	}
	args := c.args(3, 3)
	in.kind, in.d = kindRun, c.dest(&args[0], 4)
	in.a, in.b = c.value(&args[1], 4), c.value(&args[2], 4)
	in.run = func(w *warp, in *inst, mask uint32) bool {
		w.need(in, in.a, mask, "the address was not computed in this thread")
		w.need(in, in.b, mask, "the number of the block was not computed in this thread")
		size := w.b.run.size()
		for m := mask; m != 0; m &= m - 1 {
			i := lowest(m)
			rank, place := w.regs[in.b][i], w.regs[in.a][i]
			if rank >= uint64(size) {
				w.stop(BadOperand, w.pcOf(in), i, "the cluster has no block of this number")
				return false
			}
			if size > 1 {
				place = place&placeMask | (rank+1)<<rankShift
			}
			w.set(in.d, i, place)
		}
		return true
	}
}
