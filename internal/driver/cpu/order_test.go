package cpu

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
)

// modelled is an entry of the model. uses says how it uses each array: 1 reads, 2 writes.
type modelled struct {
	t    *queueEntry
	uses map[int]int
	runs bool
}

// excludes reports whether two entries may not run at the same time.
func (m *modelled) excludes(o *modelled) bool {
	for a, use := range m.uses {
		if other, ok := o.uses[a]; ok && (use == 2 || other == 2) {
			return true
		}
	}
	return false
}

// TestAccessTrackerKeepsOrder compares the admitted entries with a model: an entry runs if no
// earlier entry that has not left excludes it.
func TestAccessTrackerKeepsOrder(t *testing.T) {
	r := testutil.Rand(t)
	for range 300 {
		var l accessTracker
		arrays := make([]*array, 1+r.IntN(4))
		for i := range arrays {
			arrays[i] = new(array)
		}
		var list []*modelled // in the order of entering
		for range 60 {
			if r.IntN(2) == 0 && len(list) < 12 {
				m := &modelled{&queueEntry{ready: make(chan struct{}, 1)}, map[int]int{}, false}
				for range 1 + r.IntN(3) {
					a, write := r.IntN(len(arrays)), r.IntN(3) == 0
					m.t.uses = append(m.t.uses, use{arrays[a], write})
					m.uses[a] = max(m.uses[a], 1)
					if write {
						m.uses[a] = 2
					}
				}
				l.enter(m.t)
				m.runs = m.t.atOnce
				list = append(list, m)
			} else if i := slices.IndexFunc(list, func(m *modelled) bool { return m.runs }); i >= 0 {
				for k := range list { // any of the running entries
					if list[k].runs && r.IntN(3) == 0 {
						i = k
					}
				}
				l.mu.Lock() // like leave, but without recycling the entry, which the model still reads
				list[i].t.hold(-1)
				l.admit()
				l.mu.Unlock()
				list = slices.Delete(list, i, i+1)
			}
			for i, m := range list {
				select {
				case <-m.t.ready:
					m.runs = true
				default:
				}
				before := slices.ContainsFunc(list[:i], m.excludes)
				if m.runs == before {
					t.Fatalf("ticket %d of %d runs: %v, which one before it forbids: %v", i, len(list), m.runs, before)
				}
			}
		}
	}
}

// TestReaderWaitsForTheWriterBeforeIt checks that a second reader does not overtake a waiting
// writer when an unrelated entry leaves while the first reader runs.
func TestReaderWaitsForTheWriterBeforeIt(t *testing.T) {
	var l accessTracker
	x, other := new(array), new(array)
	enter := func(a *array, write bool) *queueEntry {
		k := &queueEntry{ready: make(chan struct{}, 1), uses: []use{{a, write}}}
		l.enter(k)
		return k
	}
	first, beside := enter(x, false), enter(other, true)
	writer, second := enter(x, true), enter(x, false)
	l.leave(beside)
	if writer.admitted || second.admitted {
		t.Fatalf("admitted while a reader runs: the writer %v, the reader after it %v", writer.admitted, second.admitted)
	}
	l.leave(first)
	if !writer.admitted || second.admitted {
		t.Fatalf("admitted after the reader left: the writer %v, the reader after it %v", writer.admitted, second.admitted)
	}
}
