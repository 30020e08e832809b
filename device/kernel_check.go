package device

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver/cpu"
	"github.com/rayo-go/rayo/internal/engine"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/graph"
	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/memory"
	"github.com/rayo-go/rayo/kernel"
)

// Finding is an error of a kernel that [Kernel.Check] or a run on the CPU has found: its kind, the
// line in the author's file, the buffer or array, and the lanes. It is an error: errors.As finds it
// in the [ErrFault] of a run, and errors.Is finds its kind.
type Finding struct {
	Kind   FindingKind
	Kernel string
	Name   string    // the buffer, array or variable, or ""
	Index  int64     // the element, which may be negative if it is out of bounds; -1 if there is none
	Lanes  [2]int32  // numbers in the workgroup of the lane and of the other lane involved; -1 if there is none
	Group  [3]uint32 // the workgroup of the first lane
	Note   string    // more details
	// File and Line are the position of the instruction in the author's program.
	File string
	Line int
	text string // text of the interpreter
}

// Error describes the finding in one line.
func (f *Finding) Error() string { return f.text }

// Unwrap returns the kind.
func (f *Finding) Unwrap() error { return f.Kind }

// FindingKind is the kind of a finding. It is an error, so that errors.Is finds it in a [Finding].
type FindingKind = interp.Kind

// The kinds of findings.
const (
	OutOfBounds       = interp.OutOfBounds       // an index beyond the end of a buffer or array
	Race              = interp.Race              // two lanes access the same memory, one of them writes, and nothing orders the accesses
	Uninitialised     = interp.Uninitialised     // a read of an element before any write
	DivergentBarrier  = interp.DivergentBarrier  // a barrier that not all lanes of the workgroup reach
	DivergentSubgroup = interp.DivergentSubgroup // a subgroup operation that not all lanes of the workgroup reach
	NotUniform        = interp.NotUniform        // lanes have different values where a uniform value is required
	IndexOverflow     = interp.IndexOverflow     // an index whose computation overflowed
	Budget            = interp.Budget            // a loop with more iterations than the budget allows
	CounterOverflow   = interp.CounterOverflow   // the counter of a For exceeded the range of its type
	Aliased           = interp.Aliased           // two bindings share memory and one of them is written
	ShuffleRange      = interp.ShuffleRange      // a shuffle from a lane beyond the subgroup
	OrderDependent    = interp.OrderDependent    // results that depend on the order in which lanes run
)

// findingOf converts a finding of the interpreter.
func findingOf(f *interp.Finding) *Finding {
	return &Finding{f.Kind, f.Kernel, f.Name, f.Index, f.Lanes, f.Group, f.Note, f.File, f.Line, f.Error()}
}

// kernels links what only programs with kernels need.
var kernels sync.Once

func useKernels() {
	cpu.UseKernels()
	interp.FindingAs = func(f *interp.Finding, target any) bool {
		t, ok := target.(**Finding)
		if ok {
			*t = findingOf(f)
		}
		return ok
	}
	devicehook.Fits = fits
	devicehook.Launch = func(k any, grid kernel.Size, params any) (*graph.Kernel, []byte, error) {
		block, err := k.(*Kernel).parameters(grid, params)
		if err != nil {
			return nil, nil, err
		}
		return k.(*Kernel).launched(grid), block, nil
	}
}

// Check runs the kernel as [Kernel.Run] does, but on the CPU, in several orders of lanes and with
// several subgroup sizes. It returns the errors that it finds, including those without effect on
// this machine: races in workgroup memory and in buffers, indices out of bounds, reads of unwritten
// memory, barriers that not all lanes reach, indices that overflow, and loops beyond their budget.
// It is for tests, and hundreds of times slower than Run.
//
// Arrays of [Out] count as uninitialised, so that a read before a write is a finding. Check stores
// the results of one of the runs, as Run does.
//
// # Errors
//
// The errors are those of Run except [ErrFault]: Check returns faults as findings.
func (k *Kernel) Check(ctx context.Context, grid kernel.Size, params any, args ...Arg) ([]*Finding, error) {
	args = slices.Clone(args)
	found, err := k.check(ctx, grid, params, args)
	return found, k.wrap(err, shapesOf(args)...)
}

func (k *Kernel) check(ctx context.Context, grid kernel.Size, params any, args []Arg) ([]*Finding, error) {
	if err := k.valid(); err != nil {
		return nil, err
	}
	if err := k.dev.engine().Err(); err != nil {
		return nil, err
	}
	if _, err := k.launch(grid, params, args); err != nil {
		return nil, err
	}
	if k.program.Text != nil {
		return nil, fmt.Errorf("a WGSL text cannot be checked on the CPU: %w", ErrUnsupported)
	}
	p, err := k.positions()
	if err != nil {
		return nil, err
	}
	c, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		return nil, checkError(err)
	}
	block, err := k.parameters(grid, params)
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
	findings := make([]*Finding, len(found))
	for i, f := range found {
		findings[i] = findingOf(f)
	}
	return findings, nil
}

// copied returns a copy of the array of a. For Out it returns zeros.
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

// checkError wraps an error of the interpreter in the corresponding error of this package.
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
