package interp

import (
	"sync"

	"github.com/rayo-go/rayo/internal/ir"
)

// Kernel is a program made ready to run. It is safe for concurrent use.
type Kernel struct {
	program *ir.Program
	limits  Limits
	local   int // lanes of a workgroup
	gang    int // workgroups along x that run as one
	lanes   int // local times gang
	blocks  int // of a plane
	ops     []op
	depth   int // of nested blocks

	given []source // registers that have a value before the code runs
	clear []source // registers of variables that may be read before they are written
	size  int      // of the register file, in words

	uses []use // while it is compiled

	mu   sync.Mutex
	idle []*machine // to be used again
}

// source describes the contents of a register.
type source struct {
	given
	r  reg
	at int // its place in the register file, in words
}

// Compile checks a program and makes it ready to run. The program must not be
// changed afterwards. An error wraps [ErrProgram] or [ErrLimit].
func Compile(p *ir.Program, limits Limits) (*Kernel, error) {
	limits = limits.withDefaults()
	if err := verify(p, limits); err != nil {
		return nil, err
	}
	k := &Kernel{program: p, limits: limits, local: int(p.Local[0] * p.Local[1] * p.Local[2])}
	k.gang = 1
	if independent(p) {
		k.gang = max(1, gangLanes/k.local)
	}
	k.lanes = k.local * k.gang
	k.blocks = (k.lanes + block - 1) / block
	n := len(p.Code)
	u := analyse(p, k.gang > 1)
	l := &lowering{p: p, u: u, l: live(p, u), k: k,
		vals: make([][4]reg, n), vars: make([][4]reg, len(p.Vars)), ends: make([][]ir.Value, n),
		held: make(map[reg]int), given: make(map[given]reg), step: make([]bool, n)}
	if err := l.run(); err != nil {
		return nil, err
	}
	// Uniform registers come first: they are few and used often.
	offset := func(r reg) int {
		if r.uniform() {
			return int(^r) * block
		}
		return (l.ones + int(r)*k.blocks) * block
	}
	for _, u := range k.uses {
		o, at := &k.ops[u.op], uintptr(offset(u.r))*4
		switch {
		case u.field == 0:
			o.d = at
		case u.field < 4:
			o.arg[u.field-1] = at
		default:
			o.mem.comp[u.field-4] = at
		}
	}
	k.uses = nil
	for i := range k.given {
		k.given[i].at = offset(k.given[i].r)
	}
	for i := range k.clear {
		k.clear[i].at = offset(k.clear[i].r)
	}
	// One block more: a loop's pointers end one block behind its operands.
	k.size = (l.ones + l.planes*k.blocks + 1) * block
	return k, nil
}

// gangLanes is the number of lanes of a gang of small workgroups that run as one. With fewer lanes, decoding an
// instruction would take longer than executing it.
const gangLanes = 64

// independent reports whether the lanes of a workgroup do not interact, so that several workgroups
// can run as one.
func independent(p *ir.Program) bool {
	if len(p.Shared) > 0 || usesSubgroups(p) {
		return false
	}
	for i := range p.Code {
		if p.Code[i].Code == ir.Barrier {
			return false
		}
	}
	return true
}

// Program returns the program from which the kernel was compiled.
func (k *Kernel) Program() *ir.Program { return k.program }

// Lanes returns the number of lanes of a workgroup.
func (k *Kernel) Lanes() int { return k.local }

// Scratch returns the number of bytes that each goroutine needs to run the kernel.
func (k *Kernel) Scratch() int {
	n := 4 * k.size
	for _, a := range k.program.Shared {
		n += 4 * int(a.Len) * int(a.Width)
	}
	return n
}
