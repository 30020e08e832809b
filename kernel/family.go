package kernel

import (
	"fmt"
	"sync"
	"sync/atomic"
)

// Family makes one kernel for each value of S that is asked for: the literals
// that it is specialised by, such as the sizes of tiles. It is safe for
// concurrent use.
type Family[S comparable] struct {
	name string
	make func(s S) *Kernel
	// made is replaced, never changed, so that looking up takes no lock.
	made atomic.Pointer[map[S]*Kernel]
	mu   sync.Mutex
}

// maxFamily bounds the kernels that a family keeps; beyond it, it begins anew.
const maxFamily = 512

// NewFamily returns a family: build is as for [New], for one s.
func NewFamily[P any, S comparable](name string, build func(b *Builder, p *P, s S)) *Family[S] {
	if build == nil {
		k := broken(name, "NewFamily with a nil function")
		return &Family[S]{name: name, make: func(S) *Kernel { return k }}
	}
	return &Family[S]{name: name, make: func(s S) *Kernel {
		return specialise(name, func(b *Builder, p *P) { build(b, p, s) })
	}}
}

// Of returns the kernel for s. Asking again gives the same kernel. One for an s
// that Go cannot compare, a slice in an interface say, is a mistake.
func (f *Family[S]) Of(s S) (k *Kernel) {
	if f == nil {
		return broken("", "a nil family")
	}
	defer func() {
		if r := recover(); r != nil {
			k = broken(f.name, fmt.Sprintf("no kernel for %T: %v", s, r))
		}
	}()
	if m := f.made.Load(); m != nil {
		if k, ok := (*m)[s]; ok {
			return k
		}
	}
	return f.add(s)
}

func (f *Family[S]) add(s S) *Kernel {
	if f.make == nil {
		return broken(f.name, "a family that NewFamily did not make")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	m := map[S]*Kernel{}
	if old := f.made.Load(); old != nil {
		if k, ok := (*old)[s]; ok {
			return k
		}
		if len(*old) < maxFamily {
			for s, k := range *old {
				m[s] = k
			}
		}
	}
	k := f.make(s)
	m[s] = k
	f.made.Store(&m)
	return k
}
