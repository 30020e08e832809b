package kernel

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// MaxGroups is the maximum number of workgroups along one axis of a grid that every device
// supports.
const MaxGroups = 65535

// Size is the size of a grid in workgroups. An invalid size carries its error.
type Size struct {
	n      [3]uint32
	folded bool
	local  int // lanes of a workgroup; 0 if the size suits any number of lanes
	err    error
}

// Grid returns a grid of x workgroups, or x by y, or x by y by z. More than three numbers, and
// numbers below 1 or above [MaxGroups], give a Size with an error. For one dimension of any size,
// see [GridOf] and [GridFor].
func Grid(x int, yz ...int) Size {
	if len(yz) > 2 {
		return Size{err: fmt.Errorf("%w: the grid has %d dimensions; it must have 1 to 3", ErrGrid, len(yz)+1)}
	}
	s := Size{n: [3]uint32{1, 1, 1}}
	for i := range len(yz) + 1 {
		n := x
		if i > 0 {
			n = yz[i-1]
		}
		if n < 1 || n > MaxGroups {
			return Size{err: fmt.Errorf("%w: %d workgroups along %c: it must be 1 to %d", ErrGrid, n, 'x'+i, MaxGroups)}
		}
		s.n[i] = uint32(n)
	}
	return s
}

// GridOf returns a grid of at least n workgroups in one dimension. It folds more than [MaxGroups]
// workgroups into two dimensions. Kernels for such a grid must use [Builder.Group] or
// [Builder.Index], and ignore groups from n on.
func GridOf(n int) Size {
	if n < 1 || int64(n) > MaxGroups*MaxGroups {
		return Size{err: fmt.Errorf("%w: %d workgroups are not possible", ErrGrid, n)}
	}
	y := (n-1)/MaxGroups + 1
	x := (n-1)/y + 1
	return Size{n: [3]uint32{uint32(x), uint32(y), 1}, folded: y > 1}
}

// GridFor returns the grid for n lanes in workgroups of local: n/local rounded up, folded as by
// [GridOf]. A launch of a kernel with another workgroup size over this grid is an error, because it
// would not cover all n lanes. [Kernel.GridFor] takes the size from the kernel; if a lane processes
// more than one element, use [GridOf].
func GridFor(n, local int) Size {
	if n < 1 || local < 1 {
		return Size{err: fmt.Errorf("%w: %d lanes in workgroups of %d lanes: both numbers must be positive", ErrGrid, n, local)}
	}
	s := GridOf((n-1)/local + 1)
	if s.err == nil && uint64(s.n[0])*uint64(s.n[1])*uint64(local) > 1<<32 {
		return Size{err: fmt.Errorf("%w: %d lanes are too many: the number of a lane has 32 bits", ErrGrid, n)}
	}
	s.local = local
	return s
}

// GridFor returns the grid for n lanes of the kernel: [GridFor] with the number of lanes of its
// workgroups.
func (k *Kernel) GridFor(n int) Size {
	if err := k.Err(); err != nil {
		return Size{err: err}
	}
	p, _ := k.Program()
	return GridFor(n, lanes(p.Local))
}

// lanes returns the number of lanes of a workgroup of the given size.
func lanes(local [3]uint32) int { return int(local[0] * local[1] * local[2]) }

// Groups returns the workgroups along x, y and z.
func (s Size) Groups() [3]uint32 { return s.n }

// Folded reports whether one dimension was folded into two. The kernel must then use
// [Builder.Group] or [Builder.Index].
func (s Size) Folded() bool { return s.folded }

// Err returns an error that wraps [ErrGrid] if the grid cannot be launched, and otherwise nil.
func (s Size) Err() error {
	if s.err == nil && s.n[0] == 0 {
		return fmt.Errorf("%w: the Size is zero: use Grid, GridOf or GridFor", ErrGrid)
	}
	return s.err
}

// errFor returns an error if the grid cannot be launched with workgroups of the size local: the
// error of [Size.Err], or an error if [GridFor] made the grid for another number of lanes.
func (s Size) errFor(local [3]uint32) error {
	if err := s.Err(); err != nil || s.local == 0 || s.local == lanes(local) {
		return err
	}
	return fmt.Errorf("%w: the grid is for workgroups of %d lanes, but the kernel's workgroups have %d", ErrGrid, s.local, lanes(local))
}

// CheckGrid returns an error that wraps [ErrGrid] if the kernel cannot be launched over s, and
// otherwise nil. This is the case if s has an error or is for workgroups of another size, or if s
// was folded and the kernel ignores y, so that workgroups would do the same work twice.
func (k *Kernel) CheckGrid(s Size) error {
	if err := k.Err(); err != nil {
		return err
	}
	p, _ := k.Program()
	if err := s.errFor(p.Local); err != nil || !s.folded {
		return err
	}
	why := "does not use Index or Group"
	if k.Text != nil {
		why = k.Text.Folded
	}
	for i := range p.Code {
		if in := &p.Code[i]; in.Code == ir.BuiltIn && in.Flag == ir.BuiltInGroupY {
			return nil
		}
	}
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: more than %d workgroups are folded into two dimensions, and kernel %s %s", ErrGrid, MaxGroups, k.name, why)
}
