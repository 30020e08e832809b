package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/kernel"
)

// Finding is a mistake of a kernel found by [Kernel.Check] or by a run on the CPU: its
// kind, the line of the author's file, the buffer or array, and the lanes. It is an error.
type Finding = interp.Finding

// Check runs the kernel as [Kernel.Run] does, but on the CPU, in several orders
// of lanes and with several sizes of subgroups, and returns the mistakes that it
// finds, including those without effect on this machine: races in workgroup memory
// and in buffers, indices out of bounds, reads of unwritten memory,
// barriers that not all lanes reach, indices that wrap, loops beyond their
// budget. It is for tests, and hundreds of times slower than Run.
//
// Arrays of [Out] are uninitialised, so that a read before a write is a finding. Check
// stores the results of one of the runs as Run does.
//
// # Errors
//
// The errors are those of Run except [ErrFault]: faults are findings, which are results and not errors.
func (k *Kernel) Check(ctx context.Context, grid kernel.Size, params any, args ...Arg) ([]*Finding, error) {
	args = slices.Clone(args)
	found, err := k.check(ctx, grid, params, args)
	return found, k.wrap(err, shapesOf(args)...)
}

func (k *Kernel) check(ctx context.Context, grid kernel.Size, params any, args []Arg) ([]*Finding, error) {
	if err := k.valid(); err != nil {
		return nil, err
	}
	if err := k.dev.Engine().Err(); err != nil {
		return nil, err
	}
	if _, err := k.launch(grid, params, args); err != nil {
		return nil, err
	}
	if k.code.Program.Text != nil {
		return nil, fmt.Errorf("a WGSL text cannot be checked on the CPU: %w", ErrUnsupported)
	}
	p, err := k.code.Positions()
	if err != nil {
		return nil, err
	}
	c, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		return nil, checkError(err)
	}
	block, err := k.Parameters(grid, params)
	if err != nil {
		return nil, err
	}
	l := interp.Launch{Grid: grid.Groups(), Params: block}
	undefined := make([]bool, len(args))
	for i := range args {
		a := &args[i]
		data, err := a.copied(ctx)
		if err != nil {
			return nil, err
		}
		l.Buffers = append(l.Buffers, data)
		undefined[i] = a.use == argOut && p.Bindings[i].Access == ir.WriteOnly
	}
	found, err := c.Check(ctx, l, interp.Checks{Undefined: undefined})
	if err != nil {
		return nil, checkError(err)
	}
	for i := range args {
		if p.Bindings[i].Access == ir.ReadOnly {
			continue
		}
		if a := &args[i]; a.buf == nil {
			copy(a.data, l.Buffers[i])
		} else if err := a.buf.write(ctx, l.Buffers[i]); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// copied returns a copy of the array of a, zeros for Out.
func (a *Arg) copied(ctx context.Context) ([]byte, error) {
	bytes := a.n * a.typ.Size()
	f, err := memory.Floats((bytes + 3) / 4)
	if err != nil {
		return nil, err
	}
	data := engine.Bytes(f)[:bytes]
	switch a.use {
	case argBuffer:
		err = a.buf.read(ctx, data)
	case argOut:
	default:
		copy(data, a.data)
	}
	return data, err
}

// checkError gives an error of the interpreter the meaning that it has here.
func checkError(err error) error {
	switch {
	case errors.Is(err, interp.ErrLimit):
		return fmt.Errorf("%w: %w", ErrLimit, err)
	case errors.Is(err, interp.ErrLaunch):
		return fmt.Errorf("%w: %w", ErrShape, err)
	case errors.Is(err, interp.ErrProgram):
		return fmt.Errorf("%w: %w", ErrUnsupported, err)
	}
	return err
}
