package workers

import "sync/atomic"

// A share holds the parts of a job that one thread takes before it takes parts of other shares. One
// word holds the range lo to hi, and the end from which each thread takes parts. The thread that
// changes the word has claimed a part. A word has the same meaning in every job, so a late worker
// claims a part of the current job or none.
type share struct {
	word atomic.Uint64
	_    [56]byte
}

// ends says from which end of a share its own thread takes parts, and from which end other threads
// take them.
type ends uint64

const (
	inOrder    ends = 0          // all threads take parts from the front
	fromFront  ends = othersBack // its own thread takes parts from the front, others from the back
	fromBack   ends = ownBack    // its own thread takes parts from the back, others from the front
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

// claim takes a part of s. It returns false if there is none.
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

// claim takes a part for the thread with the given number: from its own share, or else from the next
// share that has a part.
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
