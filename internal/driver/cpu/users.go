package cpu

import (
	"context"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// users caches the programs of users' operations over float32, for calls of single operations.
// Programs do not depend on the number of elements.
type users struct {
	mu sync.RWMutex
	// by finds the program of the same operation, and same that of an equal operation, for users
	// that create their operation anew for each use.
	by   map[*op.Operation]*program
	same map[string]*program
}

// maxUsers is the maximum number of cached programs.
const maxUsers = 1024

// program returns the program of o over float32.
func (u *users) program(d *processor, o *op.Operation) (*program, error) {
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
		if p, err = d.fuse(oneInstruction(o), []driver.Operand{{Type: op.F32}}); err != nil {
			return nil, err
		}
	}
	if u.by == nil || len(u.by) >= maxUsers {
		u.by, u.same = make(map[*op.Operation]*program), make(map[string]*program)
	}
	u.by[o], u.same[o.Key()] = p, p
	return p, nil
}

// oneInstruction returns the elementwise program of one operation over float32.
func oneInstruction(o *op.Operation) *driver.Fused {
	_, arity := o.Arity()
	f := &driver.Fused{Body: []driver.Instr{{Op: o, Type: op.F32}}, Out: []int{arity}}
	for i := range arity {
		f.In = append(f.In, driver.Operand{Slot: i, Type: op.F32})
		f.Body[0].Args = append(f.Body[0].Args, i)
	}
	return f
}

// userTask is a mapTask with its memory.
type userTask struct {
	mapTask
	lane lane
	at   [4]place
}

var userTasks = sync.Pool{New: func() any { return new(userTask) }}

// runUser runs a user's operation over n elements of float32.
func (d *processor) runUser(ctx context.Context, o *op.Operation, dst unsafe.Pointer, at *[3]unsafe.Pointer, n int) error {
	p, err := d.users.program(d, o)
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
