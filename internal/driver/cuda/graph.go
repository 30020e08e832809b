package cuda

import (
	"errors"
	"slices"
	"sync"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/ptxkernels"
)

// A program that runs again with the same device memory becomes a graph: one call starts all its
// launches, which is several times as fast for the host and the device. Operands and results on the
// host use memory of the graph, so that slices may differ in each submission.

// graphs are the graphs of one executable. The zero value is ready to use.
type graphs struct {
	mu     sync.Mutex
	all    []*recorded // the most recently used last
	missed []cu.Ptr    // bindings of the last submission without a graph
	failed bool        // the driver cannot record the program
}

// recorded is a graph with the memory to which its work is bound.
type recorded struct {
	Graph
	bound  []cu.Ptr // see run.boundTo
	busy   bool     // a submission is using its memory
	layout layout   // layout of the recorded submission
}

const (
	// graphCalls is the number of calls from which a graph is faster for the host.
	graphCalls = 4
	// maxGraphs limits the graphs of an executable; each graph is for different memory.
	maxGraphs = 4
	// maxGraphBytes limits the memory that a graph keeps. For large arrays, the calls take only a
	// small part of the time.
	maxGraphBytes = 64 << 20
)

// boundTo appends the bindings of the external slots of r: the address of device memory, or 0 for
// host memory. ok reports whether a graph may be bound to them.
func (r *run) boundTo(to []cu.Ptr) (bound []cu.Ptr, ok bool) {
	for i := range r.e.Need {
		p := cu.Ptr(0)
		if b := &r.ext[i]; b.Mem != nil {
			p = b.Mem.(*array).ptr + cu.Ptr(b.Off)
			if uint64(p)%uint64(ptxkernels.Alignment()) != 0 {
				return nil, false
			}
		}
		to = append(to, p)
	}
	return to, true
}

// graph returns a recorded graph for the submission, with r's current memory, or nil. It records
// one if a submission with the same bindings has run before.
func (r *run) graph(s *driver.Submission) (*recorded, error) {
	e := r.e
	if e.calls < graphCalls || s.Times != nil {
		return nil, nil
	}
	var ok bool
	if r.bound, ok = r.boundTo(r.bound[:0]); !ok {
		return nil, nil
	}
	g := &e.graphs
	g.mu.Lock()
	if g.failed {
		g.mu.Unlock()
		return nil, nil
	}
	for i, k := range g.all {
		if slices.Equal(k.bound, r.bound) {
			if k.busy {
				g.mu.Unlock()
				return nil, nil
			}
			k.busy = true
			g.all = append(slices.Delete(g.all, i, i+1), k)
			g.mu.Unlock()
			r.layout, r.recorded = k.layout, true
			return k, nil
		}
	}
	again := len(r.bound) == len(g.missed) && slices.Equal(g.missed, r.bound)
	g.missed = append(g.missed[:0], r.bound...)
	g.mu.Unlock()
	if !again {
		return nil, nil
	}
	return r.record()
}

// record records a graph of the submission. If it cannot be recorded, record returns nil and the
// submission runs without a graph.
func (r *run) record() (*recorded, error) {
	e := r.e
	if err := r.place(); err != nil {
		return nil, err
	}
	if r.layout.size > maxGraphBytes || !e.d.reserveGraph(r.layout.size) {
		return nil, nil
	}
	made, err := e.d.hw.Capture(func(hw Hardware) error {
		r.hw = hw
		defer func() { r.hw = e.d.hw }()
		if err := r.send(); err != nil {
			return err
		}
		for _, s := range e.steps {
			if err := s.enqueue(r); err != nil {
				return err
			}
		}
		return r.receive()
	})
	if err != nil {
		e.d.releaseGraph(r.layout.size)
		if errors.Is(err, cu.ErrDeviceLost) {
			return nil, err
		}
		// Without recording, the calls may still succeed.
		e.graphs.mu.Lock()
		e.graphs.failed = true
		e.graphs.mu.Unlock()
		return nil, nil
	}
	k := &recorded{Graph: made, bound: slices.Clone(r.bound), busy: true, layout: r.layout}
	r.recorded = true
	g := &e.graphs
	g.mu.Lock()
	var old *recorded
	if len(g.all) >= maxGraphs {
		if i := slices.IndexFunc(g.all, func(k *recorded) bool { return !k.busy }); i >= 0 {
			old = g.all[i]
			g.all = slices.Delete(g.all, i, i+1)
		}
	}
	g.all = append(g.all, k)
	g.mu.Unlock()
	if old != nil {
		e.d.freeGraph(old)
	}
	return k, nil
}

// done ends the use of a graph by a submission.
func (g *graphs) done(k *recorded) {
	g.mu.Lock()
	k.busy = false
	g.mu.Unlock()
}

// free frees all graphs. They must not be in use.
func (g *graphs) free(d *gpuDevice) {
	g.mu.Lock()
	all := g.all
	g.all = nil
	g.mu.Unlock()
	for _, k := range all {
		d.freeGraph(k)
	}
}

// graphShare is the part of the device's memory that graphs may keep.
const graphShare = 16

// reserveGraph counts memory that a graph keeps, if there is room.
func (d *gpuDevice) reserveGraph(bytes int64) bool {
	if d.graphBytes.Add(bytes) > max(d.info.Memory/graphShare, maxGraphBytes) {
		d.graphBytes.Add(-bytes)
		return false
	}
	return true
}

func (d *gpuDevice) releaseGraph(bytes int64) { d.graphBytes.Add(-bytes) }

// freeGraph frees a graph, which must not be in use, and its memory.
func (d *gpuDevice) freeGraph(k *recorded) {
	_ = k.Close()
	d.releaseGraph(k.layout.size)
	d.freeLayout(&k.layout)
}
