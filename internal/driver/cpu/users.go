package cpu

import (
	"context"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// users holds the programs of users' operations over float32, for calls of
// single operations. They do not depend on the number of elements.
type users struct {
	mu sync.RWMutex
	// by is for the same operation again, and same for another that computes
	// the same, as when a program makes its operation anew for each use.
	by   map[*op.Operation]*program
	same map[string]*program
}

// maxUsers bounds the programs that are kept.
const maxUsers = 1024

// program returns the program of f, which is one instruction over operands
// that are all full.
func (u *users) program(d *processor, f *driver.Fused, out []driver.Operand) (*program, error) {
	o := f.Body[0].Op
	u.mu.RLock()
	p := u.by[o]
	u.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if p = u.same[o.Key()]; p == nil {
		var err error
		if p, err = d.fuse(f, out); err != nil {
			return nil, err
		}
	}
	if u.by == nil || len(u.by) >= maxUsers {
		u.by, u.same = make(map[*op.Operation]*program), make(map[string]*program)
	}
	u.by[o], u.same[o.Key()] = p, p
	return p, nil
}

// userTask is a mapTask with its memory.
type userTask struct {
	mapTask
	lane lane
	at   [4]place
}

var userTasks = sync.Pool{New: func() any { return new(userTask) }}

// runUser runs a user's operation over n elements of float32.
func (d *processor) runUser(ctx context.Context, f *driver.Fused, out []driver.Operand, dst unsafe.Pointer, at *[3]unsafe.Pointer, n int) error {
	p, err := d.users.program(d, f, out)
	if err != nil {
		return err
	}
	if len(p.streams) > len(userTask{}.at) {
		return driver.ErrUnsupported
	}
	t := userTasks.Get().(*userTask)
	for i := range p.inputs {
		t.at[i].base = at[i]
	}
	t.at[p.inputs].base = dst
	t.d, t.p, t.n, t.mapTask.at = d, p, n, t.at[:len(p.streams)]
	err = t.run(ctx, &t.lane)
	t.at, t.p = [4]place{}, nil
	userTasks.Put(t)
	return err
}
