package ptxkernels

import (
	"fmt"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

func init() { register(planSkinny, op.MatVec) }

// skinnyRequest is a product of a matrix and a few vectors.
type skinnyRequest struct {
	*portable.Request
	d                *Device
	spec             skinnySpec
	w, x             int // operands
	lines, k, batch  int
	strideW, strideX int
	e                *epilogue
}

// newSkinnyRequest returns the request, or an error if r is not such a product.
func newSkinnyRequest(r *portable.Request, d *Device) (*skinnyRequest, error) {
	q := &skinnyRequest{Request: r, d: d, x: 1, batch: 1}
	s := &q.spec
	s.Type, s.Vectors = r.In[0].Type, 1
	columns := 1
	if r.Op == op.MatVec {
		q.lines, q.k = r.In[0].Shape[0], r.In[0].Shape[1]
		if s.Along = !op.MatVecOptsOf(&r.Attrs).Trans; !s.Along {
			q.lines, q.k = q.k, q.lines
		}
		s.AlongX = true
	} else {
		p, err := op.MatMulOf(&r.Attrs, []op.Shape{r.In[0].Shape, r.In[1].Shape})
		if err != nil {
			return nil, err
		}
		o := op.MatMulOptsOf(&r.Attrs)
		if p.SharedB && !o.TransA {
			p.M, p.Batch = p.Batch*p.M, 1
		}
		q.k, q.batch, columns = p.K, p.Batch, p.N
		q.strideW, q.strideX = p.M*p.K, p.K*p.N
		if p.SharedB {
			q.strideX = 0
		}
		q.lines, s.Vectors, s.Along, s.AlongX = p.M, p.N, !o.TransA, o.TransB
		if p.M < p.N {
			s.Across = true
			q.w, q.x, q.strideW, q.strideX = 1, 0, q.strideX, q.strideW
			q.lines, s.Vectors, s.Along, s.AlongX = p.N, p.M, o.TransB, !o.TransA
		}
		s.Bias = len(r.In) > 2 && r.In[2].Shape != nil
	}
	if s.Vectors > skinnyVectors || q.k == 0 || q.batch > 1<<15 {
		return nil, unsupported("%d vectors of %d, %d times", s.Vectors, q.k, q.batch)
	}
	if t := s.Type; t != op.F32 && t != op.F16 && t != op.BF16 || d.Target < ptx.SM75 || t == op.BF16 && d.Target < ptx.SM80 {
		return nil, unsupported("products of %v on %v", t, d.Target)
	}
	var err error
	q.e, err = finish(r, columns)
	return q, err
}

func planSkinny(r *portable.Request, d *Device) (*Plan, error) {
	q, err := newSkinnyRequest(r, d)
	if err != nil {
		return nil, err
	}
	return q.plan(), nil
}

// plan chooses the split of the work. Every multiprocessor should get some blocks, and no
// accumulator may add too many terms.
func (q *skinnyRequest) plan() *Plan {
	s := q.spec
	enough := 4 * q.d.Multiprocessors
	inner := q.k
	if !s.Along {
		inner = q.lines
	}
	s.Width = 16 / s.Type.Size()
	for inner%s.Width != 0 || !s.Along && s.Width*s.Vectors > 32 {
		s.Width /= 2
	}
	s.Lines, s.Team, s.Lanes = 1, 1, 32
	var blocks, each int
	if s.Along {
		warps := skinnyThreads / 32
		for s.Lines < 4 && s.Lines < s.Vectors && q.batch*q.lines/(2*s.Lines*warps) >= enough {
			s.Lines *= 2
		}
		if q.batch*q.lines/warps < enough && q.k > 1024 {
			s.Team = warps
		}
		for s.Team == 1 && s.Lanes > 4 && s.Lanes*s.Width*skinnyAhead/2 >= q.k {
			s.Lanes /= 2
		}
		blocks, each = ceil(q.lines, s.Lines*warps*32/(s.Team*s.Lanes)), s.Lanes*s.Team
	} else {
		blocks, each = ceil(q.lines, 32*s.Width), skinnyThreads/32
	}
	// Parts of the sum are multiples of unit terms: a thread has at least 16 loads, and parts begin
	// at vectors.
	const unit = 64
	minimum := 16 * each
	if s.Along {
		minimum *= s.Width
	}
	split := max(1, min(enough/max(1, blocks*q.batch), q.k/minimum))
	split = max(split, ceil(q.k, exactTerms*each))
	terms := ceil(ceil(q.k, split), unit) * unit
	split = ceil(q.k, terms)
	s.Part, s.key = split > 1, q.e.key
	bias := s.Bias
	if s.Part {
		s.Bias, s.key = false, ""
	}
	p := &Plan{Variant: fmt.Sprintf("skinny*%d", split)}
	x, pitch, strideX := input(q.x), q.k, q.strideX
	if s.Along && !s.AlongX && s.Vectors > 2 && s.Type == op.F32 {
		// Otherwise lanes with adjacent terms would read x with a large stride.
		pitch, s.AlongX = packedPitch(q.k), true
		n := q.batch
		if strideX == 0 {
			n = 1
		} else {
			strideX = s.Vectors * pitch
		}
		x = p.temporary(n * s.Vectors * pitch)
		p.Stages = append(p.Stages, layOut(input(q.x), x, q.k, s.Vectors, n, true))
	}
	args := []Arg{input(q.w), x, word(uint32(q.lines)), word(uint32(q.k)), word(uint32(q.strideW)), word(uint32(strideX)), word(uint32(terms)), word(uint32(pitch))}
	if s.Bias {
		args = append(args, input(2))
	}
	var parts Arg
	if s.Part {
		parts = p.temporary(split * q.batch * q.lines * s.Vectors)
		args = append(args, parts)
	} else {
		args = append(args, q.e.args()...)
	}
	p.Stages = append(p.Stages, Stage{Kernel: skinnyKernel(s, q.e), Grid: [3]uint32{uint32(blocks), uint32(split), uint32(q.batch)}, Args: args, Zero: -1})
	if s.Part {
		columns := s.Vectors
		if s.Across {
			columns = q.lines
		}
		p.Stages = append(p.Stages, sumParts(s.Type, q.batch*q.lines*s.Vectors, columns, split, bias, parts, q.e))
	}
	return p
}
