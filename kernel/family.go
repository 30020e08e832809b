package kernel

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Family makes one kernel for each value of S that a caller requests. The value specialises the
// kernel, for example by the sizes of tiles. A Family is safe for concurrent use.
type Family[S comparable] struct{ family family }

// family is the part of a Family that does not depend on S, so that programs have its code only
// once.
type family struct {
	name string
	make func(s any) *Kernel
	// made is replaced and never changed, so that find needs no lock.
	made atomic.Pointer[map[any]*Kernel]
	mu   sync.Mutex
}

// maxFamily limits the kernels that a family keeps. When the family exceeds it, it drops all of
// them.
const maxFamily = 512

// NewFamily returns a family of kernels. build is as for [New], with the value s in addition.
func NewFamily[P any, S comparable](name string, build func(b *Builder, p *P, s S)) *Family[S] {
	f := &Family[S]{}
	f.family.name = name
	if build == nil {
		k := broken(name, "NewFamily with a nil function")
		f.family.make = func(any) *Kernel { return k }
		return f
	}
	f.family.make = func(s any) *Kernel {
		v, _ := s.(S) // if S is an interface, a nil interface is not an S
		return specialise(name, (*P)(nil), func(b *Builder) {
			p := new(P)
			b.params = unsafe.Pointer(p)
			build(b, p, v)
		})
	}
	return f
}

// Of returns the kernel for s. Later calls with an equal s return the same kernel. An s that Go
// cannot compare, for example a slice in an interface, gives a kernel with an error.
func (f *Family[S]) Of(s S) *Kernel {
	if f == nil {
		return broken("", "a nil family")
	}
	if k := f.family.find(s); k != nil {
		return k
	}
	return f.family.add(s)
}

// find returns the kernel that was made for s, or nil. It does not retain s, so that s needs no
// allocation.
func (f *family) find(s any) (k *Kernel) {
	defer f.uncomparable(&k)
	if m := f.made.Load(); m != nil {
		k = (*m)[s]
	}
	return k
}

// uncomparable must be deferred. If s cannot be compared, it sets *k to a kernel with an error.
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
	m[s] = nil // panics if s cannot be compared
	k = f.make(s)
	m[s] = k
	f.made.Store(&m)
	return k
}
