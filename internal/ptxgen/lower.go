package ptxgen

import (
	"fmt"
	"strconv"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
)

// Options change how a program is lowered.
type Options struct {
	// Checked compares every index with the length of its array: a load out of bounds gives 0, a
	// store does nothing, and both are recorded (see [Fault]), as is a loop that reaches its
	// iteration limit.
	Checked bool
	// Scalar accesses vectors by component, so that buffers need only the alignment of a component.
	Scalar bool
	// Coherent reads every buffer as if the kernel could write it. Then a buffer that is only read
	// may share memory with a buffer that is written, if no lane reads an element that another lane
	// writes.
	Coherent bool
	// ParamsInMemory reads the parameters from memory, so that a recorded launch, which has only
	// their address, can be used with other parameters: see [Entry.Args].
	ParamsInMemory bool
	// ElementBytes is the size in memory of the elements of buffers of [ir.U32] if it is 1 or 2, and not 4:
	// loads extend such elements with zeros, and stores keep the low bytes.
	ElementBytes int
}

// maxParams is the largest number of parameters: the block of parameters is limited to 4 KiB.
const maxParams = 500

// preferredLanes is the minimum number of lanes of a program with PreferRegisters on a
// multiprocessor. With this number, a lane may use all 255 registers that instructions can address.
const preferredLanes = 256

// Lower adds p to the module as a kernel with the given name, which must begin with a letter and
// have only letters, digits and _. A program that exceeds the limits of the target or of PTX gives
// an error that wraps [op.ErrUnsupported]; an invalid program gives an error that wraps
// [ir.ErrProgram].
func Lower(m *ptx.Module, name string, p *ir.Program, o Options) (*Entry, error) {
	if err := ir.Verify(p); err != nil {
		return nil, err
	}
	fail := func(format string, args ...any) (*Entry, error) {
		return nil, fmt.Errorf("ptxgen: %s: %w: %w", p.Name, fmt.Errorf(format, args...), op.ErrUnsupported)
	}
	lanes := p.Local[0] * p.Local[1] * p.Local[2]
	if lanes > ptx.MaxThreads || p.Local[2] > 64 {
		return fail("workgroups of %v lanes", p.Local)
	}
	if n := 2*len(p.Bindings) + len(p.Uniforms); n > maxParams {
		return fail("%d buffers and %d parameters", len(p.Bindings), len(p.Uniforms))
	}
	e := &Entry{Name: name, Local: p.Local, Checked: o.Checked, ParamsInMemory: o.ParamsInMemory}
	g := &lowering{Options: o, p: expand(p), target: m.Target(), lanes: lanes}
	g.survey()
	k := m.Kernel(name, func(k *ptx.Kernel) {
		g.k = k
		k.Block(int(p.Local[0]), int(p.Local[1]), int(p.Local[2]))
		if p.PreferRegisters {
			// Otherwise the assembler spills some values to fit one more block on a multiprocessor.
			k.MinBlocks(max(preferredLanes/int(lanes), 1))
		}
		Follow(k)
		g.params(e)
		g.arrays()
		g.variables()
		g.builtIns()
		if o.Checked {
			g.faultAt, g.faultIndex, g.faultLen = ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0)), ptx.NewVar(k, ptx.U(0))
			g.exit = k.NewLabel()
		}
		g.block(1, len(g.p.Code))
		if o.Checked {
			k.Place(g.exit)
			g.report()
		}
	})
	if err := m.Err(); err != nil {
		return fail("%w", err)
	}
	if g.lacks != ir.None {
		return fail("%v of a type that it does not take", g.lacks)
	}
	e.Static, e.Dynamic = k.SharedBytes()
	return e, nil
}

// Follow begins a kernel with programmatic dependent launch, if the target supports it: the kernel
// may start while the previous one still runs, waits for its results, and allows the next kernel to
// start. It must come before all other instructions.
func Follow(k *ptx.Kernel) {
	if Overlaps(k.Target()) {
		k.WaitDependencies()
		k.LaunchDependents()
	}
}

// Overlaps reports whether launches of kernels that begin with [Follow] may overlap with the
// previous launch.
func Overlaps(t ptx.Target) bool { return t >= ptx.SM90 }

// lowering lowers one program. It stores registers of all types as ptx.U32, because the types of
// package ptx are the same handle with different methods; the program has the type of each value.
type lowering struct {
	Options
	p      *ir.Program
	k      *ptx.Kernel
	target ptx.Target
	lanes  uint32 // of a workgroup

	values   []value
	uses     []uint32
	bindings []ptx.Global[ptx.U32]
	lens     []ptx.U32
	uniforms []ptx.U32
	shared   []ptx.Shared[ptx.U32]
	vars     []variable
	loops    []loop

	linear [3]ptx.U32 // built-in values
	lane   ptx.U32    // of the workgroup

	fault                         ptx.Global[ptx.U32]
	faultAt, faultIndex, faultLen ptx.Var[ptx.U32]
	exit                          ptx.Label
	lacks                         ir.Code // a code that cannot be lowered
}

// value has the components of a value.
type value [4]ptx.U32

// name returns the name of parameter or array i.
func name(prefix string, i int) string { return prefix + strconv.Itoa(i) }

// native reports whether the lowering computes a function without ir.Lower: PTX has it with the
// accuracy of the expansion, or it is Sin or Cos: see sine.go.
func native(c ir.Code) bool {
	switch c {
	case ir.CopySign, ir.Round, ir.RoundF16, ir.RoundBF16, ir.Recip, ir.Rsqrt, ir.Sin, ir.Cos, ir.Exp2Approx, ir.RecipApprox, ir.FmaUnit, ir.SqrtInRange:
		return true
	}
	return false
}

// expand returns p with the functions that PTX lacks expanded to arithmetic. The Pos of each new
// instruction is its index in p, so that faults refer to p.
func expand(p *ir.Program) *ir.Program {
	q := *p
	q.Pos = make([]uintptr, len(p.Code))
	for i := range q.Pos {
		q.Pos[i] = uintptr(i)
	}
	return ir.ExpandMath(&q, native)
}

// survey counts the uses of values.
func (g *lowering) survey() {
	g.values = make([]value, len(g.p.Code))
	g.uses = make([]uint32, len(g.p.Code))
	for i := range g.p.Code {
		args, n := g.p.Code[i].Operands()
		for _, a := range args[:n] {
			g.uses[a]++
		}
	}
}

// comp returns component c of v. A scalar has the same value for all components.
func (g *lowering) comp(v ir.Value, c int) ptx.U32 { return g.values[v][c] }

// block lowers the instructions with indices from from up to to.
func (g *lowering) block(from, to int) {
	for i := from; i < to; i++ {
		in := &g.p.Code[i]
		switch in.Code {
		case ir.If:
			i = g.branch(i, in)
		case ir.For:
			i = g.counted(ir.Value(i), in)
		case ir.Loop:
			i = g.endless(ir.Value(i), in)
		default:
			g.instr(ir.Value(i), in)
		}
	}
}

// instr lowers an instruction that does not open a block.
func (g *lowering) instr(v ir.Value, in *ir.Instr) {
	out := &g.values[v]
	switch in.Code {
	case ir.Const:
		out[0] = constant(in)
	case ir.BuiltIn:
		out[0] = g.builtIn(in.Flag)
	case ir.Param32:
		out[0] = g.uniforms[in.Imm]
	case ir.Len:
		out[0] = g.lens[in.Imm]
	case ir.Load:
		g.load(v, in, out)
	case ir.Store:
		g.store(v, in)
	case ir.LoadShared:
		g.loadShared(v, in, out)
	case ir.StoreShared:
		g.storeShared(v, in)
	case ir.UniformLoad:
		g.k.Sync()
		g.loadShared(v, in, out)
		g.k.Sync()
	case ir.AtomicOp, ir.AtomicOpShared:
		out[0] = g.atomic(v, in)
	case ir.LoadVar:
		for c := range in.Width {
			out[c] = g.vars[in.Imm].get(int(c))
		}
	case ir.StoreVar:
		for c := range g.p.Vars[in.Imm].Width {
			g.vars[in.Imm].set(int(c), g.comp(in.Args[0], int(c)))
		}
	case ir.Splat:
		for c := range in.Width {
			out[c] = g.comp(in.Args[0], 0)
		}
	case ir.Compose:
		args, n := in.Operands()
		for c, a := range args[:n] {
			out[c] = g.comp(a, 0)
		}
	case ir.Extract:
		out[0] = g.comp(in.Args[0], int(in.Flag))
	case ir.Barrier:
		g.k.Sync()
	case ir.Break, ir.Continue:
		g.leave(in)
	case ir.Return:
		if g.Checked {
			g.k.Branch(g.exit)
		} else {
			g.k.Return()
		}
	case ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
		g.exchange(in, out)
	default:
		g.compute(in, out)
	}
}

// constant returns the constant of an instruction.
func constant(in *ir.Instr) ptx.U32 {
	switch in.Type {
	case ir.F32:
		return ptx.U32(ptx.F(number(in.Imm)))
	case ir.F16:
		return ptx.U32(ptx.H(number(in.Imm)))
	case ir.Bool:
		return ptx.U32(ptx.Is(in.Imm != 0))
	}
	return ptx.U(in.Imm)
}
