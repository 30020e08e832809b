package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/simd"
)

// when says how often a value changes.
type when uint8

const (
	once    when = iota // one number for all elements
	segment             // one number for each run of elements
	block               // one for each element
)

// A value is an operand or the result of an instruction of a program that is being built.
type value struct {
	typ  op.DType // type in a register: F32, I32, U32 or Bool
	when when
	at   int // its table entry if it is fixed from the start, otherwise -1
	// reads means that the entry is a stream, whose memory a result may overwrite.
	reads bool
	wide  int // the value as a block of equal numbers, or -1 if not needed so far
}

// An inst is a call with values as operands.
type inst struct {
	name string
	fn   kernel
	past kernel // the kernel with non-temporal stores; nil if there is none or it must not be used
	dst  int
	args [3]int // values; -1 for absent operands
	par  int    // the value whose address is passed as p, or -1
	when when   // the list of calls that it belongs to
	many bool   // computes a whole block, not one number
	n    int    // number of elements, if it is not the size of the block
	ns   float32
}

type repetition struct{ value, period int }

type expansion struct{ value, stream int }

// unrounded describes a value before its rounding to a 16-bit type.
type unrounded struct {
	value int
	to    op.DType
}

// builder compiles a driver.Fused to a program.
type builder struct {
	p     *program
	vals  []value
	insts []inst
	tiles []int // values that are computed once as blocks and keep their registers
	// repeats are the tiles with a phase. expands are those that are copied from a layout.
	repeats []repetition
	expands []expansion
	// unrounded maps values that were rounded to a 16-bit type to the values before the rounding.
	unrounded map[int]unrounded
	// passes means that results may use non-temporal stores, because the operands come from memory
	// and not from an operation that has just computed them.
	passes bool
	unit   int // blocks should be multiples of it
	slack  int // the longest period of a tile
}

const (
	// Smallest and largest block, in elements.
	minBlock, maxBlock = 256, 2048
	// A Tiled operand with a period up to smallPeriod is repeated over a block once. A Repeated
	// operand with runs up to smallRun is expanded to a register, because with such short segments
	// calls would dominate the time.
	smallPeriod = 512
	smallRun    = 48
)

// fuse builds the program of f. out has the element types of the results in memory. The runner
// provides operands with slot -1, in the format of registers.
func (d *processor) fuse(f *driver.Fused, out []driver.Operand) (*program, error) {
	n, err := f.Shape.Size()
	if err != nil {
		return nil, err
	}
	if q := nestOf(f, out); q != nil {
		if p, err := d.fuseAs(f, out, n, q); err != nil || p.nest != nil {
			return p, err
		}
	}
	return d.fuseAs(f, out, n, nil)
}

// fuseAs is fuse. The program is the nest q if this is not nil and the program has a call that q can make.
func (d *processor) fuseAs(f *driver.Fused, out []driver.Operand, n int, q *nest) (*program, error) {
	p := &program{n: n, inputs: len(f.In), even: true}
	b := &builder{p: p, unit: 1, passes: q == nil}
	for i := range f.In {
		if q != nil {
			in := &f.In[i]
			p.streams = append(p.streams, stream{spread: op.Strided, size: 4, slot: in.Slot, run: true, inner: q.inner[1+i]})
			continue
		}
		b.stream(&f.In[i])
	}
	p.even = p.even && q == nil
	b.readRuns(len(f.Body))
	for i := range out {
		p.streams = append(p.streams, stream{size: out[i].Type.Size(), slot: out[i].Slot})
	}
	vals, err := make([]int, len(f.In), len(f.In)+len(f.Body)), error(nil)
	for i := range f.In {
		t := f.In[i].Type
		if f.In[i].Slot < 0 {
			b.passes = false
			t = register(t)
		}
		if vals[i], err = b.load(i, t); err != nil {
			return nil, err
		}
	}
	loaded := slices.Clone(vals)
	if f.Round != op.InvalidType {
		vals[0] = b.round(vals[0], f.Round)
	}
	if vals, err = b.body(f, vals); err != nil {
		return nil, err
	}
	results := make([]int, len(out))
	for k, o := range f.Out {
		results[k] = vals[o]
	}
	b.unround(results, out)
	b.prune(results)
	b.combine(results)
	b.store(results, out)
	b.finish()
	if q != nil && q.adopt(p) {
		p.nest = q
		return p, nil
	}
	if newChain != nil {
		p.chain = newChain(b, f, out, loaded)
	}
	p.moves = len(f.In) == 1 && len(f.Body) == 0 && len(out) == 1 && f.In[0].Broadcast == op.Strided && f.In[0].Type == out[0].Type
	if p.moves {
		p.piece = p.streams[0].widen()
	}
	if p.moves {
		p.boxed()
	}
	return p, nil
}

// boxed determines the boxes by which the program copies its operand, if there are any.
func (p *program) boxed() {
	s := &p.streams[0]
	l, size := s.wide, s.times*s.size
	if l == nil {
		l, size = s.layout, s.size
	}
	if p.boxes = planesOf(l, size); p.boxes != nil {
		return
	}
	if p.boxes = linesOf(l, size); p.boxes != nil {
		p.boxesPast, p.passes = p.boxes, true
	} else if s.size == 4 {
		p.boxes = boxesOf(s.layout)
		p.boxesPast = boxesPast(s.layout, p.boxes)
		p.passes = true
	}
}

// body adds the instructions of f. vals has the values of its operands; body returns them followed by the results of the
// instructions.
func (b *builder) body(f *driver.Fused, vals []int) ([]int, error) {
	for i := range f.Body {
		in := &f.Body[i]
		args := make([]int, len(in.Args))
		types := make([]op.DType, len(in.Args))
		for j, a := range in.Args {
			if a < 0 || a >= len(vals) {
				return nil, fmt.Errorf("instruction %d takes value %d: %w", i, a, driver.ErrUnsupported)
			}
			args[j] = vals[a]
			if a < len(f.In) {
				types[j] = f.In[a].Type
			} else {
				types[j] = f.Body[a-len(f.In)].Type
			}
		}
		v, err := b.apply(in, args, types)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Op.Name(), err)
		}
		rounds, err := in.Rounds(types)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Op.Name(), err)
		}
		if rounds {
			v = b.round(v, in.Type)
		}
		vals = append(vals, v)
	}
	return vals, nil
}

// stream adds an operand.
func (b *builder) stream(o *driver.Operand) {
	s := stream{spread: o.Broadcast, size: o.Type.Size(), slot: o.Slot, layout: o.Layout}
	if o.Slot < 0 {
		s.size = register(o.Type).Size()
	}
	p := b.p
	switch o.Broadcast {
	case op.Full:
	case op.Scalar:
		s.fixed = true
	case op.Tiled:
		s.period = max(1, o.N)
		if s.period <= smallPeriod {
			s.fixed = true
			b.slack = max(b.slack, s.period)
		}
	case op.Repeated:
		s.period = max(1, p.n/max(1, o.N))
		if s.period <= smallRun && s.size == 4 {
			s.spelt, p.spelt = true, true
			b.unit = max(b.unit, s.period)
		}
	case op.Strided:
		if n := periodOf(o.Layout); n > 0 && n <= smallPeriod && s.size == 4 {
			s.spread, s.period, s.fixed = op.Tiled, n, true
			b.slack = max(b.slack, n)
			break
		}
		p.strided = append(p.strided, broughtIn{stream: len(p.streams)})
	}
	p.even = p.even && (o.Broadcast == op.Full)
	p.streams = append(p.streams, s)
}

// load returns the value of operand i, converted to the type of a register.
func (b *builder) load(i int, t op.DType) (int, error) {
	s := &b.p.streams[i]
	v := value{typ: t, at: 1 + i, when: block, reads: true, wide: -1}
	switch {
	case s.spread == op.Scalar:
		v.when, v.reads = once, false
	case s.spread == op.Repeated, s.run && s.inner == 0:
		v.when = segment
	}
	x := b.add(v)
	if to := register(t); t.Size() < to.Size() {
		// The value is the address of a half float, which must be widened before use.
		b.vals[x].typ = to
		n := 0
		if s.fixed && s.spread == op.Tiled {
			n = s.period
		}
		y := b.add(value{typ: to, when: v.when, at: -1, wide: -1})
		name, fn := castKernel(t, to)
		in := inst{name: name, fn: fn, dst: y, args: [3]int{x, -1, -1}, par: -1, when: v.when, many: v.when == block, ns: kernelNS(name)}
		if n > 0 {
			in.when, in.n = once, n
			b.tiles = append(b.tiles, y)
		}
		b.insts = append(b.insts, in)
		x = y
	}
	switch {
	case s.fixed && s.layout != nil:
		y := b.add(value{typ: b.vals[x].typ, when: block, at: -1, wide: -1})
		b.tiles = append(b.tiles, y)
		b.repeats = append(b.repeats, repetition{y, s.period})
		b.expands = append(b.expands, expansion{y, i})
		return y, nil
	case s.fixed && s.spread == op.Tiled:
		return b.tile(x, s.period), nil
	case s.spelt:
		y := b.add(value{typ: b.vals[x].typ, when: block, at: -1, wide: -1})
		b.insts = append(b.insts, inst{name: "stretch", fn: stretch, dst: y, args: [3]int{x, -1, -1},
			par: b.constant(math.Float32frombits(uint32(s.period))), when: block, many: true, ns: 0.7})
		return y, nil
	}
	return x, nil
}

// tile returns the value that repeats the first n elements of x over a block.
func (b *builder) tile(x, n int) int {
	y := b.add(value{typ: b.vals[x].typ, when: block, at: -1, wide: -1})
	b.tiles = append(b.tiles, y)
	b.insts = append(b.insts, inst{name: "tile", fn: tile, dst: y, args: [3]int{x, -1, -1},
		par: b.constant(math.Float32frombits(uint32(n))), when: once, many: true})
	b.repeats = append(b.repeats, repetition{y, n})
	return y
}

func (b *builder) add(v value) int {
	b.vals = append(b.vals, v)
	return len(b.vals) - 1
}

// constant returns the value for the address of the numbers v.
func (b *builder) constant(v ...float32) int {
	k := append([]float32(nil), v...)
	b.p.consts = append(b.p.consts, unsafe.SliceData(k))
	return b.add(value{typ: op.F32, when: once, at: -2 - (len(b.p.consts) - 1), wide: -1})
}

// changes returns how often a result of args changes.
func (b *builder) changes(args []int) when {
	w := once
	for _, a := range args {
		w = max(w, b.vals[a].when)
	}
	return w
}

// emit adds a call of fn. If the result changes as rarely as its operands, it uses them directly,
// otherwise as blocks. par is the value whose address is passed as p, or -1.
func (b *builder) emit(name string, fn kernel, typ op.DType, par int, ns float32, args ...int) int {
	w := b.changes(args)
	if par >= 0 {
		w = max(w, b.vals[par].when)
	}
	in := inst{name: name, fn: fn, args: [3]int{-1, -1, -1}, par: par, when: w, many: w == block, ns: ns}
	for i, a := range args {
		if w == block {
			a = b.widened(a)
		}
		in.args[i] = a
	}
	in.dst = b.add(value{typ: typ, when: w, at: -1, wide: -1})
	b.insts = append(b.insts, in)
	return in.dst
}

// widened returns x as a block.
func (b *builder) widened(x int) int {
	v := b.vals[x]
	if v.when == block {
		return x
	}
	if v.wide >= 0 {
		return v.wide
	}
	y := b.add(value{typ: v.typ, when: block, at: -1, wide: -1})
	in := inst{name: "fill", fn: kernelNamed("fill"), dst: y, args: [3]int{-1, -1, -1}, par: x, when: v.when, many: true, ns: kernelNS("fill")}
	if v.when == once {
		b.tiles = append(b.tiles, y)
	} else {
		in.when = block
	}
	b.insts = append(b.insts, in)
	b.vals[x].wide = y
	return y
}

// unround replaces results by their values before rounding, because the store rounds them too.
// Values that an instruction reads are rounded anyway; storing the rounded value is the same.
func (b *builder) unround(results []int, out []driver.Operand) {
	for k := range results {
		if r := b.unrounded[results[k]]; r.to == out[k].Type && r.to != op.InvalidType && !b.reads(results[k]) {
			results[k] = r.value
		}
	}
}

// store adds the instructions that store the values dst.
func (b *builder) store(dst []int, out []driver.Operand) {
	// The result of the last instruction is written directly to its memory, and so is an earlier
	// one if no later instruction reads memory: a result may overlap an operand.
	for k := range dst {
		if v := &b.vals[dst[k]]; len(out) > 1 && v.reads && v.when == block {
			dst[k] = b.emit("copy", kernelNamed("copy"), v.typ, -1, kernelNS("copy"), dst[k])
		}
	}
	b.prune(dst)
	p := b.p
	taken := make(map[int]bool)
	for k := range out {
		entry := 1 + p.inputs + k
		x := dst[k]
		switch t := out[k].Type; {
		case t.Size() < register(t).Size():
			name, fn := castKernel(b.vals[x].typ, t)
			b.final(name, fn, entry, b.widened(x), -1)
		case b.vals[x].when != block:
			b.final("fill", kernelNamed("fill"), entry, -1, x)
		case b.vals[x].at == -1 && !taken[x] && b.direct(x):
			taken[x] = true
			b.vals[x].at = entry
			if b.passes && out[k].Slot >= 0 {
				b.pass(x)
			}
		default:
			b.final("copy", kernelNamed("copy"), entry, x, -1)
		}
	}
}

// pass makes the instruction that computes x use non-temporal stores, if it can and no instruction
// reads x.
func (b *builder) pass(x int) {
	var def *inst
	for i := range b.insts {
		in := &b.insts[i]
		if in.dst == x {
			def = in
		}
		for _, a := range in.args {
			if a == x {
				return
			}
		}
	}
	if fn := simd.Stream(def.name); fn != nil {
		def.past = kernel(fn)
		b.p.passes = true
	}
}

// final adds an instruction that writes a result to the stream at a table entry.
func (b *builder) final(name string, fn kernel, entry, x, par int) {
	y := b.add(value{typ: op.F32, when: block, at: entry, wide: -1})
	b.insts = append(b.insts, inst{name: name, fn: fn, dst: y, args: [3]int{x, -1, -1}, par: par, when: block, many: true, ns: kernelNS(name)})
}

// direct reports whether x may be computed directly in the memory of a result: it must be computed
// for each block, and no later instruction may read an operand from memory.
func (b *builder) direct(x int) bool {
	for i := len(b.insts) - 1; i >= 0; i-- {
		in := &b.insts[i]
		if in.when != block {
			if in.dst == x {
				return false
			}
			continue
		}
		if in.dst == x {
			return true
		}
		for _, a := range in.args {
			if a >= 0 && b.vals[a].reads {
				return false
			}
		}
		if in.par >= 0 && b.vals[in.par].reads {
			return false
		}
	}
	return false
}

// reads reports whether an instruction reads x.
func (b *builder) reads(x int) bool {
	return slices.ContainsFunc(b.insts, func(in inst) bool { return slices.Contains(in.args[:], x) || in.par == x })
}

// prune removes instructions with unused results.
func (b *builder) prune(results []int) {
	used := make([]bool, len(b.vals))
	for _, v := range results {
		used[v] = true
	}
	for i := len(b.insts) - 1; i >= 0; i-- {
		in := &b.insts[i]
		if !used[in.dst] {
			continue
		}
		for _, a := range in.args {
			if a >= 0 {
				used[a] = true
			}
		}
		if in.par >= 0 {
			used[in.par] = true
		}
	}
	kept := b.insts[:0]
	for _, in := range b.insts {
		if used[in.dst] {
			kept = append(kept, in)
		}
	}
	b.insts = kept
	b.tiles = slices.DeleteFunc(b.tiles, func(v int) bool { return !used[v] })
	b.repeats = slices.DeleteFunc(b.repeats, func(r repetition) bool { return !used[r.value] })
	b.expands = slices.DeleteFunc(b.expands, func(e expansion) bool { return !used[e.value] })
}
