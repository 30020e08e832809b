package tokenizer

import "math/bits"

// pairTable maps a pair of symbols to the priority of their merge and to the merged symbol. It is a
// hash table with open addressing: encoding an uncached word looks up each of its pairs, and most
// of the cost of a lookup is one memory access.
type pairTable struct {
	slots []pairSlot // a power of two; a quarter to a half are in use
	shift int
}

type pairSlot struct {
	left, right int32
	prio        uint32 // noMerge if the slot is free
	id          int32
}

// newPairTable returns a table with room for n pairs.
func newPairTable(n int) *pairTable {
	logSize := bits.Len(uint(2 * n))
	t := &pairTable{slots: make([]pairSlot, 1<<logSize), shift: 64 - logSize}
	for i := range t.slots {
		t.slots[i].prio = noMerge
	}
	return t
}

// find returns the slot of a pair, or the free slot for it.
func (t *pairTable) find(left, right int32) *pairSlot {
	h := (uint64(uint32(left))<<32 | uint64(uint32(right))) * 0x9E3779B97F4A7C15
	for i := int(h >> t.shift); ; i = (i + 1) & (len(t.slots) - 1) {
		s := &t.slots[i]
		if s.prio == noMerge || s.left == left && s.right == right {
			return s
		}
	}
}

// add adds a pair unless the table contains it.
func (t *pairTable) add(left, right int32, prio uint32, id int32) {
	if s := t.find(left, right); s.prio == noMerge {
		*s = pairSlot{left, right, prio, id}
	}
}
