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

// Measured limits of the schedules of products with few vectors.
const (
	skinnyBlocks    = 4    // blocks for each multiprocessor that are enough
	skinnyMaxLines  = 4    // lines of a team of lanes
	skinnyMinTeam   = 1024 // terms above which a whole block shares a line, if blocks are few
	skinnyMinLanes  = 4    // lanes of a line with few terms
	skinnyMaxSums   = 32   // sums of a lane whose lines are not contiguous
	skinnyMinLoads  = 16   // loads of a thread of a part of the sum
	skinnyUnit      = 64   // parts of the sum are multiples of this many terms, so that they begin at vectors
	skinnyMinPacked = 3    // vectors from which the stride of float32 vectors costs more than to lay them out
)

// schedule chooses the vectors, lines and lanes. It returns the number of blocks for one part of the
// sum, and the number of threads that share a line.
func (q *skinnyRequest) schedule(s *skinnySpec) (blocks, each int) {
	enough := skinnyBlocks * q.d.Multiprocessors
	inner := q.k
	if !s.Along {
		inner = q.lines
	}
	s.Width = 16 / s.Type.Size()
	for inner%s.Width != 0 || !s.Along && s.Width*s.Vectors > skinnyMaxSums {
		s.Width /= 2
	}
	s.Lines, s.Team, s.Lanes = 1, 1, 32
	if !s.Along {
		return ceil(q.lines, 32*s.Width), skinnyThreads / 32
	}
	warps := skinnyThreads / 32
	for s.Lines < skinnyMaxLines && s.Lines < s.Vectors && q.batch*q.lines/(2*s.Lines*warps) >= enough {
		s.Lines *= 2
	}
	if q.batch*q.lines/warps < enough && q.k > skinnyMinTeam {
		s.Team = warps
	}
	for s.Team == 1 && s.Lanes > skinnyMinLanes && s.Lanes*s.Width*skinnyAhead/2 >= q.k {
		s.Lanes /= 2
	}
	return ceil(q.lines, s.Lines*warps*32/(s.Team*s.Lanes)), s.Lanes * s.Team
}

// split divides the sums into parts, so that every multiprocessor gets some blocks and no accumulator
// adds too many terms. It returns the number of parts and the terms of each.
func (q *skinnyRequest) split(s *skinnySpec, blocks, each int) (parts, terms int) {
	minimum := skinnyMinLoads * each
	if s.Along {
		minimum *= s.Width
	}
	parts = max(1, min(skinnyBlocks*q.d.Multiprocessors/max(1, blocks*q.batch), q.k/minimum))
	parts = max(parts, ceil(q.k, exactTerms*each))
	terms = ceil(ceil(q.k, parts), skinnyUnit) * skinnyUnit
	return ceil(q.k, terms), terms
}

// layOut adds a launch that lays out x along the terms if lanes with adjacent terms would read it with
// a large stride. It returns x, the distance between its vectors, and the distance between products.
func (q *skinnyRequest) layOut(p *Plan, s *skinnySpec) (x Arg, pitch, stride int) {
	x, pitch, stride = input(q.x), q.k, q.strideX
	if !s.Along || s.AlongX || s.Vectors < skinnyMinPacked || s.Type != op.F32 {
		return x, pitch, stride
	}
	pitch, s.AlongX = packedPitch(q.k), true
	n := q.batch
	if stride == 0 {
		n = 1
	} else {
		stride = s.Vectors * pitch
	}
	x = p.temporary(n * s.Vectors * pitch)
	p.Stages = append(p.Stages, layOut(input(q.x), x, q.k, s.Vectors, n, true))
	return x, pitch, stride
}

// plan returns the plan: one launch, and launches before and after it if needed.
func (q *skinnyRequest) plan() *Plan {
	s := q.spec
	blocks, each := q.schedule(&s)
	split, terms := q.split(&s, blocks, each)
	s.Part, s.key = split > 1, q.e.key
	bias := s.Bias
	if s.Part {
		s.Bias, s.key = false, ""
	}
	p := &Plan{Variant: fmt.Sprintf("skinny*%d", split)}
	x, pitch, strideX := q.layOut(p, &s)
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
