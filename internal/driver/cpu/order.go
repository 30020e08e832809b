package cpu

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/internal/driver"
)

// An accessTracker orders submissions that share device memory. A submission enters
// with an entry that lists the arrays that it reads and writes. It may run when no
// earlier entry still runs or waits with a conflicting access: any number of submissions
// may read an array at the same time, or one may write it.
//
// A queueEntry is admitted for all its arrays at once, and a running submission never
// waits for another, so deadlock is impossible.
type accessTracker struct {
	mu      sync.Mutex
	stamp   uint64        // number of the current scan: see access
	waiting []*queueEntry // in the order of entering
}

// access is the state of an array in the tracker, under accessTracker.mu.
type access struct {
	readers int  // admitted entries that read
	writing bool // an admitted entry writes

	waitingReaders, waitingWriters int

	// Valid in the scan with this stamp: at is the index in queueEntry.uses; wanted and wantedWrite
	// say whether earlier entries want to read or write the array.
	stamp       uint64
	at          int
	wantedWrite bool
}

// A queueEntry is one submission's entry.
type queueEntry struct {
	uses     []use
	atOnce   bool          // admitted when it entered
	admitted bool          // under accessTracker.mu
	ready    chan struct{} // receives a token when the entry is admitted later
}

type use struct {
	a     *array
	write bool
}

var queueEntries = sync.Pool{New: func() any { return &queueEntry{ready: make(chan struct{}, 1)} }}

// newQueueEntry returns an entry for the device memory in ext, or nil if there is none.
func newQueueEntry(ext []driver.Binding, written []bool) *queueEntry {
	var t *queueEntry
	for i := range ext {
		if ext[i].Mem == nil {
			continue
		}
		if t == nil {
			t = queueEntries.Get().(*queueEntry)
		}
		t.uses = append(t.uses, use{ext[i].Mem.(*array), written[i]})
	}
	return t
}

// enter adds t to the order. It does not wait.
func (l *accessTracker) enter(t *queueEntry) {
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

// await waits until t is admitted; then the caller must call leave. If ctx ends first, it removes t
// from the order and returns the error of ctx.
func (l *accessTracker) await(ctx context.Context, t *queueEntry) error {
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

// leave ends the use of an admitted entry.
func (l *accessTracker) leave(t *queueEntry) {
	l.mu.Lock()
	t.hold(-1)
	if len(l.waiting) > 0 {
		l.admit()
	}
	l.mu.Unlock()
	t.recycle()
}

// admit admits the entries that can run now, in the order in which they entered.
func (l *accessTracker) admit() {
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

// merge merges multiple uses of an array into one.
func (t *queueEntry) merge(l *accessTracker) {
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

func (t *queueEntry) hold(by int) {
	for i := range t.uses {
		if t.uses[i].write {
			t.uses[i].a.writing = by > 0
		} else {
			t.uses[i].a.readers += by
		}
	}
}

func (t *queueEntry) want(by int) {
	for i := range t.uses {
		if t.uses[i].write {
			t.uses[i].a.waitingWriters += by
		} else {
			t.uses[i].a.waitingReaders += by
		}
	}
}

func (t *queueEntry) recycle() {
	clear(t.uses)
	t.uses = t.uses[:0]
	t.admitted = false
	queueEntries.Put(t)
}
