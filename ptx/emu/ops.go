package emu

import (
	"sync"
)

// plane is one register of all lanes of a warp. Registers of fewer than 64 bits
// have zeros above.
type plane [32]uint64

// opFunc computes a register of all lanes. Planes may be the same.
type opFunc func(d, a, b, c *plane)

// testFunc computes a predicate: a bit for each lane.
type testFunc func(a, b *plane) uint32

// operation is an instruction that computes a result from operands, lane by lane.
type operation struct {
	bytes [4]uint8 // of result and operands, 0 if absent; 0xff for a predicate
	op    opFunc
	test  testFunc // instead of op, for a result that is a predicate
}

const predicate = 0xff

// operations returns all operations by name.
var operations = sync.OnceValue(func() map[string]operation {
	t := table{}
	t.integers()
	t.bits()
	t.floats()
	t.halves()
	t.tests()
	t.conversions()
	t.spaces()
	return t
})

type table map[string]operation

// add adds an operation; sizes are the bytes of result and operands.
func (t table) add(name string, op opFunc, sizes ...uint8) {
	o := operation{op: op}
	copy(o.bytes[:], sizes)
	t[name] = o
}

func (t table) test(name string, f testFunc, size uint8) {
	t[name] = operation{bytes: [4]uint8{predicate, size, size}, test: f}
}

// The following functions make a loop over the lanes of a function of numbers.

type word interface{ ~uint16 | ~uint32 | ~uint64 }

func lanes1[R, A word](f func(A) R) opFunc {
	return func(d, a, _, _ *plane) {
		for i := range d {
			d[i] = uint64(f(A(a[i])))
		}
	}
}

func lanes2[R, A, B word](f func(A, B) R) opFunc {
	return func(d, a, b, _ *plane) {
		for i := range d {
			d[i] = uint64(f(A(a[i]), B(b[i])))
		}
	}
}

func lanes3[R, A, B, C word](f func(A, B, C) R) opFunc {
	return func(d, a, b, c *plane) {
		for i := range d {
			d[i] = uint64(f(A(a[i]), B(b[i]), C(c[i])))
		}
	}
}

func lanesTest[A word](f func(x, y A) bool) testFunc {
	return func(a, b *plane) (m uint32) {
		for i := range a {
			if f(A(a[i]), A(b[i])) {
				m |= 1 << i
			}
		}
		return m
	}
}
