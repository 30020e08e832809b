package cpu

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
)

// A ledger orders submissions that share device memory. A submission enters
// with a ticket that says what it reads and writes; it may run when nobody
// before it in the order of entering still runs or waits with a use that
// excludes its own: any number may read an array at once, or one may write it.
//
// A ticket is admitted for all its arrays at once, and a submission that runs
// never waits for another, so nobody can wait in a circle.
type ledger struct {
	mu      sync.Mutex
	stamp   uint64    // of the present scan: see access
	waiting []*ticket // in the order of entering
}

// access is the part of an array that the ledger keeps, under its mu.
type access struct {
	readers int  // admitted tickets that read
	writing bool // an admitted ticket writes

	waitingReaders, waitingWriters int

	// In the scan with this stamp: at is the place in ticket.uses, and
	// wanted and wantedWrite say what tickets before want.
	stamp       uint64
	at          int
	wantedWrite bool
}

// A ticket is one submission's entry.
type ticket struct {
	uses     []use
	atOnce   bool          // admitted when it entered
	admitted bool          // under ledger.mu
	ready    chan struct{} // gets a token if it is admitted later
}

type use struct {
	a     *array
	write bool
}

var tickets = sync.Pool{New: func() any { return &ticket{ready: make(chan struct{}, 1)} }}

// newTicket returns a ticket for the device memory among ext, or nil if there
// is none.
func newTicket(ext []driver.Binding, written []bool) *ticket {
	var t *ticket
	for i := range ext {
		if ext[i].Mem == nil {
			continue
		}
		if t == nil {
			t = tickets.Get().(*ticket)
		}
		t.uses = append(t.uses, use{ext[i].Mem.(*array), written[i]})
	}
	return t
}

// enter takes a place in the order. It does not wait.
func (l *ledger) enter(t *ticket) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.merge(l)
	t.admitted = true
	for i := range t.uses {
		a := t.uses[i].a
		if a.writing || a.waitingWriters > 0 || t.uses[i].write && (a.readers > 0 || a.waitingReaders > 0) {
			t.admitted = false
			break
		}
	}
	t.atOnce = t.admitted
	if t.admitted {
		t.hold(1)
		return
	}
	t.want(1)
	l.waiting = append(l.waiting, t)
}

// await returns when t is admitted, or gives its place up and returns the error
// of ctx. Afterwards t is either held, and must leave, or gone.
func (l *ledger) await(ctx context.Context, t *ticket) error {
	if t.atOnce {
		return nil
	}
	select {
	case <-t.ready:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	if t.admitted {
		<-t.ready
		t.hold(-1)
	} else {
		t.want(-1)
		for i, w := range l.waiting {
			if w == t {
				l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
				break
			}
		}
	}
	l.admit()
	l.mu.Unlock()
	t.recycle()
	return ctx.Err()
}

// leave ends the use of an admitted ticket.
func (l *ledger) leave(t *ticket) {
	l.mu.Lock()
	t.hold(-1)
	if len(l.waiting) > 0 {
		l.admit()
	}
	l.mu.Unlock()
	t.recycle()
}

// admit lets in whoever can run now, in the order of entering.
func (l *ledger) admit() {
	l.stamp++
	kept := l.waiting[:0]
	for _, t := range l.waiting {
		free := true
		for i := range t.uses {
			a, write := t.uses[i].a, t.uses[i].write
			before := a.stamp == l.stamp
			if a.writing || before && a.wantedWrite || write && (a.readers > 0 || before) {
				free = false
				break
			}
		}
		if free {
			t.want(-1)
			t.hold(1)
			t.admitted = true
			t.ready <- struct{}{}
			continue
		}
		kept = append(kept, t)
		for i := range t.uses {
			a := t.uses[i].a
			if a.stamp != l.stamp {
				a.stamp, a.wantedWrite = l.stamp, false
			}
			a.wantedWrite = a.wantedWrite || t.uses[i].write
		}
	}
	clear(l.waiting[len(kept):])
	l.waiting = kept
}

// merge joins the uses of one array into one.
func (t *ticket) merge(l *ledger) {
	l.stamp++
	n := 0
	for _, u := range t.uses {
		if u.a.stamp == l.stamp {
			t.uses[u.a.at].write = t.uses[u.a.at].write || u.write
			continue
		}
		u.a.stamp, u.a.at = l.stamp, n
		t.uses[n] = u
		n++
	}
	t.uses = t.uses[:n]
}

func (t *ticket) hold(by int) {
	for i := range t.uses {
		if t.uses[i].write {
			t.uses[i].a.writing = by > 0
		} else {
			t.uses[i].a.readers += by
		}
	}
}

func (t *ticket) want(by int) {
	for i := range t.uses {
		if t.uses[i].write {
			t.uses[i].a.waitingWriters += by
		} else {
			t.uses[i].a.waitingReaders += by
		}
	}
}

func (t *ticket) recycle() {
	clear(t.uses)
	t.uses = t.uses[:0]
	t.admitted = false
	tickets.Put(t)
}
