package emu

import "github.com/rayo-go/rayo/ptx"

// Counts are the counters of one instruction, or of a launch.
type Counts struct {
	Warps   int64 // instructions executed by warps
	Threads int64 // instructions executed by threads
	// Global memory. A request is an instruction of a warp; sectors have 32 bytes.
	LoadRequests, StoreRequests int64
	LoadSectors, StoreSectors   int64
	LoadBytes, StoreBytes       int64 // bytes that threads requested
	// Shared memory. Conflicts counts the passes in addition to the minimum for the bytes.
	SharedRequests, SharedPasses, Conflicts int64
	Atomics                                 int64 // atomic operations of threads
	Barriers                                int64 // barriers at which warps waited
}

func (c *Counts) add(d *Counts) {
	c.Warps += d.Warps
	c.Threads += d.Threads
	c.LoadRequests += d.LoadRequests
	c.StoreRequests += d.StoreRequests
	c.LoadSectors += d.LoadSectors
	c.StoreSectors += d.StoreSectors
	c.LoadBytes += d.LoadBytes
	c.StoreBytes += d.StoreBytes
	c.SharedRequests += d.SharedRequests
	c.SharedPasses += d.SharedPasses
	c.Conflicts += d.Conflicts
	c.Atomics += d.Atomics
	c.Barriers += d.Barriers
}

// Stats has the statistics of a launch.
type Stats struct {
	Counts
	k  *Kernel
	at []Counts
}

// At has the statistics of one instruction.
type At struct {
	Pos  ptx.Position
	Line int // line of the text
	Text string
	Counts
}

// Instructions returns the counts of each instruction, in the order of the text.
func (s *Stats) Instructions() []At {
	var all []At
	for i := range s.at {
		line := s.k.code[i].line
		all = append(all, At{s.k.module.at(line), line, s.k.module.text(line), s.at[i]})
	}
	return all
}

// distinct counts the different values among n values, which are often sorted.
type distinct struct {
	v [128]uint64
	n int
}

func (d *distinct) add(x uint64) {
	for i := d.n - 1; i >= 0; i-- {
		if d.v[i] == x {
			return
		}
	}
	if d.n < len(d.v) {
		d.v[d.n] = x
		d.n++
	}
}

// passes returns the number of passes of an access to shared memory, in which each lane of mask
// accesses the given number of bytes. A pass serves one word of each of 32 banks.
func passes(addr *[32]uint64, mask uint32, bytes int) (n, least int) {
	group := 32
	if bytes == 8 {
		group = 16
	} else if bytes == 16 {
		group = 8
	}
	words := max(1, bytes/4)
	for first := 0; first < 32; first += group {
		lanes := mask >> first & uint32(1<<group-1)
		if lanes == 0 {
			continue
		}
		least++
		var bank [32]uint64 // the first word of each bank, plus 1
		var more distinct   // words beyond the first of their bank
		var count [32]int8
		most := int8(1)
		for l := first; lanes != 0; l, lanes = l+1, lanes>>1 {
			if lanes&1 == 0 {
				continue
			}
			for i := range words {
				w := addr[l]>>2 + uint64(i)
				b := w & 31
				switch bank[b] {
				case 0:
					bank[b], count[b] = w+1, 1
				case w + 1:
				default:
					if had := more.n; true {
						if more.add(w); more.n > had {
							count[b]++
							most = max(most, count[b])
						}
					}
				}
			}
		}
		n += int(most)
	}
	return n, least
}
