package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// pitch returns the row stride in shared memory, in words.
func (s attentionMMA) pitch() int {
	if s.Type == op.F32 {
		return s.Head + 4 // rows begin 4 banks apart
	}
	return s.Head / 2
}

// piece returns the first word of the 16-byte piece c of a row. The pieces of 16-bit types are
// permuted by the row modulo 8, so that loads of a matrix have no bank conflicts.
func (s attentionMMA) piece(c, row ptx.U32) ptx.U32 {
	if s.Type != op.F32 {
		c = c.Xor(row)
	}
	return c.Mul(ptx.U(4))
}

// matrixLane has the parts of the address that a lane passes to ldmatrix, for four matrices of 8
// rows of 16 bytes: the row, and the low and high bit of the index of the matrix. For keys, which
// are summed along their rows, the second matrix is to the right of the first. For queries, and for
// values, which are transposed, it is below the first.
type matrixLane struct {
	row, low, high ptx.U32
}

func newMatrixLane(k *ptx.Kernel) matrixLane {
	lane := k.Special(ptx.LaneID)
	m := lane.Shr(ptx.U(3))
	return matrixLane{row: lane.And(ptx.U(7)), low: m.And(ptx.U(1)), high: m.Shr(ptx.U(1))}
}

func (m matrixLane) below() ptx.U32  { return m.low.MulAdd(ptx.U(8), m.row) }
func (m matrixLane) beside() ptx.U32 { return m.high.MulAdd(ptx.U(8), m.row) }

// halfProducts multiplies 16-bit types with mma.m16n8k16.
type halfProducts struct {
	s       attentionMMA
	k       *ptx.Kernel
	m       matrixLane
	queries func(c int) [4]ptx.B32
}

func newHalfProducts(s attentionMMA, k *ptx.Kernel, qs ptx.Shared[ptx.B32], slice ptx.U32) *halfProducts {
	p := &halfProducts{s: s, k: k, m: newMatrixLane(k)}
	at := p.places(qs, slice.MulAdd(ptx.U(16), p.m.below()), p.m.high)
	p.queries = func(c int) [4]ptx.B32 { return p.load(at, 0, c, false) }
	if s.Head <= 128 { // the queries fit into registers
		resident := make([][4]ptx.B32, s.Head/16)
		for c := range resident {
			resident[c] = p.queries(c)
		}
		p.queries = func(c int) [4]ptx.B32 { return resident[c] }
	}
	return p
}

// places returns the addresses of the pieces 2c (2c+1 if bit is 1) of a row, for c from 0 to 3.
func (p *halfProducts) places(x ptx.Shared[ptx.B32], row, bit ptx.U32) (at [4]ptx.Shared[ptx.B32]) {
	for c := range at {
		if 16*c < p.s.Head {
			at[c] = x.At(row.MulAdd(ptx.N(p.s.pitch()), p.s.piece(bit.Xor(ptx.N(2*c)), p.m.row)))
		}
	}
	return at
}

func (p *halfProducts) load(at [4]ptx.Shared[ptx.B32], row, c int, trans bool) [4]ptx.B32 {
	return ptx.LoadMatrix4(at[c%4].Offset(row*p.s.pitch()+c/4*32), trans)
}

func (p *halfProducts) keys(tile ptx.Shared[ptx.B32], row ptx.U32, scores [][4]ptx.Var[ptx.F32]) {
	h, at := half(p.s.Type), p.places(tile, row.Add(p.m.beside()), p.m.low)
	for c := range p.s.Head / 16 {
		x := p.queries(c)
		for j := 0; j < len(scores); j += 2 {
			y := p.load(at, 8*j, c, false)
			h.mma(p.k, &scores[j], x, [2]ptx.B32{y[0], y[1]})
			h.mma(p.k, &scores[j+1], x, [2]ptx.B32{y[2], y[3]})
		}
	}
}

func (p *halfProducts) values(tile ptx.Shared[ptx.B32], row ptx.U32, weights [][4]ptx.F32, sums [][4]ptx.Var[ptx.F32]) {
	h, at := half(p.s.Type), p.places(tile, row.Add(p.m.below()), p.m.high)
	for c := range len(weights) / 2 {
		var x [4]ptx.B32
		for i := range x {
			w := weights[2*c+i/2]
			x[i] = h.pack(w[i%2*2], w[i%2*2+1])
		}
		for j := 0; j < len(sums); j += 2 {
			y := p.load(at, 16*c, j/2, true)
			h.mma(p.k, &sums[j], x, [2]ptx.B32{y[0], y[1]})
			h.mma(p.k, &sums[j+1], x, [2]ptx.B32{y[2], y[3]})
		}
	}
}

// singleProducts multiplies float32 with mma.m16n8k8 of TF32, which has 11 of the 24 significant
// bits. Each operand is split into a sum of two TF32 numbers, and three of the four products are
// added. The omitted product is at most 2**-20 of the result, which is a few rounding errors.
type singleProducts struct {
	s       attentionMMA
	k       *ptx.Kernel
	m       matrixLane
	queries ptx.Shared[ptx.B32]
}

func newSingleProducts(s attentionMMA, k *ptx.Kernel, qs ptx.Shared[ptx.B32], slice ptx.U32) *singleProducts {
	p := &singleProducts{s: s, k: k, m: newMatrixLane(k)}
	p.queries = qs.At(slice.MulAdd(ptx.U(16), p.m.below()).MulAdd(ptx.N(s.pitch()), p.m.high.Mul(ptx.U(4))))
	return p
}

// split splits a number into the nearest TF32 number (halves are rounded away from 0) and the rest,
// whose lowest bits the products ignore. cvt.rna.tf32 would take five instructions here, because it
// handles NaN. If the addition overflows a NaN in the first part, the second part is still NaN.
func split(x ptx.F32) (high, low ptx.B32) {
	const ignored = 1<<13 - 1
	high = x.Bits().U32().Add(ptx.U((ignored + 1) / 2)).And(ptx.U(^uint32(ignored))).B32()
	return high, x.Sub(high.Float()).Bits()
}

// mma adds the products of the parts of a and b to acc, the small products first.
func (p *singleProducts) mma(acc *[4]ptx.Var[ptx.F32], a [2][4]ptx.B32, b [2][2]ptx.B32) {
	p.k.MmaTF32(acc, a[1], b[0])
	p.k.MmaTF32(acc, a[0], b[1])
	p.k.MmaTF32(acc, a[0], b[0])
}

func (p *singleProducts) keys(tile ptx.Shared[ptx.B32], row ptx.U32, scores [][4]ptx.Var[ptx.F32]) {
	pitch := p.s.pitch()
	at := tile.At(row.Add(p.m.beside()).MulAdd(ptx.N(pitch), p.m.low.Mul(ptx.U(4))))
	for c := range p.s.Head / 8 {
		var x [2][4]ptx.B32
		for i, v := range ptx.LoadMatrix4(p.queries.Offset(8*c), false) {
			x[0][i], x[1][i] = split(v.Float())
		}
		for j := 0; j < len(scores); j += 2 {
			var y [2][2][2]ptx.B32
			for i, v := range ptx.LoadMatrix4(at.Offset(8*j*pitch+8*c), false) {
				y[i/2][0][i%2], y[i/2][1][i%2] = split(v.Float())
			}
			p.mma(&scores[j], x, y[0])
			p.mma(&scores[j+1], x, y[1])
		}
	}
}

// values multiplies each 8 keys in the order in which a lane holds their weights: with q the lane
// modulo 4, column q of the first operand is key 2q, and column q+4 is key 2q+1. The rows of the
// second operand have the same order.
func (p *singleProducts) values(tile ptx.Shared[ptx.B32], row ptx.U32, weights [][4]ptx.F32, sums [][4]ptx.Var[ptx.F32]) {
	pitch, lane := p.s.pitch(), p.k.Special(ptx.LaneID)
	at := ptx.CastShared[ptx.F32](tile).At(row.Add(lane.And(ptx.U(3)).Mul(ptx.U(2))).MulAdd(ptx.N(pitch), lane.Shr(ptx.U(2))))
	for c, w := range weights {
		var x [2][4]ptx.B32
		for i, e := range []int{0, 2, 1, 3} {
			x[0][i], x[1][i] = split(w[e])
		}
		for j := range sums {
			var y [2][2]ptx.B32
			for i := range 2 {
				y[0][i], y[1][i] = split(at.Offset((8*c+i)*pitch + 8*j).Load())
			}
			p.mma(&sums[j], x, y)
		}
	}
}
