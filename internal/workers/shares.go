package workers

import "sync/atomic"

// A share is the parts of a job that one thread takes before it takes others':
// parts lo to hi and which end who takes, in one word. Whoever changes the word
// has claimed a part. The same word means the same in every job, so that a
// worker that comes late claims a part of the present job or none.
type share struct {
	word atomic.Uint64
	_    [56]byte
}

// ends says from which end of a share its thread takes parts, and from which
// the others do.
type ends uint64

const (
	inOrder    ends = 0          // all from the front
	fromFront  ends = othersBack // its own thread from the front
	fromBack   ends = ownBack    // its own thread from the back
	ownBack    ends = 1 << 62
	othersBack ends = 1 << 63
)

const (
	shareBits = 31
	maxShares = 1<<shareBits - 1
)

func (s *share) set(lo, hi int, e ends) {
	s.word.Store(uint64(e) | uint64(hi)<<shareBits | uint64(lo))
}

// claim takes a part of s; false: there is none.
func (s *share) claim(own bool) (part int, ok bool) {
	for {
		w := s.word.Load()
		lo, hi := w&maxShares, w>>shareBits&maxShares
		if lo >= hi {
			return 0, false
		}
		back := othersBack
		if own {
			back = ownBack
		}
		if ends(w)&back != 0 {
			if s.word.CompareAndSwap(w, w-1<<shareBits) {
				return int(hi - 1), true
			}
		} else if s.word.CompareAndSwap(w, w+1) {
			return int(lo), true
		}
	}
}

// claim takes a part for the thread of that number: of its own share, or else
// of the next that has one.
func (p *Pool) claim(number int) (part int, ok bool) {
	for i := range p.shares {
		k := number + i
		if k >= len(p.shares) {
			k -= len(p.shares)
		}
		if part, ok = p.shares[k].claim(i == 0); ok {
			return part, true
		}
	}
	return 0, false
}
