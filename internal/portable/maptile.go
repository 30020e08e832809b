//go:build !js || !nowebgpu

package portable

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/op"
)

// Kernels with tiles compute elementwise programs with one permuted operand, for example x + yᵀ. A tile
// is a block of elements with long contiguous runs both in the operand and in the result. A workgroup
// reads the tile in the operand's order and stores it in workgroup memory. Then it computes the elements
// and writes them in the result's order. Neighbouring lanes therefore access neighbouring elements in
// both arrays.

// tileRuns are the lengths of the runs of a tile: the numbers of neighbouring elements in the result
// and in memory that it has at least, if the arrays have them and elements have four bytes.
type tileRuns struct{ Result, Memory int }

// bestRuns are the fastest of 64×32, 32×32 and 32×64 for most permutations on an H200: see
// docs/measurements/gpu.md.
var bestRuns = tileRuns{Result: 64, Memory: 32}

// mapTile specialises the kernels. Ext are the extents of the tile along the factors of the layout
// of operand At.
type mapTile struct {
	At, Lanes int
	Ext       [op.MaxRank]int
}

const (
	minTiled    = 1024 // elements from which on programs use tiles
	tileWords   = 4096 // words of workgroup memory: every device has as many
	tileLanes   = 256
	sectorBytes = 32 // devices access memory in sectors of this size
	// unrolledNodes limits the programs whose elements are computed in an unrolled loop.
	unrolledNodes = 16
)

// mapTiles are the functions for kernels with tiles. They are zero if the program does not use
// [UseMoves].
var mapTiles struct {
	operand func(in []Operand) int
	plan    func(e *epilogue, name string, p mapParams, bind []Ref) (*Plan, error)
}

// useTiles sets mapTiles.
func useTiles() { mapTiles.operand, mapTiles.plan = tiledOperand, planTiles }

// tiledOperand returns the index of the only operand that kernels should read by tiles, or -1.
func tiledOperand(in []Operand) int {
	at := -1
	for i := range in {
		if in[i].Broadcast != op.Strided || !scattered(&in[i]) {
			continue
		}
		if at >= 0 || in[i].Layout.Windowed() {
			return -1
		}
		at = i
	}
	return at
}

// scattered reports whether the elements of an operand are in another order in memory than in the
// result, and have short runs of elements that are neighbours in both.
func scattered(in *Operand) bool {
	fs := in.Layout.Factors()
	if len(fs) < 2 || fs[len(fs)-1].Stride == 0 {
		return false
	}
	run := in.Type.Size()
	for i, k := range memoryOrder(fs) {
		if k != len(fs)-1-i {
			return run < sectorBytes
		}
		run *= fs[k].N
	}
	return false
}

// memoryOrder returns the indices of factors by the distances of their neighbours in memory.
// Factors that repeat elements come last.
func memoryOrder(fs []op.Factor) []int {
	order := resultOrder(fs)
	far := func(k int) uint { return uint(max(fs[k].Stride, -fs[k].Stride) - 1) } // 0 becomes the maximum
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(far(i), far(j)) })
	return order
}

// resultOrder returns the indices of factors, the fastest first.
func resultOrder(fs []op.Factor) []int {
	order := make([]int, len(fs))
	for i := range order {
		order[i] = len(fs) - 1 - i
	}
	return order
}

// chooseTile returns the tile for a layout and elements of the given size, with the cheapest
// extents and number of lanes.
func chooseTile(l *op.Layout, bytes int, s tileRuns) mapTile {
	fs := l.Factors()
	if bytes < 4 && s.Result*s.Memory <= tileWords/4 {
		s.Result *= 2 // so that the runs have more bytes
	}
	var t mapTile
	for k := range fs {
		t.Ext[k] = 1
	}
	rows, cols := resultOrder(fs), memoryOrder(fs)
	target, long := s.Result*s.Memory, s
	a, b := t.grow(fs, rows, long.Result), t.grow(fs, cols, long.Memory)
	// If the runs share factors, longer runs make the tile large enough.
	for t.elements() < min(target/2, l.Size()) {
		if long.Result <= long.Memory {
			long.Result *= 2
			a = t.grow(fs, rows, long.Result)
		} else {
			long.Memory *= 2
			b = t.grow(fs, cols, long.Memory)
		}
	}
	most := max(target*5/4, t.elements())
	if most > tileWords*3/4 { // the runs have too many factors
		return chooseTile(l, 4, tileRuns{s.Result / 2, s.Memory / 2})
	}
	least, best := math.Inf(1), t
	try := func() {
		if t.elements() > most {
			return
		}
		if c := t.fit(fs, rows, cols); c < least {
			least, best = c, t
		}
	}
	t.each(fs, a, func() {
		if a == b {
			try()
		} else {
			t.each(fs, b, try)
		}
	})
	return best
}

// grow extends the tile along factors in the given order until their product is side, and returns
// the last of them.
func (t *mapTile) grow(fs []op.Factor, order []int, side int) (last int) {
	p := 1
	for _, last = range order {
		t.Ext[last] = max(t.Ext[last], min(fs[last].N, (side-1)/p+1))
		if p *= t.Ext[last]; p >= side*3/4 {
			break
		}
	}
	return last
}

// each calls f for extents of the tile along factor k from the present one to twice of it.
func (t *mapTile) each(fs []op.Factor, k int, f func()) {
	n := fs[k].N
	least := t.Ext[k]
	defer func() { t.Ext[k] = least }()
	step := 1
	for step*8 <= least {
		step *= 2
	}
	for e := (least + step - 1) / step * step; e < min(2*least, n); e += step {
		t.Ext[k] = e
		f()
	}
	for blocks := n / least; blocks == n/least || n/blocks >= least*3/4 && n > least; blocks++ {
		t.Ext[k] = (n-1)/blocks + 1 // all blocks have nearly this extent
		f()
	}
}

func (t *mapTile) elements() int {
	n := 1
	for _, e := range t.Ext {
		n *= max(e, 1)
	}
	return n
}

// fit sets the number of lanes that computes a whole array by such tiles at the least cost, and returns an
// estimate of this cost.
func (t *mapTile) fit(fs []op.Factor, rows, cols []int) float64 {
	n, tiles, traffic := t.elements(), 1, t.traffic(fs, rows)*t.traffic(fs, cols)
	for k, f := range fs {
		tiles *= (f.N-1)/t.Ext[k] + 1
	}
	byRows, byCols := t.extents(rows), t.extents(cols)
	least, best := math.MaxInt, 0
	for most := tileLanes; most >= tileLanes/2; most -= 32 {
		for _, run := range []int{1, t.Ext[rows[0]], t.Ext[cols[0]]} {
			lanes := max(most-most%run, 1)
			each := 16 // instructions of a lane for an element
			for _, ext := range [][]int{byRows, byCols} {
				if !steady(ext, lanes) {
					each += 5
				}
			}
			if c := ((n-1)/lanes+1)*((lanes-1)/32+1)*each + 24; c < least {
				least, best = c, lanes
			}
		}
	}
	t.Lanes = best
	return float64(tiles) * float64(least) * traffic
}

// traffic returns a factor for sectors and lines at the edges of runs, which belong to two tiles. order
// is the order of the result or of the memory.
func (t *mapTile) traffic(fs []op.Factor, order []int) float64 {
	run := 1
	for _, k := range order {
		run *= t.Ext[k]
		if t.Ext[k] == fs[k].N {
			continue
		}
		switch part := (fs[k].N | t.Ext[k]) % 32; {
		case part%8 != 0:
			return 1 + 8/float64(run)
		case part != 0:
			return 1 + 4/float64(run)
		}
		break
	}
	return 1
}

// extents returns the extents of the tile above 1 in the given order.
func (t *mapTile) extents(order []int) (ext []int) {
	for _, k := range order {
		if t.Ext[k] > 1 {
			ext = append(ext, t.Ext[k])
		}
	}
	return ext
}

// steady reports whether each digit of the number lane+lanes·k is the sum of the digits of lane and
// of lanes·k, for all lanes of a workgroup. ext are the extents of the digits, the fastest first.
func steady(ext []int, lanes int) bool {
	p := 1
	for i, e := range ext {
		if i < len(ext)-1 && lanes%(p*e) == 0 || p%lanes == 0 {
			p *= e
			continue
		}
		if lanes%p != 0 || i < len(ext)-1 && p*e%lanes != 0 {
			return false
		}
		p *= e
	}
	return true
}

// planTiles plans the program e by tiles.
func planTiles(e *epilogue, name string, params mapParams, bind []Ref) (*Plan, error) {
	at := tiledOperand(e.in)
	l := e.in[at].Layout
	t := chooseTile(l, e.in[at].Type.Size(), bestRuns)
	t.At = at
	groups := 1
	for k, f := range l.Factors() {
		groups *= (f.N-1)/t.Ext[k] + 1
	}
	var p planner
	p.stage(tiledMaps.of(t, e), kernel.GridOf(groups), params, bind...)
	return p.done(name)
}

var tiledMaps = maker[mapParams, mapTile]{name: "map_tile", build: func(b *kernel.Builder, p *mapParams, t mapTile, e *epilogue) {
	b.LocalSize(t.Lanes, 1, 1)
	n := b.U32(&p.N)
	xs, ys := make([]source, len(e.in)), make([]sink, len(e.out))
	var load func(i kernel.U32) kernel.U32
	for i, in := range e.in {
		name := "x" + strconv.Itoa(i)
		if i == t.At {
			load = inputBits(b, name, in.Type)
			continue
		}
		xs[i] = vectorInput(b, name, in, 1, n)
	}
	for i, d := range e.out {
		ys[i] = vectorOutput(b, "y"+strconv.Itoa(i), d, 1)
	}
	params := []kernel.F32{b.F32(&p.F0), b.F32(&p.F1), b.F32(&p.F2), b.F32(&p.F3)}
	l, typ := e.in[t.At].Layout, e.in[t.At].Type
	w := newTileWalk(b, &t, l)
	tile := kernel.Shared[kernel.U32](b, "tile", w.words)

	w.into(tile, load)
	b.Barrier()
	read := func(s *tileElement) []kernel.Dynamic {
		i := kernel.Select(s.in, s.result, kernel.U(0))
		args := make([]kernel.Dynamic, len(xs))
		for k, x := range xs {
			if k == t.At {
				args[k] = fromBits(tile.At(kernel.Select(s.in, s.shared, kernel.U(0))), typ)
			} else {
				args[k] = x.at(i)
			}
		}
		return args
	}
	write := func(s *tileElement, args []kernel.Dynamic) {
		b.If(s.in.And(w.is), func() {
			for k, v := range Inline(b, e.exprs, args, params) {
				ys[k].set(s.result, v)
			}
		})
	}
	if list, _ := ir.Flatten(e.exprs...); len(list) > unrolledNodes {
		b.ForStep(b.LocalX(), kernel.U(uint32(w.n)), kernel.U(uint32(t.Lanes)), func(i kernel.U32) {
			s := w.element(w.rows, w.digits(w.rows, i), make([]int, len(w.rows)))
			write(s, read(s))
		})
		return
	}
	all, args := w.elements(w.rows), [][]kernel.Dynamic(nil)
	for _, s := range all {
		args = append(args, read(s))
	}
	for i, s := range all {
		write(s, args[i])
	}
}}

// tileWalk computes the positions of the elements of a tile.
type tileWalk struct {
	b          *kernel.Builder
	t          *mapTile
	rows, cols []int // factors with several elements of the tile, in the orders of the result and of the memory
	n, words   int   // elements of the tile, and words of workgroup memory
	// Strides of the factors in the result, in the operand, and in workgroup memory.
	result, memory, shared []int
	// The first element of the tile in the result and in the operand.
	result0, memory0 kernel.U32
	left             []kernel.U32 // number of elements along factors from the tile on; zero Value if the tiles divide the factor
	ragged           []bool
	is               kernel.Bool // the workgroup has a tile
}

func newTileWalk(b *kernel.Builder, t *mapTile, l *op.Layout) *tileWalk {
	fs := l.Factors()
	w := &tileWalk{b: b, t: t, n: t.elements(), result: make([]int, len(fs)), memory: make([]int, len(fs)), left: make([]kernel.U32, len(fs)), ragged: make([]bool, len(fs))}
	at, groups := 1, 1
	for k := len(fs) - 1; k >= 0; k-- {
		w.result[k], w.memory[k] = at, fs[k].Stride
		at *= fs[k].N
		groups *= (fs[k].N-1)/t.Ext[k] + 1
	}
	one := func(k int) bool { return t.Ext[k] == 1 }
	byMemory := memoryOrder(fs)
	w.rows, w.cols = slices.DeleteFunc(resultOrder(fs), one), slices.DeleteFunc(slices.Clone(byMemory), one)
	w.shared, w.words = w.pad(len(fs))
	g := b.Group()
	w.is = g.Lt(kernel.U(uint32(groups)))
	g = kernel.Select(w.is, g, kernel.U(0))
	w.memory0 = kernel.U(uint32(l.Off))
	w.result0 = kernel.U(0)
	// Neighbouring workgroups have neighbouring tiles: first along the factors of the tile, then
	// along the others.
	order := append(slices.Clone(w.cols), slices.DeleteFunc(byMemory, func(k int) bool { return !one(k) })...)
	for _, k := range order {
		blocks := (fs[k].N-1)/t.Ext[k] + 1
		if blocks == 1 {
			continue
		}
		first := g.Mod(kernel.U(uint32(blocks))).Mul(kernel.U(uint32(t.Ext[k])))
		g = g.Div(kernel.U(uint32(blocks)))
		w.result0, w.memory0 = along(w.result0, first, w.result[k]), along(w.memory0, first, w.memory[k])
		if w.ragged[k] = fs[k].N%t.Ext[k] != 0; w.ragged[k] {
			w.left[k] = kernel.U(uint32(fs[k].N)).Sub(first)
		}
	}
	return w
}

// along returns the position that is n strides after from.
func along(from, n kernel.U32, stride int) kernel.U32 {
	if stride < 0 {
		return from.Sub(n.Mul(kernel.U(uint32(-stride))))
	}
	return from.Add(n.Mul(kernel.U(uint32(stride))))
}

// digits returns the digits of element i of the tile in the given order.
func (w *tileWalk) digits(order []int, i kernel.U32) []kernel.U32 {
	d := make([]kernel.U32, len(order))
	for j, k := range order {
		if d[j] = i; j < len(order)-1 {
			e := kernel.U(uint32(w.t.Ext[k]))
			d[j], i = i.Mod(e), i.Div(e)
		}
	}
	return d
}

// tileElement is an element of a tile: its positions in the result, in memory and in workgroup
// memory, whether it exists in the tile, and whether it is in the array.
type tileElement struct {
	result, memory, shared kernel.U32
	exists, in             kernel.Bool
}

// element returns the element with the digits d+more.
func (w *tileWalk) element(order []int, d []kernel.U32, more []int) *tileElement {
	at := func(sum kernel.U32, strides []int) kernel.U32 {
		rest := 0
		for j, k := range order {
			sum = along(sum, d[j], strides[k])
			rest += more[j] * strides[k]
		}
		return along(sum, kernel.U(1), rest)
	}
	s := &tileElement{at(w.result0, w.result), at(w.memory0, w.memory), at(kernel.U(0), w.shared), kernel.B(true), kernel.B(true)}
	for j, k := range order {
		if w.ragged[k] {
			s.in = s.in.And(d[j].Add(kernel.U(uint32(more[j]))).Lt(w.left[k]))
		}
	}
	return s
}

// elements returns the elements of the lane in the given order. If the number of lanes does not
// divide the tile, the last element does not exist for some lanes.
func (w *tileWalk) elements(order []int) (all []*tileElement) {
	steady := steady(w.t.extents(order), w.t.Lanes)
	for first := 0; first < w.n; first += w.t.Lanes {
		i, more := w.b.LocalX(), make([]int, len(order))
		if steady {
			rest := first
			for j, k := range order {
				if more[j] = rest; j < len(order)-1 {
					more[j], rest = rest%w.t.Ext[k], rest/w.t.Ext[k]
				}
			}
		} else {
			i = i.Add(kernel.U(uint32(first)))
		}
		s := w.element(order, w.digits(order, i), more)
		if first+w.t.Lanes > w.n {
			s.exists = w.b.LocalX().Lt(kernel.U(uint32(w.n - first)))
			s.in = s.in.And(s.exists)
		}
		all = append(all, s)
	}
	return all
}

// into loads the tile. All loads of a lane come before the first store to workgroup memory.
func (w *tileWalk) into(tile kernel.Array[kernel.U32], load func(i kernel.U32) kernel.U32) {
	all := w.elements(w.cols)
	vs := make([]kernel.U32, len(all))
	for i, s := range all {
		vs[i] = load(kernel.Select(s.in, s.memory, kernel.U(0)))
	}
	for i, s := range all {
		if first := i * w.t.Lanes; first+w.t.Lanes <= w.n {
			tile.Set(s.shared, vs[i])
		} else {
			w.b.If(s.exists, func() { tile.Set(s.shared, vs[i]) })
		}
	}
}

// pad returns the strides of factors in workgroup memory and the number of words. Elements lie in
// the order of the operand's memory, then of the result. pad inserts unused words after the factor
// and in the number that give the fewest bank conflicts.
func (w *tileWalk) pad(rank int) (best []int, words int) {
	order := slices.Clone(w.cols)
	least := math.MaxInt
	for i := range max(len(order)-1, 1) {
		for extra := range 32 {
			strides, size := make([]int, rank), 1
			for j, k := range order {
				strides[k] = size
				if size *= w.t.Ext[k]; j == i && len(order) > 1 {
					size += extra
				}
			}
			if size > tileWords && extra > 0 {
				break
			}
			if c := w.conflicts(w.rows, strides) + w.conflicts(w.cols, strides); c < least {
				least, best, words = c, strides, size
			}
		}
	}
	return best, words
}

// conflicts returns the number of accesses to workgroup memory that wait for others, in the first
// accesses of a workgroup in the given order.
func (w *tileWalk) conflicts(order, strides []int) (sum int) {
	for first := 0; first < min(w.n, w.t.Lanes, 128); first += 32 {
		var banks [32]int
		for i := first; i < min(first+32, w.n); i++ {
			at, rest := 0, i
			for _, k := range order {
				at += rest % w.t.Ext[k] * strides[k]
				rest /= w.t.Ext[k]
			}
			banks[at%32]++
		}
		sum += slices.Max(banks[:]) - 1
	}
	return sum
}
