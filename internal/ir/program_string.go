package ir

import (
	"math"
	"strconv"
	"strings"

	"github.com/rayo-go/rayo/internal/fmt"
)

// Listing lists the program as structured code. A value with one use is printed at its use; other
// values have the number of their instruction. The program must be well formed. Listing is not a
// String method, because then every page would load its code.
func (p *Program) Listing() string {
	l := newListing(p)
	fmt.Fprintf(&l.b, "kernel %s, local size %d x %d x %d\n", p.Name, p.Local[0], p.Local[1], p.Local[2])
	if p.PreferRegisters {
		l.b.WriteString("\tprefers registers\n")
	}
	for i := range p.Bindings {
		fmt.Fprintf(&l.b, "\t%v\n", &p.Bindings[i])
	}
	for _, x := range p.Uniforms {
		fmt.Fprintf(&l.b, "\tparam %s %v\n", x.Name, x.Type)
	}
	for _, x := range p.Shared {
		atomic := ""
		if x.Atomic {
			atomic = "atomic "
		}
		fmt.Fprintf(&l.b, "\tshared %s [%d]%s%s\n", x.Name, x.Len, atomic, typeName(x.Type, x.Width))
	}
	for i, x := range p.Vars {
		fmt.Fprintf(&l.b, "\tvar %s %s\n", l.vars[i], typeName(x.Type, x.Width))
	}
	l.body()
	return l.b.String()
}

// String returns the buffer as a listing has it: input x []f32.
func (b *Binding) String() string {
	access := [...]string{"", "input", "output", "inout", "atomic"}
	return fmt.Sprintf("%s %s []%s", access[b.Access], b.Name, typeName(b.Type, b.Width))
}

// Signature returns the name of the program with its buffers and parameters:
// saxpy(input x []f32, inout y []f32, Scale f32).
func (p *Program) Signature() string {
	var list []string
	for i := range p.Bindings {
		list = append(list, p.Bindings[i].String())
	}
	if p.Text != nil && p.Text.ParamBytes > 0 {
		list = append(list, fmt.Sprintf("%d bytes of parameters", p.Text.ParamBytes))
	} else if p.Text == nil {
		for _, x := range p.Uniforms {
			list = append(list, fmt.Sprintf("%s %v", x.Name, x.Type))
		}
	}
	return p.Name + "(" + strings.Join(list, ", ") + ")"
}

func typeName(t Type, width uint8) string {
	if width > 1 {
		return fmt.Sprintf("vec%d<%v>", width, t)
	}
	return t.String()
}

// listing writes a program.
type listing struct {
	p      *Program
	b      strings.Builder
	vars   []string
	uses   []int
	inline []bool   // the value is printed at its use
	text   []string // of inline values
}

func newListing(p *Program) *listing {
	n := len(p.Code)
	l := &listing{p: p, vars: make([]string, len(p.Vars)), uses: make([]int, n), inline: make([]bool, n), text: make([]string, n)}
	count := map[string]int{}
	for _, v := range p.Vars {
		count[v.Name]++
	}
	next := map[string]int{}
	for i, v := range p.Vars {
		l.vars[i] = v.Name
		if count[v.Name] > 1 || v.Name == "" {
			l.vars[i] = fmt.Sprintf("%s.%d", v.Name, next[v.Name])
			next[v.Name]++
		}
	}
	// A value moves to its only use if that is in the same block and, where it
	// depends on memory, nothing is written between.
	user, block, epoch := make([]Value, n), make([]int, n), make([]int, n)
	blocks, writes, open := 0, 0, []int{0}
	for i := 1; i < n; i++ {
		in := &p.Code[i]
		if in.Code == Else || in.Code == End {
			open = open[:len(open)-1]
		}
		block[i], epoch[i] = open[len(open)-1], writes
		if in.Code == If || in.Code == For || in.Code == Loop || in.Code == Else {
			blocks++
			open = append(open, blocks)
		}
		args, k := in.Operands()
		for _, a := range args[:k] {
			l.uses[a]++
			user[a] = Value(i)
		}
		if !in.Code.Pure() && in.Code != Load && in.Code != LoadShared && in.Code != LoadVar {
			writes++
		}
	}
	site := make([]Value, n)
	for i := n - 1; i > 0; i-- {
		in := &p.Code[i]
		site[i] = Value(i)
		if in.Type == Invalid || in.Code == For {
			continue
		}
		switch in.Code {
		case Const, Param32, BuiltIn, Len:
			l.inline[i] = true
			continue
		}
		load := in.Code == Load || in.Code == LoadShared || in.Code == LoadVar
		if u := user[i]; l.uses[i] == 1 && block[i] == block[u] && (in.Code.Pure() || load && epoch[i] == epoch[site[u]]) {
			l.inline[i], site[i] = true, site[u]
		}
	}
	return l
}

// value returns the text of an operand; nested if it stands beside an operator.
func (l *listing) value(v Value, nested bool) string {
	if !l.inline[v] {
		return "v" + strconv.Itoa(int(v))
	}
	s := l.text[v]
	if _, op := infix[l.p.Code[v].Code]; op && nested {
		return "(" + s + ")"
	}
	return s
}

func (l *listing) constant(in *Instr) string {
	switch in.Type {
	case Bool:
		return strconv.FormatBool(in.Imm != 0)
	case I32:
		return strconv.Itoa(int(int32(in.Imm)))
	case U32:
		return strconv.FormatUint(uint64(in.Imm), 10)
	}
	s := strconv.FormatFloat(float64(math.Float32frombits(in.Imm)), 'g', -1, 32)
	if !strings.ContainsAny(s, ".eNI") {
		s += ".0"
	}
	return s
}

// expression returns the text of the value of an instruction.
func (l *listing) expression(in *Instr) string {
	p := l.p
	args, n := in.Operands()
	if op, ok := infix[in.Code]; ok {
		return l.value(args[0], true) + op + l.value(args[1], true)
	}
	list := func(from int) string {
		var s []string
		for _, a := range args[from:n] {
			s = append(s, l.value(a, false))
		}
		return strings.Join(s, ", ")
	}
	switch in.Code {
	case Const:
		return l.constant(in)
	case BuiltIn:
		return BuiltInNames[in.Flag]
	case Param32:
		return p.Uniforms[in.Imm].Name
	case Len:
		return "len(" + p.Bindings[in.Imm].Name + ")"
	case Load:
		return fmt.Sprintf("%s[%s]", p.Bindings[in.Imm].Name, list(0))
	case LoadShared:
		return fmt.Sprintf("%s[%s]", p.Shared[in.Imm].Name, list(0))
	case UniformLoad:
		return fmt.Sprintf("uniform %s[%s]", p.Shared[in.Imm].Name, list(0))
	case LoadVar:
		return l.vars[in.Imm]
	case AtomicOp:
		return l.atomic(in, p.Bindings[in.Imm].Name, list(1))
	case AtomicOpShared:
		return l.atomic(in, p.Shared[in.Imm].Name, list(1))
	case Neg:
		return "-" + l.value(args[0], true)
	case Not:
		return "!" + l.value(args[0], true)
	case Extract:
		return l.value(args[0], true) + "." + "xyzw"[in.Flag:in.Flag+1]
	case Convert, Splat, Compose:
		return fmt.Sprintf("%s(%s)", typeName(in.Type, in.Width), list(0))
	case Bitcast:
		return fmt.Sprintf("bitcast<%s>(%s)", typeName(in.Type, in.Width), list(0))
	case SubgroupOp, SubgroupScan:
		return fmt.Sprintf("%v_%s(%s)", in.Code, reduceNames[in.Flag], list(0))
	case SubgroupXor:
		return fmt.Sprintf("%v(%s, %d)", in.Code, list(0), in.Imm)
	}
	return fmt.Sprintf("%v(%s)", in.Code, list(0))
}

func (l *listing) atomic(in *Instr, name, operands string) string {
	return fmt.Sprintf("atomic %s[%s].%s(%s)", name, l.value(in.Args[0], false), atomicNames[in.Flag], operands)
}

// maxInline is the longest expression that moves to its use.
const maxInline = 80

func (l *listing) body() {
	depth := 1
	for i := 1; i < len(l.p.Code); i++ {
		in := &l.p.Code[i]
		if l.uses[i] == 0 && in.Code.Pure() {
			continue
		}
		if l.inline[i] {
			l.text[i] = l.expression(in)
			if l.inline[i] = len(l.text[i]) <= maxInline; l.inline[i] {
				continue
			}
		}
		if in.Code == Else || in.Code == End {
			depth--
		}
		fmt.Fprintf(&l.b, "%s%s\n", strings.Repeat("\t", depth), l.statement(Value(i), in))
		switch in.Code {
		case If, Else, For, Loop:
			depth++
		}
	}
}

func (l *listing) statement(i Value, in *Instr) string {
	p := l.p
	v := func(k int) string { return l.value(in.Args[k], false) }
	switch in.Code {
	case Store:
		return fmt.Sprintf("%s[%s] = %s", p.Bindings[in.Imm].Name, v(0), v(1))
	case StoreShared:
		return fmt.Sprintf("%s[%s] = %s", p.Shared[in.Imm].Name, v(0), v(1))
	case StoreVar:
		return fmt.Sprintf("%s = %s", l.vars[in.Imm], v(0))
	case If:
		return "if " + v(0) + " {"
	case Else:
		return "} else {"
	case End:
		return "}"
	case For:
		return fmt.Sprintf("for v%d = %s; v%d < %s; v%d += %s {", i, v(0), i, v(1), i, v(2))
	case Loop:
		return "loop {"
	case Barrier, Break, Continue, Return:
		return in.Code.String()
	}
	s := l.expression(in)
	if in.Type == Invalid || l.uses[i] == 0 && !in.Code.Pure() {
		return s
	}
	return fmt.Sprintf("v%d = %s", i, s)
}
