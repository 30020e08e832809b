package ptxkernels

import (
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// These kernels multiply a large matrix w by at most skinnyVectors vectors. Reading w once
// dominates the time. There is a kernel for each layout of w: K-major or not. They differ in how
// threads share a sum.

// skinnyVectors is the largest number of vectors for which memory bandwidth limits the kernels.
const skinnyVectors = 8

// skinnySpec specialises a kernel. Lines of w are rows of the result, or columns if Across is set.
type skinnySpec struct {
	Type    op.DType
	Vectors int
	Along   bool // w is K-major
	AlongX  bool // the vectors are K-major
	Width   int  // elements of w in a load
	Lines   int  // lines that a team processes at once (Along)
	Lanes   int  // lanes of a team in a warp (Along)
	Team    int  // warps of a team (Along): one if Lanes is not 32
	Across  bool
	Bias    bool
	Part    bool // split-K: the kernel writes partials, which another kernel adds
	key     string
}

const (
	skinnyThreads = 256
	skinnyAhead   = 4 // loads of w in flight in a thread, for each of its lines
)

var skinnies kernelCache[skinnySpec]

func skinnyKernel(s skinnySpec, e *epilogue) *Kernel {
	return skinnies.of(s, func() *Kernel {
		name, build := "skinny_columns", buildSkinnyColumns
		if s.Along {
			name, build = "skinny_rows", buildSkinnyRows
		}
		return &Kernel{Name: name, Target: ptx.SM75, Block: [3]uint32{skinnyThreads, 1, 1}, Build: func(k *ptx.Kernel) { build(k, s, e) }}
	})
}

// skinnyOf holds the values that both kernels use.
type skinnyOf struct {
	s           skinnySpec
	w, x        ptx.Global[ptx.U32]
	lines, k    ptx.U32
	pitch       ptx.U32 // stride of vectors, if AlongX
	from, to    ptx.U32 // range of terms of this block
	pair        ptx.U32
	bias, parts ptx.Global[ptx.U32]
	sink        *sink
	first       ptx.U32 // index of the first result of the product, or of the partial
}

func newSkinny(k *ptx.Kernel, s skinnySpec, e *epilogue) *skinnyOf {
	k.Block(skinnyThreads, 1, 1)
	o := &skinnyOf{s: s}
	w, x := ptx.GlobalParam[ptx.U32](k, "w"), ptx.GlobalParam[ptx.U32](k, "x")
	o.lines, o.k = ptx.Param[ptx.U32](k, "lines"), ptx.Param[ptx.U32](k, "k")
	strideW, strideX := ptx.Param[ptx.U32](k, "strideW"), ptx.Param[ptx.U32](k, "strideX")
	terms := ptx.Param[ptx.U32](k, "terms")
	o.pitch = ptx.Param[ptx.U32](k, "pitch")
	if s.Bias {
		o.bias = ptx.GlobalParam[ptx.U32](k, "bias").Hint(ptx.ReadOnly)
	}
	if s.Part {
		o.parts = ptx.GlobalParam[ptx.U32](k, "parts")
	} else {
		o.sink = e.sink(k)
	}
	o.pair = k.Special(ptx.CtaidZ)
	part := k.Special(ptx.CtaidY)
	o.w, o.x = elementAt(s.Type, w.Hint(ptx.Once), o.pair.Mul(strideW)), elementAt(s.Type, x.Hint(ptx.ReadOnly), o.pair.Mul(strideX))
	o.from = part.Mul(terms)
	o.to = o.from.Add(terms).Min(o.k)
	o.first = o.pair
	if s.Part {
		o.first = part.MulAdd(k.Special(ptx.NctaidZ), o.pair)
	}
	return o
}

// elementAt returns the address of element i of an array of type t.
func elementAt(t op.DType, p ptx.Global[ptx.U32], i ptx.U32) ptx.Global[ptx.U32] {
	if t.Size() == 4 {
		return p.At(i)
	}
	return ptx.Cast[ptx.U32](ptx.Cast[ptx.U16](p).At(i))
}

// vector loads n adjacent elements, up to 16 bytes with one access.
func vector(t op.DType, p ptx.Global[ptx.U32], i ptx.U32, n int) []ptx.F32 {
	if n != 8 {
		var y []ptx.F32
		for _, v := range loadElements(t, p, i, n) {
			y = append(y, ptx.F32(v))
		}
		return y
	}
	var y []ptx.F32
	for _, v := range elementAt(t, p, i).Load4() {
		if t == op.BF16 {
			y = append(y, v.Shl(ptx.U(16)).B32().Float(), v.And(ptx.U(0xffff0000)).B32().Float())
			continue
		}
		low, high := v.B32().F16x2().Halves()
		y = append(y, low.F32(), high.F32())
	}
	return y
}

// put stores the result for a line and a vector.
func (o *skinnyOf) put(line ptx.U32, vector int, v ptx.F32) {
	row, col, rows, cols := line, ptx.N(vector), o.lines, ptx.N(o.s.Vectors)
	if o.s.Across {
		row, col, rows, cols = col, row, cols, rows
	}
	row = o.first.MulAdd(rows, row)
	i := row.MulAdd(cols, col)
	if o.s.Part {
		ptx.Cast[ptx.F32](o.parts).At(i).Store(v)
		return
	}
	if o.s.Bias {
		v = v.Add(ptx.F32(loadElements(o.s.Type, o.bias, col, 1)[0]))
	}
	o.sink.setRow(row, col, i, v)
}

// terms loads n adjacent terms of all vectors, from j on. j is a multiple of n.
func (o *skinnyOf) terms(j ptx.U32, n int) [][]ptx.F32 {
	s := o.s
	y := make([][]ptx.F32, s.Vectors)
	if s.AlongX {
		for v := range y {
			y[v] = vector(s.Type, o.x, o.pitch.MulAdd(ptx.N(v), j), n)
		}
		return y
	}
	at, all := j.Mul(ptx.N(s.Vectors)), n*s.Vectors
	width := 8
	for all%width != 0 || width*s.Type.Size() > 16 {
		width /= 2
	}
	for i := 0; i < all; i += width {
		for q, x := range vector(s.Type, o.x, at.Add(ptx.N(i)), width) {
			y[(i+q)%s.Vectors] = append(y[(i+q)%s.Vectors], x)
		}
	}
	return y
}

// buildSkinnyRows writes the kernel for a K-major w. The lanes of a team iterate along one line or
// a few lines. A team is a warp, a part of a warp or several warps.
func buildSkinnyRows(k *ptx.Kernel, s skinnySpec, e *epilogue) {
	o := &skinnyRows{skinnyOf: newSkinny(k, s, e), k: k}
	t := k.Special(ptx.TidX)
	o.lane = k.Special(ptx.LaneID)
	o.warp = t.Shr(ptx.U(5))
	group := k.Special(ptx.CtaidX).MulAdd(ptx.N(skinnyWarps/s.Team), o.warp.Div(ptx.N(s.Team)))
	o.place = o.warp.Rem(ptx.N(s.Team)).MulAdd(ptx.U(32), o.lane)
	if s.Lanes < 32 {
		group, o.place = group.MulAdd(ptx.N(32/s.Lanes), o.lane.Div(ptx.N(s.Lanes))), o.lane.Rem(ptx.N(s.Lanes))
	}
	o.line = group.Mul(ptx.N(s.Lines))
	o.multiply()
	o.finish(o.total())
}

// skinnyWarps is the number of warps in a block.
const skinnyWarps = skinnyThreads / 32

// skinnyRows is the code of buildSkinnyRows. If registers allow, each line and vector has several
// accumulators, which shortens the chains of additions.
type skinnyRows struct {
	*skinnyOf
	k          *ptx.Kernel
	warp, lane ptx.U32
	place      ptx.U32 // index of the lane in its team
	line       ptx.U32 // first line of the team
	sums       [][][]ptx.Var[ptx.F32]
}

// multiply adds the products along the lines.
func (o *skinnyRows) multiply() {
	k, s := o.k, o.s
	rows := make([]ptx.Global[ptx.U32], s.Lines)
	for r := range rows {
		rows[r] = elementAt(s.Type, o.w, o.line.Add(ptx.N(r)).Min(o.lines.Sub(ptx.U(1))).Mul(o.skinnyOf.k))
	}
	separate := skinnyAhead
	for s.Lines*s.Vectors*separate > 32 && separate > 1 {
		separate /= 2
	}
	o.sums = make([][][]ptx.Var[ptx.F32], separate)
	for a := range o.sums {
		o.sums[a] = make([][]ptx.Var[ptx.F32], s.Lines)
		for r := range o.sums[a] {
			for range s.Vectors {
				o.sums[a][r] = append(o.sums[a][r], ptx.NewVar(k, ptx.F(0)))
			}
		}
	}
	step := s.Lanes * s.Team * s.Width
	turn := func(j ptx.U32, ahead int) {
		var w [skinnyAhead][][]ptx.F32
		for a := range ahead {
			for _, p := range rows {
				w[a] = append(w[a], vector(s.Type, p, j.Add(ptx.N(a*step)), s.Width))
			}
		}
		for a := range ahead {
			x := o.terms(j.Add(ptx.N(a*step)), s.Width)
			for r := range rows {
				for v := range x {
					for q := range s.Width {
						ptx.MulAddTo(o.sums[a%separate][r][v], w[a][r][q], x[v][q])
					}
				}
			}
		}
	}
	many := step * skinnyAhead
	mine := o.from.Add(o.place.Mul(ptx.N(s.Width)))
	whole := o.to.Sub(o.from).Div(ptx.N(many)).Mul(ptx.N(many))
	k.For(mine, o.from.Add(whole), ptx.N(many), func(j ptx.U32) { turn(j, skinnyAhead) })
	k.For(mine.Add(whole), o.to, ptx.N(step), func(j ptx.U32) { turn(j, 1) })
}

// total returns the sums of each line and vector over the lanes of a warp.
func (o *skinnyRows) total() (total []ptx.F32) {
	for r := range o.s.Lines {
		for v := range o.s.Vectors {
			x := o.sums[0][r][v].Get()
			for a := 1; a < len(o.sums); a++ {
				x = x.Add(o.sums[a][r][v].Get())
			}
			for d := uint32(o.s.Lanes / 2); d > 0; d /= 2 {
				x = x.Add(ptx.ShuffleXor(x, ptx.U(d)))
			}
			total = append(total, x)
		}
	}
	return total
}

// finish adds the sums of the warps of a team and stores the results.
func (o *skinnyRows) finish(total []ptx.F32) {
	k, s := o.k, o.s
	store := func() {
		for r := range s.Lines {
			at := o.line.Add(ptx.N(r))
			k.If(at.Lt(o.lines), func() {
				for v := range s.Vectors {
					o.put(at, v, total[r*s.Vectors+v])
				}
			})
		}
	}
	if s.Team == 1 {
		k.If(o.place.Eq(ptx.U(0)), store)
		return
	}
	shared := ptx.SharedArray[ptx.F32](k, "sums", skinnyWarps*len(total))
	k.If(o.lane.Eq(ptx.U(0)), func() {
		for i, x := range total {
			shared.At(o.warp.MulAdd(ptx.N(len(total)), ptx.N(i))).Store(x)
		}
	})
	k.Sync()
	k.If(o.place.Eq(ptx.U(0)), func() {
		for w := 1; w < s.Team; w++ {
			for i := range total {
				total[i] = total[i].Add(shared.At(o.warp.Add(ptx.N(w)).MulAdd(ptx.N(len(total)), ptx.N(i))).Load())
			}
		}
		store()
	})
}

// buildSkinnyColumns writes the kernel for a w that is not K-major. Each lane has a few lines,
// adjacent lanes have adjacent lines, and the warps of a block divide the terms.
func buildSkinnyColumns(k *ptx.Kernel, s skinnySpec, e *epilogue) {
	o := newSkinny(k, s, e)
	t, lane := k.Special(ptx.TidX), k.Special(ptx.LaneID)
	warps := skinnyWarps
	warp := t.Shr(ptx.U(5))
	left := k.Special(ptx.CtaidX).Mul(ptx.N(32 * s.Width))
	// Lanes beyond the matrix load the last lines again. The number of lines is a multiple of
	// Width, so no lane is partly beyond it.
	line := left.Add(lane.Mul(ptx.N(s.Width))).Min(o.lines.Sub(ptx.N(s.Width)))
	sums := make([][]ptx.Var[ptx.F32], s.Vectors)
	for v := range sums {
		for range s.Width {
			sums[v] = append(sums[v], ptx.NewVar(k, ptx.F(0)))
		}
	}
	turn := func(j ptx.U32, ahead int) {
		var w [2 * skinnyAhead][]ptx.F32
		for a := range ahead {
			w[a] = vector(s.Type, o.w, j.Add(ptx.N(a*warps)).MulAdd(o.lines, line), s.Width)
		}
		for a := range ahead {
			x := o.terms(j.Add(ptx.N(a*warps)), 1)
			for v := range x {
				for q := range s.Width {
					ptx.MulAddTo(sums[v][q], w[a][q], x[v][0])
				}
			}
		}
	}
	ahead := 2 * skinnyAhead
	if s.Width*s.Vectors > 16 {
		ahead = skinnyAhead
	}
	many := warps * ahead
	whole := o.to.Sub(o.from).Div(ptx.N(many)).Mul(ptx.N(many))
	mine := o.from.Add(warp)
	k.For(mine, o.from.Add(whole), ptx.N(many), func(j ptx.U32) { turn(j, ahead) })
	k.For(mine.Add(whole), o.to, ptx.N(warps), func(j ptx.U32) { turn(j, 1) })

	o.addWarps(k, sums, left, t, warp, lane)
}

// addWarps adds the sums of all warps and stores the results. The lines of the block begin at left.
func (o *skinnyOf) addWarps(k *ptx.Kernel, sums [][]ptx.Var[ptx.F32], left, t, warp, lane ptx.U32) {
	s, warps := o.s, skinnyWarps
	across := 32 * s.Width
	shared := ptx.SharedArray[ptx.F32](k, "sums", warps*across*s.Vectors)
	for v := range sums {
		to := shared.At(warp.MulAdd(ptx.N(across*s.Vectors), lane.MulAdd(ptx.N(s.Width), ptx.N(v*across))))
		for q, x := range sums[v] {
			to.Offset(q).Store(x.Get())
		}
	}
	k.Sync()
	for v := range s.Vectors {
		k.If(t.Lt(ptx.N(across)), func() {
			c := left.Add(t)
			k.If(c.Lt(o.lines), func() {
				sum := ptx.F(0)
				for w := range warps {
					sum = sum.Add(shared.At(t.Add(ptx.N((w*s.Vectors + v) * across))).Load())
				}
				o.put(c, v, sum)
			})
		})
	}
}
