package engine

import (
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/internal/measured"
	"github.com/rayo-go/rayo/op"
)

// Router chooses, for each one-shot call, the engine that has been measured to
// be faster: a GPU, to which the operands have to travel, or the CPU. It
// learns from the calls themselves: for each operation and order of magnitude
// it tries each engine a few times, then stays with the faster one. What it
// has learned is stored with the identities of both devices and is read back
// by the next process.
//
// A Router is safe for concurrent use.
type Router struct {
	near, far *Engine // the CPU, and the device that was opened

	mu    sync.RWMutex
	table map[routeKey]*routeCell
	dirty atomic.Bool
}

type routeKey struct {
	op   string
	size int // bits of the number of elements
}

// routeCell is what is known of one operation at one size.
type routeCell struct {
	runs [2]atomic.Int32 // near, far
	best [2]atomic.Int64 // least nanoseconds seen
}

// routeTries is how often each engine is tried: the first call pays for
// compiling, the best of the others counts.
const routeTries = 3

// NewRouter returns a router that sends calls to cpu or to dev. It owns cpu.
func NewRouter(dev, cpu *Engine) *Router {
	r := &Router{near: cpu, far: dev, table: make(map[routeKey]*routeCell)}
	r.load()
	return r
}

// Other returns the engine of the CPU.
func (r *Router) Other() *Engine { return r.near }

// Pick returns the engine for a call of o over n elements.
func (r *Router) Pick(o *op.Operation, n int) *Engine {
	c := r.cell(routeKey{o.Key(), bits.Len(uint(n))})
	switch {
	case c.runs[0].Load() < routeTries:
		return r.near
	case c.runs[1].Load() < routeTries:
		return r.far
	case c.best[1].Load() < c.best[0].Load():
		return r.far
	}
	return r.near
}

// Settled reports whether calls of o over n elements need no more measuring.
func (r *Router) Settled(o *op.Operation, n int) bool {
	c := r.cell(routeKey{o.Key(), bits.Len(uint(n))})
	return c.runs[0].Load() >= routeTries && c.runs[1].Load() >= routeTries
}

// Learn enters the time that a call took on e.
func (r *Router) Learn(e *Engine, o *op.Operation, n int, took time.Duration) {
	i := 0
	if e == r.far {
		i = 1
	}
	c := r.cell(routeKey{o.Key(), bits.Len(uint(n))})
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

func (r *Router) identity() string { return r.near.info.Identity + "\t" + r.far.info.Identity }

// Close stores what was learned, if it can, and closes the CPU's engine.
func (r *Router) Close() error {
	if r.dirty.Load() {
		r.store() // a file that cannot be written only means measuring again
	}
	return r.near.Close()
}

// routes is the file of what was measured: operation, size, and the two times,
// separated by tabs.
const routes = "routes.txt"

func (r *Router) load() {
	for _, line := range measured.Lines(routes, r.identity()) {
		name, rest, ok := strings.Cut(line, "\t")
		var size int
		var near, far int64
		if n, err := fmt.Sscan(rest, &size, &near, &far); !ok || n != 3 || err != nil || near <= 0 || far <= 0 {
			continue
		}
		c := r.cell(routeKey{name, size})
		c.best[0].Store(near)
		c.best[1].Store(far)
		c.runs[0].Store(routeTries)
		c.runs[1].Store(routeTries)
	}
}

func (r *Router) store() error {
	var lines []string
	r.mu.RLock()
	for k, c := range r.table {
		if c.runs[0].Load() >= routeTries && c.runs[1].Load() >= routeTries && !strings.ContainsAny(k.op, "\t\n") {
			lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%d", k.op, k.size, c.best[0].Load(), c.best[1].Load()))
		}
	}
	r.mu.RUnlock()
	return measured.Replace(routes, r.identity(), lines, nil)
}
