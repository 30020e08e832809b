package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// A Graph is work that was recorded from a stream and is launched as a whole. Launching a graph
// takes the host a small part of the time of the single launches. Keep the modules and the memory
// that it uses until the graph is closed. It is safe for concurrent use.
type Graph struct {
	dev     *Device
	guard   guard
	mu      sync.Mutex // for what changes the parameters
	graph   uintptr
	exec    uintptr
	kernels []uintptr // the nodes that are launches, in the order of recording
}

// errNotCapturing is the answer to the end of a recording that was not begun.
var errNotCapturing = fmt.Errorf("cuda: %w: the stream is not being captured", ErrInvalid)

// Capture records what record puts into the stream, instead of running it, and
// returns it as a graph. Other streams take part if they wait for an event of
// this one, and this one waits for theirs at the end.
//
// While a stream is being recorded, it cannot be waited for and cannot copy from or to Go memory,
// and [Stream.Alloc] gives only memory from the pool.
func (s *Stream) Capture(record func() error) (*Graph, error) {
	if err := s.beginCapture(); err != nil {
		return nil, err
	}
	ended := false
	defer func() {
		if !ended { // record panicked: its stream shall be of use afterwards
			s.abandonCapture()
		}
	}()
	err := record()
	ended = true
	if err != nil {
		s.abandonCapture()
		return nil, err
	}
	graph, err := s.endCapture()
	if err != nil {
		return nil, err
	}
	return s.dev.instantiate(graph)
}

func (s *Stream) beginCapture() error {
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	if s.capturing.Load() {
		return capturing("Capture")
	}
	const relaxed = 2 // other streams and threads are not restricted
	f.Args[0], f.Args[1] = s.handle, relaxed
	if err := s.call(f, cuStreamBeginCapture); err != nil {
		return err
	}
	s.capturing.Store(true)
	return nil
}

func (s *Stream) endCapture() (uintptr, error) {
	f, err := s.begin()
	if err != nil {
		return 0, err
	}
	defer s.end()
	if !s.capturing.Swap(false) {
		return 0, errNotCapturing
	}
	f.Args[0], f.Args[1] = s.handle, f.out(0)
	err = s.call(f, cuStreamEndCapture)
	if err == nil && f.ptr(0) == 0 {
		err = fmt.Errorf("cuda: %w: the driver recorded nothing", ErrInvalid)
	}
	return f.ptr(0), err
}

// abandonCapture ends a recording that nobody wants.
func (s *Stream) abandonCapture() {
	graph, err := s.endCapture()
	if err != nil || graph == 0 {
		return
	}
	f := newFrame()
	defer f.release()
	f.Args[0] = graph
	s.dev.prim.destroy(f, cuGraphDestroy)
}

// instantiate makes a recorded graph executable.
func (d *Device) instantiate(graph uintptr) (*Graph, error) {
	f := newFrame()
	defer f.release()
	g := &Graph{dev: d, graph: graph}
	if !d.guard.enter() {
		return nil, closed("device") // which has destroyed the graph with its context
	}
	fail := func(err error) (*Graph, error) {
		f.Args[0] = graph
		d.prim.destroy(f, cuGraphDestroy)
		d.leave()
		return nil, err
	}
	if err := g.findKernels(f); err != nil {
		return fail(err)
	}
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), graph, 0
	if err := d.prim.call(f, cuGraphInstantiateWithFlags); err != nil {
		return fail(err)
	}
	g.exec = f.ptr(0)
	if err := d.adopt(g); err != nil {
		return nil, err
	}
	return g, nil
}

// findKernels lists the nodes that are launches.
func (g *Graph) findKernels(f *frame) error {
	p := g.dev.prim
	f.Args[0], f.Args[1], f.Args[2] = g.graph, 0, f.out(0)
	if err := p.call(f, cuGraphGetNodes); err != nil {
		return err
	}
	n := f.Out[0]
	if n == 0 {
		return nil
	}
	if n > 1<<24 {
		return invalid("a graph of %d nodes", n)
	}
	nodes := numbers(int(n))
	f.Args[0], f.Args[1], f.Args[2] = g.graph, addressOf(&nodes[0]), addressOf(&f.Out[0])
	err := p.call(f, cuGraphGetNodes)
	keep(nodes)
	if err != nil {
		return err
	}
	for _, node := range nodes[:min(n, f.Out[0])] {
		const kernel = 0
		f.Args[0], f.Args[1] = node, f.out(1)
		if err := p.call(f, cuGraphNodeGetType); err != nil {
			return err
		}
		if f.int(1) == kernel {
			g.kernels = append(g.kernels, node)
		}
	}
	return nil
}

// numbers returns room for n numbers on the heap.
//
//go:noinline
func numbers(n int) []uintptr { return make([]uintptr, n) }

// enter begins a call that uses the graph on a device.
func (g *Graph) enter(p *primary) error {
	if g == nil || g.dev == nil || !g.guard.enter() {
		return closed("graph")
	}
	if p != nil && p != g.dev.prim {
		g.leave()
		return foreign("graph")
	}
	return nil
}

func (g *Graph) leave() {
	if g.guard.leave() {
		g.destroy()
	}
}

// Kernels returns the number of launches in the graph.
func (g *Graph) Kernels() int {
	if g == nil {
		return 0
	}
	return len(g.kernels)
}

// Launch puts the whole graph into a stream. A graph that is still running
// begins again when it has ended.
func (g *Graph) Launch(s *Stream) error { return g.submit(s, cuGraphLaunch) }

// Upload prepares the device for the graph, in the order of a stream, so that
// the first launch takes no longer than the others.
func (g *Graph) Upload(s *Stream) error { return g.submit(s, cuGraphUpload) }

// submit calls e for the graph and a stream.
func (g *Graph) submit(s *Stream, e entry) error {
	if s == nil || s.dev == nil {
		return closed("stream")
	}
	if err := g.enter(s.dev.prim); err != nil {
		return err
	}
	defer g.leave()
	f, err := s.begin()
	if err != nil {
		return err
	}
	defer s.end()
	f.Args[0], f.Args[1] = g.exec, s.handle
	return s.call(f, e)
}

// SetKernel changes launch i of the graph, counted from 0 in the order of recording, for launches
// of the graph from now on. Only the sizes of the configuration are used: a cluster launch keeps
// its clusters, and a cooperative launch stays cooperative.
func (g *Graph) SetKernel(i int, fn *Function, c Config, params []byte) error {
	if err := g.enter(nil); err != nil {
		return err
	}
	defer g.leave()
	if i < 0 || i >= len(g.kernels) {
		return invalid("launch %d of a graph of %d", i, len(g.kernels))
	}
	if err := fn.enter(g.dev.prim); err != nil {
		return err
	}
	defer fn.leave()
	f := newFrame()
	defer f.release()
	if err := f.pack(fn, &c, params); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	n := &f.launch.node
	*n = kernelNode{fn: fn.handle, grid: c.Grid.or1(), block: c.Block.or1(), shared: c.Shared, extra: f.launch.address(params)}
	f.Args[0], f.Args[1], f.Args[2] = g.exec, g.kernels[i], addressOf(n)
	if err := g.dev.prim.call(f, cuGraphExecKernelNodeSetParams); err != nil {
		return explain(err, fn, &c)
	}
	return nil
}

// ErrDifferent is wrapped by the error of [Graph.Update] for a graph of another
// form.
var ErrDifferent = errors.New("the graphs have different forms")

// Update takes over the parameters of another graph that was recorded by the same calls. The error
// wraps [ErrDifferent] if the other has a different structure; the graph is then unchanged.
func (g *Graph) Update(other *Graph) error {
	if err := g.enter(nil); err != nil {
		return err
	}
	defer g.leave()
	if err := other.enter(g.dev.prim); err != nil {
		return err
	}
	defer other.leave()
	f := newFrame()
	defer f.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = g.exec, other.graph, f.out(0), f.out(1)
	err := g.dev.prim.call(f, cuGraphExecUpdate)
	if err != nil && f.code() == codeUpdateFailed {
		err = fmt.Errorf("%w: %w", ErrDifferent, err)
	}
	return err
}

// Close frees the graph. Closing again does nothing.
func (g *Graph) Close() error {
	if g == nil || g.dev == nil {
		return nil
	}
	if g.guard.close() {
		g.destroy()
	}
	return nil
}

func (g *Graph) destroy() {
	f := newFrame()
	defer f.release()
	f.Args[0] = g.exec
	g.dev.prim.destroy(f, cuGraphExecDestroy)
	f.Args[0] = g.graph
	g.dev.prim.destroy(f, cuGraphDestroy)
	g.dev.orphan(g)
}
