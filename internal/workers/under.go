package workers

import (
	"context"
	"sync"

	"github.com/rayo-go/rayo/internal/incomparable"
)

// under has the fields of a Pool that is a view of another: see Pool.Under.
type under struct {
	_ incomparable.Type

	root   *Pool
	ctx    context.Context
	serial bool
}

var views = sync.Pool{New: func() any { return new(Pool) }}

// Under returns a view of p that runs no more parts after ctx has ended. The caller must check ctx
// afterwards to learn whether all parts ran, and Release the view. The view is p itself if ctx cannot
// end.
func (p *Pool) Under(ctx context.Context) *Pool {
	if p == nil || ctx.Done() == nil {
		return p
	}
	v := views.Get().(*Pool)
	v.under = under{root: p, ctx: ctx}
	return v
}

// Serial returns a pool for work that is not worth several threads: nil, or the view itself, so that
// the work still ends with its context.
func (p *Pool) Serial() *Pool {
	if p == nil || p.root == nil {
		return nil
	}
	p.serial = true
	return p
}

// Release ends the use of a view that Under returned. It does not change other pools.
func (p *Pool) Release() {
	if p != nil && p.root != nil {
		p.under = under{}
		views.Put(p)
	}
}

// cancellable is a task that ends with a context.
type cancellable struct {
	_ incomparable.Type

	Task
	ctx context.Context
}

var cancellables = sync.Pool{New: func() any { return new(cancellable) }}

func (m *cancellable) Part(i int) {
	if m.ctx.Err() == nil {
		m.Task.Part(i)
	}
}

// run runs t by f, a method of the root pool, and ends early when the context of p ends.
func (p *Pool) run(t Task, f func(root *Pool, t Task)) {
	m := cancellables.Get().(*cancellable)
	m.Task, m.ctx = t, p.ctx
	root := p.root
	if p.serial {
		root = nil
	}
	f(root, m)
	*m = cancellable{}
	cancellables.Put(m)
}
