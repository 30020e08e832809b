//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

// #include "native.h"
import "C"

import (
	"slices"
	"sync"
	"unsafe"
)

// The library encodes commands anew for each submission, a microsecond and more for
// each dispatch. Whoever runs a plan again and again waits for the device meanwhile, so
// the commands of a submission that has come again are encoded for the next time while
// this time's are under way.

// ahead is the commands of the submissions of late, and of some of them a command buffer
// that is ready.
type ahead struct {
	mu   sync.Mutex
	kept [8]*again // the one that came last in front
}

// mostAhead bounds the commands of a submission that is remembered.
const mostAhead = 4096

// again is a submission that may come again. ahead.mu guards ticket, more and ready.
type again struct {
	list   []C.rayo_command
	ticket uint64         // of the last time
	more   bool           // it has come more than once
	ready  unsafe.Pointer // a command buffer, or nil
}

// take returns the record of a list of commands, new or cached, and its command buffer if there is
// one, which then belongs to the caller. The caller prevents concurrent submissions.
func (a *ahead) take(d *C.rayo_device, list []C.rayo_command) (s *again, ready unsafe.Pointer) {
	if len(list) == 0 || len(list) > mostAhead {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	i := slices.IndexFunc(a.kept[:], func(s *again) bool { return s != nil && slices.Equal(s.list, list) })
	if i < 0 {
		i = len(a.kept) - 1
		a.kept[i].drop(d)
		a.kept[i] = &again{list: slices.Clone(list)}
	} else {
		a.kept[i].more = true
	}
	s = a.kept[i]
	copy(a.kept[1:i+1], a.kept[:i])
	a.kept[0] = s
	ready, s.ready = s.ready, nil
	return s, ready
}

// forget frees the prepared command buffers, because an object that they may use is about to be freed.
func (a *ahead) forget(d *C.rayo_device) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.kept {
		s.drop(d)
	}
}

// drop frees the command buffer. The caller holds ahead.mu.
func (s *again) drop(d *C.rayo_device) {
	if s != nil && s.ready != nil {
		C.rayo_discard(d, s.ready)
		s.ready = nil
	}
}

// Again implements [webgpu.Repeater].
func (d *device) Again(ticket uint64) {
	a := &d.ahead
	a.mu.Lock()
	i := slices.IndexFunc(a.kept[:], func(s *again) bool { return s != nil && s.ticket == ticket && s.more && s.ready == nil })
	if i < 0 {
		a.mu.Unlock()
		return
	}
	s := a.kept[i]
	a.mu.Unlock()
	if C.rayo_discards(d.d) == 0 {
		return
	}
	r := C.rayo_encode(d.d, unsafe.SliceData(s.list), C.size_t(len(s.list)))
	if d.failure(r) != nil {
		return // the submission will say why
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if s.ready != nil || !slices.Contains(a.kept[:], s) {
		C.rayo_discard(d.d, r.handle)
		return
	}
	s.ready = r.handle
}
