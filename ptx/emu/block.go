package emu

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// barrier is one of the 16 barriers of a block.
type barrier struct {
	arrived int // number of threads that have arrived
	want    int
	all     bool // the barrier is for all threads of the block
	known   known
	warps   []*warp // the warps that wait
	pc      int     // position of one of the arrivals
}

// block is a running block of threads.
type block struct {
	run       *launch
	at        [3]int
	number    uint32
	warps     []*warp
	live      int  // number of warps that have not returned
	slept     bool // a warp sleeps, so other blocks must run
	memory    []byte
	defined   bitmap
	shadow    shadow
	cluster   *cluster
	bars      [16]barrier
	mbars     map[uint32]*mbarrier
	inflight  bitmap // bytes that asynchronous copies will write
	flying    int    // number of bytes in inflight
	dirty     bitmap // bytes that the async proxy cannot see yet
	leaving   bitmap // bytes that copies of the async proxy will read
	departing int    // number of bytes in leaving
	products  []waited
	bulk      []*bulkCopy
	hit       *array // array of the last access
	rng       *rand.Rand
}

func newBlock(r *launch) *block {
	b := &block{run: r}
	n := r.sharedBytes
	b.memory, b.defined, b.shadow = make([]byte, n), newBitmap(n), newShadow(n)
	b.inflight, b.dirty, b.leaving = newBitmap(n), newBitmap(n), newBitmap(n)
	b.rng = rand.New(rand.NewPCG(r.m.config.Seed, 1))
	for i := range (r.threads + 31) / 32 {
		b.warps = append(b.warps, newWarp(b, i))
	}
	return b
}

// enter starts the block with the given number.
func (b *block) enter(number int, c *cluster) {
	b.cluster, c.blocks = c, append(c.blocks, b)
	b.number, b.at = uint32(number), b.run.blockAt(number)
	clear(b.defined)
	clear(b.inflight)
	clear(b.dirty)
	clear(b.leaving)
	b.departing, b.products = 0, b.products[:0]
	b.flying, b.mbars, b.bulk = 0, nil, nil
	for i := range b.bars {
		b.bars[i] = barrier{warps: b.bars[i].warps[:0]}
	}
	b.live = len(b.warps)
	for _, w := range b.warps {
		w.enter()
	}
}

// advance runs the warps for a while, and returns the number of executed steps.
func (b *block) advance(slice int) (steps int) {
	r := b.run
	limit := slice
	for steps < limit && b.live > 0 && !r.report.full() {
		select {
		case <-r.done:
			return steps
		default:
		}
		did := 0
		switch r.m.config.Schedule {
		case Shuffled:
			for range len(b.warps) {
				w := b.warps[b.rng.IntN(len(b.warps))]
				if w.state == running {
					did += w.run(1 + b.rng.IntN(64))
				}
			}
			if did == 0 {
				for _, w := range b.warps {
					if w.state == running {
						did += w.run(1)
						break
					}
				}
			}
		default:
			for i := range b.warps {
				w := b.warps[i]
				if r.m.config.Schedule == Descending {
					w = b.warps[len(b.warps)-1-i]
				}
				if w.state == running {
					did += w.run(min(1<<12, max(limit-steps-did, 1)))
					if r.report.full() {
						break
					}
				}
			}
		}
		steps += did
		if b.slept {
			return steps
		}
		if did == 0 && !b.deliver() {
			if !b.waitsForCluster() { // with other warps that can run
				b.stuck()
			}
			return steps
		}
	}
	return steps
}

// stuck reports a deadlock: no warp of the block can continue.
func (b *block) stuck() {
	for _, w := range b.warps {
		if w.state != waiting {
			continue
		}
		if w.barrier == fellowsBarrier {
			w.stop(Deadlock, w.pc, 0, "the warp waits for products that other warps of its group of four have not started")
			return
		}
		if w.barrier == clusterBarrier {
			w.stop(Deadlock, w.pc, lowest(w.mask), "waits at the barrier of the cluster, which other threads do not reach")
			return
		}
		if w.barrier < 0 {
			m := b.mbars[w.mbarrier]
			if m == nil {
				w.stop(Deadlock, w.pc, lowest(w.mask), "waits for an mbarrier that was invalidated")
				return
			}
			w.stop(Deadlock, w.pc, lowest(w.mask), fmt.Sprintf("waits for phase %d of an mbarrier, which still expects %d arrivals and %d bytes", w.parity, m.pending, m.bytes))
			return
		}
		bar := &b.bars[w.barrier]
		if bar.all && b.returned() {
			w.stop(DivergentBarrier, bar.pc, lowest(w.mask), "other threads returned without reaching this barrier")
		} else {
			w.stop(Deadlock, bar.pc, lowest(w.mask), fmt.Sprintf("waits at barrier %d, which %d of %d threads have reached", w.barrier, bar.arrived, bar.want))
		}
		return
	}
}

// returned reports whether a thread of the block has returned.
func (b *block) returned() bool {
	for _, w := range b.warps {
		if w.live != w.exists {
			return true
		}
	}
	return false
}

// arrive executes a barrier for a warp. want is the number of threads that it waits for, 0 for all.
// It returns false if the warp has to wait.
func (b *block) arrive(w *warp, pc, id, want int, wait bool) bool {
	bar := &b.bars[id]
	all := want == 0
	if all {
		want = 32 * len(b.warps)
	}
	if bar.arrived > 0 && bar.want != want {
		w.stop(DivergentBarrier, pc, lowest(w.mask), fmt.Sprintf("barrier %d expects %d threads here, but %d where other threads arrived", id, want, bar.want))
		return false
	}
	bar.want, bar.all, bar.pc = want, bar.all || all, pc
	bar.arrived += 32
	w.publish(&bar.known)
	w.clock.synced = w.clock.now
	w.tick()
	b.run.counts[pc].Barriers++
	if wait {
		w.state, w.barrier = waiting, id
		bar.warps = append(bar.warps, w)
	}
	if bar.arrived < want {
		return true
	}
	if bar.arrived > want {
		w.stop(DivergentBarrier, pc, lowest(w.mask), fmt.Sprintf("%d threads reached barrier %d, which expects %d", bar.arrived, id, want))
		return false
	}
	if all && b.returned() {
		w.stop(DivergentBarrier, pc, lowest(w.mask), "other threads returned without reaching this barrier")
		return false
	}
	holds, threads := 0, 0
	for _, o := range bar.warps {
		holds, threads = holds+bits.OnesCount32(o.counted), threads+bits.OnesCount32(o.mask)
	}
	for _, o := range bar.warps {
		if o.reduction != nil {
			o.reduced(holds, threads)
		}
		o.learn(&bar.known)
		o.state, o.barrier = running, -1
	}
	*bar = barrier{warps: bar.warps[:0]}
	return true
}
