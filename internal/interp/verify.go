package interp

import (
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// verify checks that a program is well formed and within the limits. The later phases rely on these
// checks: an invalid program must not make the interpreter panic or access other memory.
func verify(p *ir.Program, lim Limits) error {
	if p == nil {
		return ir.Verify(p)
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("kernel %s: %w: %s", p.Name, ErrLimit, fmt.Sprintf(format, args...))
	}
	lanes := uint64(1)
	for _, n := range p.Local {
		if lanes *= uint64(n); lanes > uint64(lim.Lanes) {
			return fail("local size %v has more than %d lanes", p.Local[:], lim.Lanes)
		}
	}
	if len(p.Code) > lim.Code {
		return fail("%d instructions, more than %d", len(p.Code), lim.Code)
	}
	shared := uint64(0)
	for _, a := range p.Shared {
		if shared += uint64(a.Len) * uint64(a.Width) * 4; shared > uint64(lim.Shared) {
			return fail("workgroup arrays up to %s take more than %d bytes", a.Name, lim.Shared)
		}
	}
	depth := 0
	for i := 1; i < len(p.Code); i++ {
		switch p.Code[i].Code {
		case ir.If, ir.For, ir.Loop:
			if depth++; depth > lim.Depth {
				return fail("blocks nested deeper than %d", lim.Depth)
			}
		case ir.End:
			depth--
		}
	}
	return ir.Verify(p)
}

// reduction returns the code that a SubgroupOp combines lanes with.
func reduction(in *ir.Instr) (ir.Code, bool) {
	num := in.Type != ir.Bool
	bit := in.Type.Integer() || in.Type == ir.Bool
	switch in.Flag {
	case ir.ReduceAdd:
		return ir.Add, num
	case ir.ReduceMin:
		return ir.Min, num
	case ir.ReduceMax:
		return ir.Max, num
	case ir.ReduceAnd:
		return ir.And, bit
	case ir.ReduceOr:
		return ir.Or, bit
	}
	return 0, false
}
