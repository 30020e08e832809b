package kernel

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"
)

// Family makes one kernel for each value of S that is asked for: the literals
// that it is specialised by, such as the sizes of tiles. It is safe for
// concurrent use.
type Family[S comparable] struct{ family family }

// family is a Family of any S: one body for all, which programs would otherwise have once for each S.
type family struct {
	name string
	make func(s any) *Kernel
	// made is replaced, never changed, so that looking up takes no lock.
	made atomic.Pointer[map[any]*Kernel]
	mu   sync.Mutex
}

// maxFamily bounds the kernels that a family keeps; beyond it, it begins anew.
const maxFamily = 512

// NewFamily returns a family: build is as for [New], for one s.
func NewFamily[P any, S comparable](name string, build func(b *Builder, p *P, s S)) *Family[S] {
	f := &Family[S]{}
	f.family.name = name
	if build == nil {
		k := broken(name, "NewFamily with a nil function")
		f.family.make = func(any) *Kernel { return k }
		return f
	}
	f.family.make = func(s any) *Kernel {
		v, _ := s.(S) // a nil interface is no S where S is an interface
		return specialise(name, (*P)(nil), func(b *Builder, p unsafe.Pointer) { build(b, (*P)(p), v) })
	}
	return f
}

// Of returns the kernel for s. Asking again gives the same kernel. One for an s
// that Go cannot compare, a slice in an interface say, is a mistake.
func (f *Family[S]) Of(s S) *Kernel {
	if f == nil {
		return broken("", "a nil family")
	}
	if k := f.family.find(s); k != nil {
		return k
	}
	return f.family.add(s)
}

// find returns the kernel that was made for s, or nil. It does not keep s, which therefore takes no memory.
func (f *family) find(s any) (k *Kernel) {
	defer f.uncomparable(&k)
	if m := f.made.Load(); m != nil {
		k = (*m)[s]
	}
	return k
}

// uncomparable, deferred, returns a kernel with a mistake in k for an s that Go cannot compare.
func (f *family) uncomparable(k **Kernel) {
	if r := recover(); r != nil {
		*k = broken(f.name, fmt.Sprintf("no kernel: %v", r))
	}
}

func (f *family) add(s any) (k *Kernel) {
	if f.make == nil {
		return broken(f.name, "a family that NewFamily did not make")
	}
	defer f.uncomparable(&k)
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[any]*Kernel{}
	if old := f.made.Load(); old != nil {
		if k := (*old)[s]; k != nil {
			return k
		}
		if len(*old) < maxFamily {
			for s, k := range *old {
				m[s] = k
			}
		}
	}
	m[s] = nil // an s that cannot be compared ends here
	k = f.make(s)
	m[s] = k
	f.made.Store(&m)
	return k
}
