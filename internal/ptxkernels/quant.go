package ptxkernels

import (
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planMatMulQ, op.MatMulQ) }

// planMatMulQ plans products with quantised matrices.
func planMatMulQ(r *portable.Request, d *Device) (*Plan, error) {
	p, err := op.MatMulQOf([]op.Shape{r.In[0].Shape, r.In[1].Shape})
	if err != nil {
		return nil, err
	}
	switch {
	case blockDecoders[r.In[1].Type.Block()] == nil:
		return nil, unsupported("blocks of %v", r.In[1].Type)
	case p.K == 0:
		return nil, unsupported("a sum of no terms")
	case d.Target < ptx.SM80:
		return nil, unsupported("products with blocks on %v", d.Target)
	}
	if p.M <= maxFew {
		schedules := []func(op.Product, op.DType, op.DType, *Device) (*quantFewSpec, error){quantRingFor, quantFewFor}
		if p.M > ringRows(r.In[1].Type, ceilDiv(p.K, digitGroup)) {
			schedules[0], schedules[1] = schedules[1], schedules[0]
		}
		var err error
		for _, schedule := range schedules {
			var s *quantFewSpec
			if s, err = schedule(p, r.In[0].Type, r.In[1].Type, d); err == nil {
				return s.plan(r, p, d)
			}
		}
		if p.M == 1 {
			return nil, err
		}
	}
	s, err := quantManyFor(p, r.In[0].Type, r.In[1].Type, d)
	if err != nil {
		return nil, err
	}
	return s.plan(r, p, d)
}
