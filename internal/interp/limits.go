package interp

import (
	"errors"

	"github.com/rayo-go/rayo/internal/ir"
)

// ErrLimit is wrapped by errors about kernels that exceed a [Limits].
var ErrLimit = errors.New("beyond the limit")

// ErrProgram is wrapped by errors about a program that is not well formed.
var ErrProgram = ir.ErrProgram

// ErrLaunch is wrapped by errors about a launch that does not fit its kernel.
var ErrLaunch = errors.New("launch does not fit the kernel")

// Limits are the limits of a kernel. A field of 0 means the default.
type Limits struct {
	Lanes    int // of a workgroup; 1024
	Shared   int // bytes of workgroup memory; 64 KiB
	Register int // bytes of registers and variables of a workgroup; 64 MiB
	Groups   int // workgroups along each dimension of a grid; 65535
	Code     int // instructions; 1 Mi
	Depth    int // of nested blocks; 256
}

func (l Limits) withDefaults() Limits {
	or := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	or(&l.Lanes, 1024)
	or(&l.Shared, 64<<10)
	or(&l.Register, 64<<20)
	or(&l.Groups, 65535)
	or(&l.Code, 1<<20)
	or(&l.Depth, 256)
	return l
}
