package portable

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/op"
)

// A mutation is a defect that an author may make. The test plants it in a program.
type mutation struct {
	name  string
	found bool // the checks must find it; wrong results are not enough
	// plant changes instruction at. It returns false, and leaves the code as it is, if the defect
	// is impossible there.
	plant func(code []ir.Instr, at int) bool
}

var mutations = []mutation{
	{"barrier left out", true, func(code []ir.Instr, at int) bool {
		if code[at].Code != ir.Barrier {
			return false
		}
		code[at] = ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}
		return true
	}},
	// All comparisons with the same bound change together, because the sizes decide which of them
	// matter.
	{"one too many", false, func(code []ir.Instr, at int) bool {
		data := fromMemory(code)
		bound := func(i int) bool {
			in := &code[i]
			return in.Code == ir.Lt && code[in.Args[0]].Type.Integer() && !data[in.Args[0]] && !data[in.Args[1]]
		}
		if !bound(at) {
			return false
		}
		of := code[at].Args[1]
		for i := range code {
			if bound(i) && code[i].Args[1] == of {
				if i < at {
					return false // unchanged
				}
				defer func() { code[i].Code = ir.Le }()
			}
		}
		return true
	}},
	// All products with the same parameter change together, for the same reason.
	{"wrong stride", false, func(code []ir.Instr, at int) bool {
		product := func(i int) bool {
			in := &code[i]
			return in.Code == ir.Mul && in.Type == ir.U32 && in.Args[0] != in.Args[1] && code[in.Args[1]].Code == ir.Param32
		}
		if !product(at) {
			return false
		}
		of := code[code[at].Args[1]].Imm
		for i := range code {
			if product(i) && code[code[i].Args[1]].Imm == of {
				if i < at {
					return false
				}
				defer func() { code[i].Args[1] = code[i].Args[0] }()
			}
		}
		return true
	}},
	{"any lane but the first", true, func(code []ir.Instr, at int) bool {
		in := &code[at]
		if in.Code != ir.Eq || code[in.Args[0]].Code != ir.BuiltIn {
			return false
		}
		in.Code = ir.Ne
		return true
	}},
	{"subgroups of 32", false, func(code []ir.Instr, at int) bool {
		if code[at].Code != ir.BuiltIn || code[at].Flag != ir.BuiltInSubgroupSize {
			return false
		}
		code[at] = ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1, Imm: 32}
		return true
	}},
	{"one subgroup", false, func(code []ir.Instr, at int) bool {
		if code[at].Code != ir.BuiltIn || code[at].Flag != ir.BuiltInSubgroup {
			return false
		}
		code[at] = ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}
		return true
	}},
}

// fromMemory reports which values depend on the contents of memory.
func fromMemory(code []ir.Instr) []bool {
	data := make([]bool, len(code))
	for i, in := range code {
		switch in.Code {
		case ir.Load, ir.LoadShared, ir.UniformLoad, ir.LoadVar, ir.SubgroupOp, ir.SubgroupScan, ir.SubgroupShuffle, ir.SubgroupXor, ir.SubgroupFirst:
			data[i] = true
		case ir.Const, ir.BuiltIn, ir.Param32, ir.Len:
		default:
			for _, a := range in.Args {
				data[i] = data[i] || int(a) < i && data[a]
			}
		}
	}
	return data
}

// programUse is a trial of a variant. One of its stages runs the program to which mutations are applied.
type programUse struct {
	c       *trial
	r       *Request
	plan    *Plan
	stage   int
	variant string
	sizes   []int // sizes of subgroups
}

// harmless lists mutants that change nothing, with the reasons.
func harmless(u *programUse, m *mutation, p *ir.Program, at int) bool {
	switch m.name {
	case "barrier left out":
		// A row of quads is one chunk, so the loop has a single iteration.
		return u.c.o == op.Cumsum && u.variant == "quad"
	case "one too many":
		// A fold reads the last element again instead of elements after it, but only for some lengths, which
		// the parts of rows do not have here.
		if u.variant == "fold-split" || strings.HasPrefix(u.variant, "fold") && slices.Contains([]*op.Operation{op.ArgMin, op.ArgMax, op.Min, op.Max, op.NormLinf, op.Any, op.All}, u.c.o) {
			return true
		}
		// The vector after the vectors of a row belongs to its ragged tail, which is stored
		// later; in a single-pass kernel, after the lanes that publish partial results.
		split, lookBack := strings.HasPrefix(u.variant, "edgessplit"), strings.HasPrefix(u.variant, "edgesflow") && atomics(p.Code[:at])
		return (split || lookBack) && u.stage == 1 && p.Code[p.Code[at].Args[1]].Code == ir.Min
	case "any lane but the first":
		// All lanes publish the same value.
		then := p.Code[at+1]
		return strings.Contains(u.variant, "flow") && then.Code == ir.If && atomics(p.Code[at:then.Imm])
	}
	return false
}

// atomics reports whether the program has atomic operations.
func atomics(code []ir.Instr) bool {
	return slices.ContainsFunc(code, func(in ir.Instr) bool { return in.Code == ir.AtomicOp })
}

// TestMutants plants each defect at each place of each kernel. The checks or wrong results must
// reveal all of them. The kernels themselves have no findings, also in grids with more workgroups
// than necessary.
func TestMutants(t *testing.T) {
	rnd := rand.New(rand.NewPCG(33, 34))
	uses := map[*ir.Program][]*programUse{}
	var programs []*ir.Program
	for _, c := range mutantTrials(rnd) {
		names := Variants(c.o)
		if names == nil {
			names = []string{""}
		}
		if c.variants != nil {
			names = c.variants
		}
		for _, name := range names {
			if slices.Contains(akin, strings.TrimSuffix(name, "-subgroups")) {
				continue
			}
			if c.o == op.TopK && name == "radix" {
				continue // each row is one tile with few different digits, so most defects have no effect
			}
			for i, target := range targetsOf(name) {
				if i == 2 {
					break // these variants have the same kernels with other numbers
				}
				r, err := c.request(target.Target)
				if err != nil {
					t.Fatal(err)
				}
				r.Variant = name
				p, err := For(r)
				if errors.Is(err, op.ErrUnsupported) || idle(c, p) {
					continue
				} else if err != nil {
					t.Fatal(err)
				}
				sizes := target.sizes
				if len(sizes) > 2 {
					sizes = []int{4, 128}
				}
				for stage := range p.Stages {
					prog, _ := p.Stages[stage].Kernel.Program()
					if uses[prog] == nil {
						programs = append(programs, prog)
					}
					uses[prog] = append(uses[prog], &programUse{c, r, p, stage, name, sizes})
				}
			}
		}
	}
	var mu sync.Mutex
	kinds := map[string]int{}
	t.Run("programs", func(t *testing.T) {
		for n, prog := range programs {
			us := uses[prog]
			if testing.Short() && rand.IntN(2) == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d %v %s", n, us[0].c.o, us[0].variant), func(t *testing.T) {
				t.Parallel()
				for _, u := range us {
					if !sampled() {
						continue
					}
					if err := u.run(prog, prog, true); err != nil {
						t.Fatalf("unchanged: %v", err)
					}
				}
				for i := range mutations {
					n := mutations[i].everywhere(t, prog, us)
					mu.Lock()
					kinds[mutations[i].name] += n
					mu.Unlock()
				}
			})
		}
	})
	t.Logf("%d programs, mutants: %v", len(programs), kinds)
	for _, m := range mutations {
		if kinds[m.name] == 0 {
			t.Errorf("no mutant with %s", m.name)
		}
	}
}

// idle reports whether most lanes of the workgroups have nothing to do, as in kernels for long rows
// that get short rows: they are the same kernels with less work.
func idle(c *trial, p *Plan) bool {
	if p == nil || c.o.Class() != op.Row && c.o.Class() != op.Reduction {
		return false
	}
	_, cols := c.values[0].Shape.Rows()
	prog, err := p.Stages[0].Kernel.Program()
	if err != nil || strings.HasPrefix(p.Variant, "team4") || strings.HasPrefix(p.Variant, "team8") {
		return false // a workgroup has many lane groups
	}
	return p.Variant != "" && 4*cols < int(prog.Local[0])
}

// akin are variants whose kernels differ from those of other variants only by numbers.
var akin = []string{"team1", "team4", "team16", "team256", "team512", "team1024", "group128", "kept1024"}

// everywhere plants m at each place of a program, and returns the number of places.
func (m *mutation) everywhere(t *testing.T, prog *ir.Program, us []*programUse) (made int) {
	var code []ir.Instr // a copy without mutations, or nil
	for at := range prog.Code {
		if !live(prog, ir.Value(at)) {
			continue
		}
		if code == nil {
			code = slices.Clone(prog.Code)
		}
		if !m.plant(code, at) {
			continue
		}
		q := *prog
		q.Code, code = code, nil
		if harmless(us[0], m, prog, at) {
			continue
		}
		made++
		if !sampled() {
			continue
		}
		// Most defects change the results, and runs without checks are much faster.
		killed := !m.found && slices.ContainsFunc(us, func(u *programUse) bool { return u.run(prog, &q, false) != nil })
		killed = killed || slices.ContainsFunc(us, func(u *programUse) bool {
			err := u.run(prog, &q, true)
			var f found
			return errors.As(err, &f) || err != nil && !m.found
		})
		if !killed {
			t.Errorf("%s, stage %d, %s at %%%d: not found\n%s", prog.Name, us[0].stage, m.name, at, around(prog, at))
		}
	}
	return made
}

// live reports whether an instruction has an effect, or its value is used by a live instruction. A
// wrong value that is never used makes no difference.
func live(p *ir.Program, v ir.Value) bool {
	if p.Code[v].Type == ir.Invalid {
		return true
	}
	for i := int(v) + 1; i < len(p.Code); i++ {
		if args, n := p.Code[i].Operands(); slices.Contains(args[:n], v) && live(p, ir.Value(i)) {
			return true
		}
	}
	return false
}

// run runs the trial with q in place of program p, with or without checks.
func (u *programUse) run(p, q *ir.Program, check bool) error {
	extra := uint32(1)
	if strings.Contains(u.variant, "flow") {
		extra = 2 // one for each of the two iterations
	}
	for _, n := range u.sizes {
		g := &rig{check: check, first: p != q, subgroup: n, extra: extra, mutate: func(r *ir.Program) *ir.Program {
			if r == p {
				return q
			}
			return r
		}}
		if err := u.c.runPlan(g, u.r, u.plan); err != nil {
			return err
		}
	}
	return nil
}

// around lists the lines of a program near an instruction.
func around(p *ir.Program, at int) string {
	var b strings.Builder
	for i := max(1, at-2); i < min(len(p.Code), at+3); i++ {
		fmt.Fprintf(&b, "\t%%%d %v\n", i, p.Code[i])
	}
	return b.String()
}

// mutantTrials are small trials of the operations, with rows that do not fill their lane groups,
// and with values that show how ties and NaN are treated.
func mutantTrials(rnd *rand.Rand) []*trial {
	var cs []*trial
	ties := func(shape ...int) *op.Array {
		x := normal(rnd, shape...)
		for i := range x.Data {
			x.Data[i] = float64(rnd.IntN(5)) - 2
		}
		return x
	}
	for _, o := range []*op.Operation{op.Dot, op.Mean, op.Var, op.Max, op.ArgMin} {
		for _, shape := range [][]int{{5, 3}, {5, 60}, {2, 515}, {2, 8196}} {
			x := normal(rnd, shape...)
			for r := range shape[0] { // the extremes are near the end, at different places in each row
				row := x.Data[r*shape[1]:][:shape[1]]
				at := shape[1] - 1 - 5*r%shape[1]
				row[at], row[(at+shape[1]-1)%shape[1]] = -100-float64(r), 99+float64(r)
			}
			cs = append(cs, reductionTrial(o, true, x, normal(rnd, shape...)))
		}
	}
	for _, o := range op.Catalogue() {
		if o.Class() == op.Row {
			for i, shape := range [][]int{{5, 7}, {5, 61}, {2, 516}, {3, 6197}} {
				cs = append(cs, rowTrial(rnd, o, normal(rnd, shape...), i))
			}
		}
	}
	cs = append(cs, rowTrial(rnd, op.Cumsum, normal(rnd, 3, 200), 0))
	cs = append(cs, epilogueTrials(rnd)...)
	cs = append(cs,
		&trial{o: op.Transpose, types: []op.DType{op.F32}, values: []*op.Array{normal(rnd, 2, 35, 70)}},
		&trial{o: op.TopK, attrs: op.TopKOpts{K: 2}.Attrs(), types: []op.DType{op.F32}, values: []*op.Array{ties(2, 301)}},
		&trial{o: op.TopK, attrs: op.TopKOpts{K: 17}.Attrs(), types: []op.DType{op.F32}, values: []*op.Array{ties(2, 61)}},
	)
	floats := func(o *op.Operation, a op.Attrs, shapes ...[]int) {
		c := &trial{o: o, attrs: a}
		for _, s := range shapes {
			c.values, c.types = append(c.values, normal(rnd, s...)), append(c.types, op.F32)
		}
		cs = append(cs, c)
	}
	// Lanes with several vectors or elements; the last lanes have fewer of them.
	for _, side := range []int{24, 31} {
		square, _ := op.ReshapeTo(side, side)
		floats(op.Reshape, square, []int{side * side})
		floats(op.Sub, op.Attrs{}, []int{side, side}, []int{side})
	}
	for _, o := range []op.MatMulOpts{{}, {TransA: true}, {TransB: true}} {
		for _, e := range [][3]int{{35, 41, 170}, {36, 44, 172}} {
			a, w := []int{2, e[0], e[1]}, []int{2, e[1], e[2]}
			if o.TransA {
				a[1], a[2] = a[2], a[1]
			}
			if o.TransB {
				w[1], w[2] = w[2], w[1]
			}
			floats(op.MatMul, o.Attrs(), a, w, []int{e[2]})
		}
	}
	floats(op.MatMul, op.Attrs{}, []int{3, 17, 2*minShare + 9}, []int{3, 2*minShare + 9, 68}, []int{68})
	cs[len(cs)-1].variants = []string{"panels32x64"} // in parts
	floats(op.Conv2D, op.Conv2DOpts{Groups: 2, Stride: [2]int{2, 1}, Pad: [2]int{1, 2}}.Attrs(), []int{2, 12, 9, 11}, []int{10, 6, 3, 4}, []int{10})
	return cs
}
