package memory

// Caches are the data caches that one core sees, in bytes.
type Caches struct {
	L1, L2 int
	Last   int // the last level, often shared by many cores
}

var caches = sane(processorCaches().or(systemCaches()))

// ProcessorName returns what the processor says that it is called, "" where it does not.
func ProcessorName() string { return processorName() }

// CPUCaches returns the caches of this machine, with modest guesses for those
// that it does not tell.
func CPUCaches() Caches { return caches }

// LastLevelCache returns the size in bytes of the last cache before memory.
// A result much larger than this is better stored past the caches, as no
// reader will find it in one.
func LastLevelCache() int { return caches.Last }

// or returns c with what it lacks taken from d.
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

// sane replaces what virtual machines and other systems leave out: an
// unknown size is 0 or negative. A level is never smaller than the one before.
func sane(c Caches) Caches {
	c = c.or(Caches{32 << 10, 512 << 10, 8 << 20})
	c.L2 = max(c.L2, c.L1)
	c.Last = max(c.Last, c.L2)
	return c
}
