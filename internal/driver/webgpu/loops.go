package webgpu

import (
	"strings"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/portable"
)

// Mesa's lavapipe ends the loops of a lane without an error after 65,535 iterations in total, so a
// sum would have only some of its terms. (The constant is LP_MAX_TGSI_LOOP_ITERATIONS.) A loop that
// ends by its condition takes one more iteration, for the last test. The reference computes
// operations with more iterations.
const maxIterations = 65535

// endsLoops reports whether the driver would end loops of the plan. size says how many bytes
// an array has.
func (d *device) endsLoops(p *portable.Plan, size func(portable.Ref) int64) (bool, error) {
	if !strings.Contains(d.info.Name, "llvmpipe") {
		return false, nil
	}
	for i := range p.Stages {
		s := &p.Stages[i]
		prog, err := s.Kernel.Program()
		if err != nil {
			return false, err
		}
		l := ir.Launch{Grid: s.Grid, Params: s.Params, Subgroup: d.library.Subgroup}
		for i := range prog.Bindings {
			n, err := elements(&prog.Bindings[i], size(s.Bind[i]))
			if err != nil {
				return false, err
			}
			l.Lengths = append(l.Lengths, n)
		}
		if l.Iterations(prog) > maxIterations && l.SampledIterations(prog) > maxIterations {
			return true, nil
		}
	}
	return false, nil
}
