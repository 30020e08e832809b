package interp

import "unsafe"

// A mask has a bit for each lane of a workgroup.
type mask []uint64

func (m mask) empty() bool {
	for _, w := range m {
		if w != 0 {
			return false
		}
	}
	return true
}

// or adds the lanes of n.
func (m mask) or(n mask) {
	for i := range m {
		m[i] |= n[i]
	}
}

// take moves the lanes of n into m.
func (m mask) take(n mask) {
	for i := range m {
		m[i] |= n[i]
		n[i] = 0
	}
}

// where sets m to the lanes for which the condition holds; the condition is a plane of ones and
// zeros with the given number of blocks.
func (m mask) where(cond unsafe.Pointer, blocks int) {
	for i := range m {
		var w uint64
		for shift := 0; shift < 64 && blocks > 0; shift += block {
			x := (*[block]uint32)(cond)
			w |= uint64(x[0]|x[1]<<1|x[2]<<2|x[3]<<3|x[4]<<4|x[5]<<5|x[6]<<6|x[7]<<7) << shift
			cond = unsafe.Add(cond, blockBytes)
			blocks--
		}
		m[i] = w
	}
}
