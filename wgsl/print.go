package wgsl

import (
	"strings"
	"sync"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/irhook"
	"github.com/rayo-go/rayo/op"
)

// printProgram returns p as WGSL for t: see [Kernel]. If p is not well formed, the error wraps
// [ir.ErrProgram].
func printProgram(p *ir.Program, t Target) (Shader, error) {
	if p != nil && p.Text != nil {
		if p.Text.Language != ir.WGSL {
			return Shader{}, fmt.Errorf("wgsl: %s is written in %v, not in WGSL: %w", p.Name, p.Text.Language, op.ErrUnsupported)
		}
		return textPrinter(p, &t)
	}
	if irhook.Verify != nil {
		if err := irhook.Verify(p); err != nil {
			return Shader{}, err
		}
	}
	if err := t.allows(p); err != nil {
		return Shader{}, err
	}
	w := printers.Get().(*printer)
	defer w.release()
	w.reset(p, &t)
	if err := w.survey(); err != nil {
		return Shader{}, err
	}
	if t.Features&Half == 0 {
		if what := usesHalf(p); what != "" {
			return Shader{}, fmt.Errorf("wgsl: %s uses %s of half floats, which the target lacks: %w", p.Name, what, op.ErrUnsupported)
		}
	}
	w.declareNames()
	w.count()
	w.carry()
	w.indent = 1
	w.variables()
	w.code(1)
	w.head = w.header(w.head[:0])

	w.s("}\n")
	var text strings.Builder
	text.Grow(len(w.head) + w.n)
	text.Write(w.head)
	text.Write(w.buf[:w.n])
	above := 0
	for _, c := range w.head {
		if c == '\n' {
			above++
		}
	}
	lines := make([]ir.Value, above+len(w.lines))
	copy(lines[above:], w.lines)
	s := Shader{Text: text.String(), Entry: w.entry, Params: -1, Local: p.Local, SharedBytes: uint32(sharedBytes(p)),
		Needs: w.needs, Bindings: make([]Access, len(p.Bindings)), lines: lines, pos: p.Pos}
	if n := len(p.Uniforms); n > 0 {
		s.Params = len(p.Bindings)
		s.ParamBytes = int(p.Uniforms[n-1].Offset+4+15) &^ 15
		s.Blocks = []Block{{Bytes: uint32(s.ParamBytes)}}
	}
	for i := range p.Bindings {
		s.Bindings[i] = accessOf(&p.Bindings[i])
	}
	return s, nil
}

func accessOf(b *ir.Binding) Access {
	if b.Access == ir.ReadOnly {
		return Read
	}
	return ReadWrite
}

// printer prints one program. Printers are reused.
type printer struct {
	p *ir.Program
	t *Target

	values []value
	blocks []uint32 // the blocks that are open
	scopes []scope  // the scopes of the variables
	// pending are loads that are printed at their use, unless an instruction that may change the
	// loaded memory comes before.
	pending []ir.Value

	text // the text of the body
	head []byte

	entry                          string
	buffers, arrays, vars, uniform []string
	used                           map[string]uint32
	names                          map[suffix]string

	fns       [numFns]uint8 // functions that the text calls, one bit for each width
	composed  [256]uint16   // likewise for the compositions of each code
	ranges    []ir.Interval // ranges of the values; nil until they are needed
	exchanges []exchange
	// These are for chains of Max and Min, and empty if there are none.
	ending    []ir.Value
	carries   []carried
	sources   []sizeOf
	builtIns  uint32
	needs     Feature
	indent    int
	depth     int  // nesting depth of loops
	composing bool // the printer is printing a composition
}

// exchange is the function that compares and exchanges an element of one array.
type exchange struct {
	shared bool
	index  uint32
	name   string
}

var printers = sync.Pool{New: func() any { return &printer{} }}

// release keeps the printer's memory for the next text, unless the memory is very large.
func (w *printer) release() {
	w.p, w.t = nil, nil
	if len(w.buf) <= 1<<20 {
		printers.Put(w)
	}
}

func (w *printer) reset(p *ir.Program, t *Target) {
	w.p, w.t = p, t
	if cap(w.values) < len(p.Code)+1 {
		w.values = make([]value, len(p.Code)+len(p.Code)/2+1)
	}
	w.values = w.values[:len(p.Code)+1]
	clear(w.values)
	w.blocks, w.pending, w.exchanges = w.blocks[:0], w.pending[:0], w.exchanges[:0]
	w.composing = false
	w.ending, w.carries, w.sources = w.ending[:0], w.carries[:0], w.sources[:0]
	w.text.reset()
	w.head = w.head[:0]
	w.buffers, w.arrays, w.vars, w.uniform = w.buffers[:0], w.arrays[:0], w.vars[:0], w.uniform[:0]
	w.fns, w.composed, w.ranges = [numFns]uint8{}, [256]uint16{}, nil
	w.builtIns, w.needs, w.indent, w.depth = 0, 0, 0, 0
	if w.used == nil {
		w.used, w.names = make(map[string]uint32), make(map[suffix]string)
	}
	clear(w.used)
}

// usesHalf returns the first use of half floats in p, or "".
func usesHalf(p *ir.Program) string {
	for i := range p.Bindings {
		if p.Bindings[i].Type == ir.F16 {
			return "a buffer"
		}
	}
	for i := range p.Shared {
		if p.Shared[i].Type == ir.F16 {
			return "a workgroup array"
		}
	}
	for i := range p.Vars {
		if p.Vars[i].Type == ir.F16 {
			return "a variable"
		}
	}
	for i := range p.Code {
		if p.Code[i].Type == ir.F16 {
			return "arithmetic"
		}
	}
	return ""
}

func (w *printer) declareNames() {
	p := w.p
	for i := range p.Uniforms {
		w.uniform = append(w.uniform, w.member(p.Uniforms[i].Name))
	}
	clear(w.used)
	w.entry = w.identify(p.Name, "kernel")
	for i := range p.Bindings {
		w.buffers = append(w.buffers, w.identify(p.Bindings[i].Name, "buffer"))
	}
	for i := range p.Shared {
		w.arrays = append(w.arrays, w.identify(p.Shared[i].Name, "tile"))
	}
	for i := range p.Vars {
		w.vars = append(w.vars, w.identify(p.Vars[i].Name, "value"))
	}
}

// count counts the uses of each value by instructions with effects; a count of 0 means dead code.
func (w *printer) count() {
	code := w.p.Code
	values := w.values[:len(code)]
	for i := len(code) - 1; i > 0; i-- {
		in := &code[i]
		t := traits[in.Code]
		if values[i].uses == 0 && t&(isFixed|droppable) != isFixed {
			continue
		}
		if t&varying != 0 {
			args, n := in.Operands()
			for _, a := range args[:n] {
				values[a].uses++
			}
			continue
		}
		switch t & argCount {
		case 3:
			values[in.Args[2]].uses++
			fallthrough
		case 2:
			values[in.Args[1]].uses++
			fallthrough
		case 1:
			values[in.Args[0]].uses++
		}
	}
}

// maxWeight is the maximum number of nodes of an expression. A part of a larger expression gets a
// name.
const maxWeight = 14

// code prints the instructions from number first on.
func (w *printer) code(first int) {
	p := w.p
	for i := first; i < len(p.Code); i++ {
		in, v := &p.Code[i], &w.values[i]
		switch t := traits[in.Code]; {
		case v.uses == 0 && t&(isFixed|droppable) != isFixed || v.how == asName:
		case t&isFixed != 0:
			w.statement(in, ir.Value(i))
		default:
			w.place(in, ir.Value(i))
		}
	}
}

// place decides whether v is printed at its use or gets a name here.
func (w *printer) place(in *ir.Instr, v ir.Value) {
	x := &w.values[v]
	x.weight = 1
	chain := w.carriesAs(v)
	if chain&loses != 0 {
		w.addSizes(v)
	}
	named := x.flags&(computed|repeated) != 0 || chain&ends != 0
	switch in.Code {
	case ir.Const, ir.BuiltIn, ir.Param32:
		named = x.flags&computed != 0
	case ir.LoadVar:
		if !named {
			w.pending = append(w.pending, v)
		}
	default:
		a := in.Args[0]
		if in.Code == ir.Splat && x.flags&constant != 0 && !named ||
			in.Code == ir.Extract && w.values[a].how == asName {
			break
		}
		weight := 1 + w.weights(in)
		x.weight = uint8(min(weight, 255))
		named = named || x.uses > 1 || x.flags&crosses != 0 || weight > maxWeight
		if !named && (in.Code == ir.LoadShared || in.Code == ir.Load && w.p.Bindings[in.Imm].Access != ir.ReadOnly) {
			w.pending = append(w.pending, v)
		}
	}
	if named {
		w.let(v)
	}
}

// weights returns the number of nodes of the operands of an instruction.
func (w *printer) weights(in *ir.Instr) int {
	t := traits[in.Code]
	if t&varying != 0 {
		sum := 0
		args, n := in.Operands()
		for _, a := range args[:n] {
			sum += int(w.values[a].weight)
		}
		return sum
	}
	sum := 0
	for k := range t & argCount {
		sum += int(w.values[in.Args[k]].weight)
	}
	return sum
}

// let declares a name for v.
func (w *printer) let(v ir.Value) {
	w.begin(w.indent)
	if w.values[v].flags&zero != 0 {
		w.s("var v")
	} else {
		w.s("let v")
	}
	w.u(uint32(v))
	w.s(" = ")
	if w.carriesAs(v)&ends != 0 {
		w.need(fnKeepNaN, w.p.Code[v].Width)
		w.write(v, operand)
		w.s(", ")
		w.sizes(v)
		w.c(')')
	} else {
		w.write(v, anything)
	}
	w.c(';')
	w.values[v].how, w.values[v].weight = asName, 1
	w.end(v)
}

// effect describes the memory that a statement may change.
type effect uint8

const (
	nothing  effect = iota
	variable        // Vars[which]
	array           // Shared[which]
	buffer          // Bindings[which]
	memory          // arrays and buffers
	all             // all memory, because a block begins
)

// flush declares names for the pending loads whose memory the effect may change, before the line
// that is being printed.
func (w *printer) flush(e effect, which uint32) {
	if len(w.pending) == 0 || e == nothing {
		return
	}
	keep := w.pending[:0]
	for _, v := range w.pending {
		if w.values[v].uses == 0 || w.values[v].how == asName {
			continue
		}
		in := &w.p.Code[v]
		hit := e == all
		switch in.Code {
		case ir.LoadVar:
			hit = hit || e == variable && in.Imm == which
		case ir.LoadShared:
			hit = hit || e == memory || e == array && in.Imm == which
		default:
			hit = hit || e == memory || e == buffer && in.Imm == which
		}
		if !hit {
			keep = append(keep, v)
			continue
		}
		w.before(func() { w.let(v) })
	}
	w.pending = keep
}

// variables declares the variables of a lane that are not declared by their first store.
func (w *printer) variables() {
	for i := range w.p.Vars {
		if s := &w.scopes[i]; s.first != top {
			continue
		}
		v := &w.p.Vars[i]
		w.begin(w.indent)
		w.s("var ")
		w.s(w.vars[i])
		w.s(": ")
		w.s(typeName(v.Type, v.Width))
		w.c(';')
		w.end(0)
	}
}
