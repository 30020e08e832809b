package memory

// Caches has the sizes in bytes of the data caches that one core uses.
type Caches struct {
	L1, L2 int
	Last   int // the last level, often shared by many cores
}

var caches = sane(processorCaches().or(systemCaches()))

// ProcessorName returns the name that the processor reports, or "" if it reports none.
func ProcessorName() string { return processorName() }

// CPUCaches returns the caches of this machine. Sizes that the machine does not report
// are conservative guesses.
func CPUCaches() Caches { return caches }

// LastLevelCache returns the size in bytes of the last cache before memory.
// Results much larger than this are best written with non-temporal stores, because
// later reads will not find them in a cache.
func LastLevelCache() int { return caches.Last }

// or returns c with unknown sizes replaced by those of d.
func (c Caches) or(d Caches) Caches {
	if c.L1 <= 0 {
		c.L1 = d.L1
	}
	if c.L2 <= 0 {
		c.L2 = d.L2
	}
	if c.Last <= 0 {
		c.Last = d.Last
	}
	return c
}

// sane replaces sizes that virtual machines and other systems do not report, which are 0
// or negative. It also makes each level at least as large as the one before.
func sane(c Caches) Caches {
	c = c.or(Caches{32 << 10, 512 << 10, 8 << 20})
	c.L2 = max(c.L2, c.L1)
	c.Last = max(c.Last, c.L2)
	return c
}
