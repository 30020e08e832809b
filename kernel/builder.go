package kernel

import (
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/ir"
)

// Limits of all kernels. A device may have lower limits.
const (
	MaxLanes        = 1024      // lanes of a workgroup
	MaxSharedBytes  = 227 << 10 // bytes of workgroup arrays
	MaxBuffers      = 30
	MaxInstructions = 1 << 16
	maxShared       = 256 // number of workgroup arrays
	maxVars         = 1 << 12
	maxDepth        = 100 // nesting depth of blocks
)

// DefaultBudget is the maximum number of iterations of a loop that is not known to end, unless
// [Builder.Budget] sets another number. The device then ends the loop.
const DefaultBudget = 1 << 20

// Builder builds one program. It is valid while the build function of its kernel runs, and only in
// the goroutine of that call.
type Builder struct {
	*arena
	name            string
	local           [3]uint32
	preferRegisters bool
	sized           bool
	// verifier says that a complete analysis must check whether lanes reach barriers together: see
	// together.
	verifier bool
	budget   uint32
	uniforms []ir.Uniform
	params   unsafe.Pointer // the struct whose fields are the parameters
	paramLen uintptr

	positions bool
	err       *Error
	building  bool
	ignored   int // number of calls after the first error
}

// arena is the memory of a builder. Later builders reuse it.
type arena struct {
	code     []instr
	pos      []uintptr
	blocks   []block
	bindings []ir.Binding
	shared   []ir.Array
	vars     []ir.Var
	bytes    uint64 // bytes of workgroup arrays
	// same is a table for common subexpression elimination: it holds the last instruction for each
	// hash. An entry is used only if its instruction is equal and visible, so stale entries of
	// earlier programs do no harm.
	same [1 << sameBits]ir.Value
}

const sameBits = 11

// instr is an instruction while a program is built.
type instr struct {
	head  uint32 // code, type, width and flag: see function head
	args  [3]ir.Value
	imm   uint32
	state uint32 // live, unsure
}

const (
	// live: the block of the instruction is still open.
	live = 1 << iota
	// unsure: the value may differ between lanes. See jump and together.
	unsure
)

func (in *instr) code() ir.Code { return ir.Code(in.head) }

// program returns the instructions in the form that a program has.
func (a *arena) program() []ir.Instr {
	code := make([]ir.Instr, len(a.code))
	for i := range a.code {
		in, out := &a.code[i], &code[i] // the fields are copied one by one, as in add
		out.Code, out.Type, out.Width, out.Flag = ir.Code(in.head), ir.Type(in.head>>8), uint8(in.head>>16), uint8(in.head>>24)
		out.Args[0], out.Args[1], out.Args[2] = in.args[0], in.args[1], in.args[2]
		out.Imm = in.imm
	}
	return code
}

var arenas = sync.Pool{New: func() any {
	return &arena{code: make([]instr, 0, 1024)}
}}

// spent is the memory of a builder that has finished or has reported an error. It has no room, so
// that every call takes the slow path and is ignored.
var spent = &arena{}

// nowhere is the builder of values that no constructor made. The other variables are invalid
// values, which are returned if there is no builder that could report an error.
var (
	nowhere = notMade("something that no constructor made")
	unequal = notMade("a constant vector with unequal components: make one with Builder.Vec4F and its like")
	shifted = notMade("a constant shifted by more than 31")
	tooBig  = notMade("a constant that is negative or has more than 32 bits")
)

func notMade(what string) *Builder { return &Builder{arena: spent, err: &Error{Msg: what}} }

func newBuilder(name string, positions bool) *Builder {
	useInline.Do(setInline)
	a := arenas.Get().(*arena)
	a.code = append(a.code[:0], instr{})
	a.blocks = append(a.blocks[:0], block{})
	a.pos, a.bindings, a.shared, a.vars, a.bytes = nil, a.bindings[:0], a.shared[:0], a.vars[:0], 0
	if positions {
		a.pos = []uintptr{0}
	}
	return &Builder{arena: a, name: name, budget: DefaultBudget, positions: positions, building: true}
}

// release ends the use of the builder. Remaining handles then use the arena spent.
func (b *Builder) release() {
	a := b.arena
	b.arena, b.building = spent, false
	if b.err == nil {
		b.err = &Error{Kernel: b.name, Msg: "used after it was built"}
	}
	if a != spent {
		arenas.Put(a)
	}
}

// abandoned is the panic value that ends a build function that does not end after an error.
type abandoned struct{}

// fail records the first error; later ones are ignored.
func (b *Builder) fail(format string, args ...any) handle { return b.failure(nil, format, args...) }

func (b *Builder) failure(err error, format string, args ...any) handle {
	if b.err == nil {
		b.record(&Error{Kernel: b.name, Pos: authorPosition(), Msg: fmt.Sprintf(format, args...), Err: err})
	}
	return handle{b: b}
}

func (b *Builder) record(e *Error) {
	b.err = e
	if b.arena != spent {
		arenas.Put(b.arena)
		b.arena = spent
	}
}

// ready reports whether calls have an effect, because there was no error. If a build function does
// not end after an error, ready ends it by a panic.
func (b *Builder) ready() bool {
	if b == nil {
		return false
	}
	if b.err == nil {
		return b.arena != nil // the arena of the zero Builder is nil
	}
	if b.building {
		if b.ignored++; b.ignored > MaxInstructions {
			panic(abandoned{})
		}
	}
	return false
}

// push appends an instruction.
func (b *Builder) push(head uint32, a0, a1, a2 ir.Value, imm uint32) ir.Value {
	return b.add(head, a0, a1, a2, imm, live|unsure)
}

func (b *Builder) add(head uint32, a0, a1, a2 ir.Value, imm, state uint32) ir.Value {
	a := b.arena
	id := len(a.code)
	if id == cap(a.code) || a.pos != nil {
		if !b.room() {
			return 0
		}
	}
	// The fields are set one by one: a composite literal would be built elsewhere and copied, which
	// has to wait for its parts.
	a.code = a.code[:id+1]
	in := &a.code[id]
	in.head, in.imm, in.state = head, imm, state
	in.args[0], in.args[1], in.args[2] = a0, a1, a2
	return ir.Value(id)
}

// room makes room for one more instruction, records its position, and reports whether the
// instruction is to be added.
func (b *Builder) room() bool {
	if !b.ready() {
		return false
	}
	if len(b.code) >= MaxInstructions {
		b.failure(ErrLimit, "the kernel has more than %d instructions: does a Go loop unroll too far?", MaxInstructions)
		return false
	}
	if b.pos != nil {
		b.pos = append(b.pos, authorCounter())
	}
	if len(b.code) == cap(b.code) {
		b.code = append(make([]instr, 0, 2*cap(b.code)), b.code...)
	}
	return true
}

// head packs the code, the kind and the flag of an instruction: see push.
func head(c ir.Code, k kind, flag uint8) uint32 {
	return uint32(c) | uint32(k)<<8 | uint32(flag)<<24
}

// pure returns an instruction without side effects: an equal one that is visible here, or a new
// one. Its operands are a0, a1 and a2.
func (b *Builder) pure(head uint32, a0, a1, a2 ir.Value, imm uint32) ir.Value {
	a := b.arena
	if n := ir.Value(len(a.code)); a0 >= n || a1 >= n || a2 >= n {
		return b.push(head, a0, a1, a2, imm) // spent
	}
	return b.intern(head, a0, a1, a2, imm, live|(a.code[a0].state|a.code[a1].state|a.code[a2].state)&unsure)
}

func (b *Builder) intern(head uint32, a0, a1, a2 ir.Value, imm, state uint32) ir.Value {
	a := b.arena
	h := head*0x9e3779b1 ^ uint32(a0)*0x85ebca77 ^ uint32(a1)*0xc2b2ae3d ^ uint32(a2)*0x27d4eb2f ^ imm*0x165667b1
	h = (h ^ h>>15) * 0x2c1b3c6d >> (32 - sameBits)
	if c := a.same[h]; int(c) < len(a.code) {
		if in := &a.code[c]; in.head == head && in.args[0] == a0 && in.args[1] == a1 && in.args[2] == a2 && in.imm == imm && in.state&live != 0 {
			return c
		}
	}
	id := b.add(head, a0, a1, a2, imm, state)
	if id != 0 {
		b.arena.same[h] = id
	}
	return id
}

// constant returns the instruction of a constant.
func (b *Builder) constant(bits uint32, k kind) ir.Value {
	id := b.pure(head(ir.Const, k.scalar(), 0), 0, 0, 0, bits)
	if k.width() > 1 {
		id = b.pure(head(ir.Splat, k, 0), id, 0, 0, 0)
	}
	return id
}

// use returns the instruction of an operand of kind k.
func (b *Builder) use(x handle, k kind) ir.Value {
	if x.b == nil {
		return b.constant(x.bits, k)
	}
	if x.b != b || int(x.id) >= len(b.code) || b.code[x.id].state&live == 0 {
		return b.misuse(x)
	}
	return x.id
}

func (b *Builder) misuse(x handle) ir.Value {
	switch {
	case !b.ready():
	case x.b.name == "":
		b.fail("use of %s", x.b.err.Msg)
	case x.b != b:
		b.fail("a value of kernel %s is used in another kernel", x.b.name)
	default:
		b.fail("a value is used outside the block that computes it: use a Var to carry values out of blocks")
	}
	return 0
}

// owner returns b, or, for a builder that cannot build, a builder that ignores all calls.
//
//go:noinline
func (b *Builder) owner() *Builder {
	if b == nil || b.arena == nil {
		return nowhere
	}
	return b
}
