package emu

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Variable returns the address of a variable of a module in global or constant memory, and the number of its
// bytes. The variable keeps its contents between launches, as on a device that has loaded the module. The host
// may read and write it; values of constant memory come from the host.
func (m *Machine) Variable(mod *Module, name string) (Ptr, int, error) {
	if mod == nil {
		return 0, 0, fmt.Errorf("%w: the module is nil: make one with Parse", ErrMemory)
	}
	i, ok := mod.source.names[name]
	if !ok || mod.source.variables[i].space == spaceShared {
		return 0, 0, fmt.Errorf("%w: the module has no variable %s", ErrMemory, name)
	}
	if err := m.place(mod, []int{i}); err != nil {
		return 0, 0, err
	}
	a := m.loaded[mod][i]
	return Ptr(a.base), len(a.data), nil
}

// place allocates variables of a module that have no memory yet, and the variables whose addresses they contain.
func (m *Machine) place(mod *Module, todo []int) error {
	if m.loaded == nil {
		m.loaded = map[*Module]map[int]*allocation{}
	}
	have := m.loaded[mod]
	if have == nil {
		have = map[int]*allocation{}
		m.loaded[mod] = have
	}
	todo = append([]int(nil), todo...)
	var fresh []int
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		if todo = todo[:len(todo)-1]; have[i] != nil {
			continue
		}
		v := &mod.source.variables[i]
		p, err := m.Alloc(v.name, v.bytes)
		if err != nil {
			return m.displace(have, fresh, err)
		}
		a := m.find(uint64(p), 0)
		copy(a.data, v.data)
		a.whole, a.constant = true, v.space == spaceConst
		have[i], fresh = a, append(fresh, i)
		for _, s := range v.symbols {
			if j, ok := mod.source.names[s.name]; ok && mod.source.variables[j].space != spaceShared {
				todo = append(todo, j)
			}
		}
	}
	for _, i := range fresh {
		if err := mod.resolve(have, i); err != nil {
			return m.displace(have, fresh, err)
		}
	}
	return nil
}

// displace frees the variables that were allocated before an error.
func (m *Machine) displace(have map[int]*allocation, fresh []int, err error) error {
	for _, i := range fresh {
		err = errors.Join(err, m.Free(Ptr(have[i].base)))
		delete(have, i)
	}
	return err
}

// resolve stores the addresses that belong to the initial contents of a variable.
func (mod *Module) resolve(have map[int]*allocation, i int) error {
	v, a := &mod.source.variables[i], have[i]
	for _, s := range v.symbols {
		var addr uint64
		j, ok := mod.source.names[s.name]
		f := mod.source.called[s.name]
		switch {
		case ok && have[j] != nil:
			addr = have[j].base
		case !ok && f != nil && !f.kernel:
			addr = f.address()
		default:
			if err := mod.source.unread[s.name]; err != nil {
				return fmt.Errorf("%w: line %d: variable %s contains the address of %s: %w", ErrLaunch, s.line, v.name, s.name, err)
			}
			return fmt.Errorf("%w: line %d: variable %s contains the address of %s, which is neither a variable in memory nor a function", ErrLaunch, s.line, v.name, s.name)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], (addr+uint64(s.offset))>>s.shift)
		copy(a.data[s.at:s.at+s.bytes], b[:])
	}
	return nil
}

// placeVariables gives the launch the addresses of the variables that its kernel uses.
func (r *launch) placeVariables() error {
	if len(r.k.used) == 0 {
		return nil
	}
	if err := r.m.place(r.k.module, r.k.used); err != nil {
		return err
	}
	r.variables = map[int]uint64{}
	for _, i := range r.k.used {
		r.variables[i] = r.m.loaded[r.k.module][i].base
	}
	return nil
}
