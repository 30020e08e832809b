package engine

import (
	"math/bits"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/op"
)

// Router chooses, for each one-shot call, the engine that has been measured to be faster: a GPU, to
// which the operands have to be copied, or the CPU. It measures the calls themselves: for each
// operation and order of magnitude of its [Work] it tries each engine a few times, and then uses
// the faster one. It stores the measurements with the identities of both devices, and the next
// process reads them.
//
// A Router is safe for concurrent use.
type Router struct {
	cpu, device *Engine // the CPU, and the opened device

	mu    sync.RWMutex
	table map[routeKey]*routeCell
	dirty atomic.Bool
}

// Work is the size of a call, which determines its time: a product of one row reads as many bytes
// as a product of thousands of rows, but does a thousandth of the arithmetic.
type Work struct {
	Bytes int64   // of operands and results, each counted once
	Flops float64 // see op.Operation.Flops
}

// WorkOf returns the work of o over host memory.
func WorkOf(o *op.Operation, a *op.Attrs, in, out []Host) Work {
	var w Work
	var shapes [2][]op.Shape
	for i, hosts := range [2][]Host{in, out} {
		for j := range hosts {
			h := &hosts[j]
			w.Bytes += int64(len(h.Data))
			var s op.Shape
			if h.Type != op.InvalidType {
				s = h.Shape()
			}
			shapes[i] = append(shapes[i], s)
		}
	}
	own := *a // a copy, so that the caller's does not escape to the heap
	w.Flops = o.Flops(&own, shapes[0], shapes[1])
	return w
}

// routeKey is an operation and the orders of magnitude, in bits, of its work.
type routeKey struct {
	op           string
	bytes, flops int
}

func keyOf(o *op.Operation, w Work) routeKey {
	return routeKey{o.Key(), bits.Len64(uint64(w.Bytes)), bits.Len64(uint64(min(w.Flops, 1<<62)))}
}

// routeCell has the measurements of one operation and magnitude.
type routeCell struct {
	runs [2]atomic.Int32 // number of calls on cpu and on device
	best [2]atomic.Int64 // shortest time in nanoseconds
}

// routeTries is the number of calls that are measured on each engine. The first call includes
// compilation, so the shortest time counts.
const routeTries = 3

// NewRouter returns a router that sends calls to cpu or to dev. It owns cpu.
func NewRouter(dev, cpu *Engine) *Router {
	r := &Router{cpu: cpu, device: dev, table: make(map[routeKey]*routeCell)}
	r.load()
	return r
}

// Other returns the engine of the CPU.
func (r *Router) Other() *Engine { return r.cpu }

// Pick returns the engine for a call of o.
func (r *Router) Pick(o *op.Operation, w Work) *Engine {
	c := r.cell(keyOf(o, w))
	switch {
	case c.runs[0].Load() < routeTries:
		return r.cpu
	case c.runs[1].Load() < routeTries:
		return r.device
	case c.best[1].Load() < c.best[0].Load():
		return r.device
	}
	return r.cpu
}

// Settled reports whether there are enough measurements for calls of o with similar work.
func (r *Router) Settled(o *op.Operation, w Work) bool {
	c := r.cell(keyOf(o, w))
	return c.runs[0].Load() >= routeTries && c.runs[1].Load() >= routeTries
}

// Observe records the time of a call on e.
func (r *Router) Observe(e *Engine, o *op.Operation, w Work, took time.Duration) {
	i := 0
	if e == r.device {
		i = 1
	}
	c := r.cell(keyOf(o, w))
	for {
		old := c.best[i].Load()
		if old != 0 && old <= int64(took) || c.best[i].CompareAndSwap(old, max(1, int64(took))) {
			break
		}
	}
	c.runs[i].Add(1)
	r.dirty.Store(true)
}

func (r *Router) cell(k routeKey) *routeCell {
	r.mu.RLock()
	c := r.table[k]
	r.mu.RUnlock()
	if c != nil {
		return c
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c = r.table[k]; c == nil {
		c = new(routeCell)
		r.table[k] = c
	}
	return c
}

func (r *Router) identity() string { return r.cpu.info.Identity + "\t" + r.device.info.Identity }

// Close stores the measurements, if possible, and closes the CPU's engine.
func (r *Router) Close() error {
	if r.dirty.Load() {
		r.store() // if this fails, the next process measures again
	}
	return r.cpu.Close()
}

// routes is the name of the file with the measurements. A line has the operation, the bit lengths
// of bytes and of arithmetic, and the two times, separated by tabs.
const routes = "routes.txt"

func (r *Router) load() {
	for _, line := range measured.Lines(routes, r.identity()) {
		name, rest, ok := strings.Cut(line, "\t")
		var n [4]int64 // bytes, flops, near, far
		for i, field := range strings.Fields(rest) {
			v, err := strconv.ParseInt(field, 10, 64)
			if ok = ok && err == nil && i < len(n); ok {
				n[i] = v
			}
		}
		if !ok || n[2] <= 0 || n[3] <= 0 {
			continue
		}
		c := r.cell(routeKey{name, int(n[0]), int(n[1])})
		c.best[0].Store(n[2])
		c.best[1].Store(n[3])
		c.runs[0].Store(routeTries)
		c.runs[1].Store(routeTries)
	}
}

func (r *Router) store() error {
	var lines []string
	r.mu.RLock()
	for k, c := range r.table {
		if c.runs[0].Load() >= routeTries && c.runs[1].Load() >= routeTries && !strings.ContainsAny(k.op, "\t\n") {
			lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%d\t%d", k.op, k.bytes, k.flops, c.best[0].Load(), c.best[1].Load()))
		}
	}
	r.mu.RUnlock()
	return measured.Replace(routes, r.identity(), lines, nil)
}
