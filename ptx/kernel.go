package ptx

import "fmt"

// Limits of all modules.
const (
	MaxInstructions = 1 << 20   // instructions of a kernel
	MaxStaticShared = 48 << 10  // bytes of arrays that SharedArray declares
	MaxShared       = 227 << 10 // bytes of all shared memory of a block of any target: see Target.MaxShared
	MaxThreads      = 1024      // threads of a block
	maxDepth        = 200       // nesting depth of blocks of code
	maxParams       = 512
)

// Module is a list of kernels for one target. The zero Module is not usable:
// see [NewModule].
type Module struct {
	target    Target
	kernels   []*Kernel
	n         int // number of kernels that were built since Reset
	positions bool
	least     uint8 // first PTX version that has the target
	err       *Error

	head        []byte // beginning of a text in version headVersion
	headVersion uint8
}

// NewModule returns an empty module for the target.
func NewModule(t Target) *Module {
	m := &Module{target: t, least: t.version()}
	m.Reset()
	return m
}

// Reset empties the module. The module keeps its memory and its target, so that building into it
// again allocates nothing.
func (m *Module) Reset() {
	m.n, m.err = 0, nil
	if m.least == 0 {
		m.err = &Error{Msg: fmt.Sprintf("unknown target %v", m.target), Err: ErrTarget}
	}
}

// RecordPositions records the author's file and line of each instruction, for the findings of
// [Module.Verify]. It affects kernels that are built later, and makes building about ten times
// slower.
func (m *Module) RecordPositions() { m.positions = true }

// Target returns the target of the module.
func (m *Module) Target() Target { return m.target }

// Kernel adds a kernel. It calls build once, and build calls methods of the Kernel to add
// instructions. The name must begin with a letter or _ and may contain letters, digits and _. The
// returned kernel describes its parameters and its shared memory.
func (m *Module) Kernel(name string, build func(k *Kernel)) *Kernel {
	var k *Kernel
	if m.n < len(m.kernels) {
		k = m.kernels[m.n]
	} else {
		k = &Kernel{}
		m.kernels = append(m.kernels, k)
	}
	m.n++
	k.start(m, name)
	k.run(build)
	if k.err != nil && m.err == nil {
		m.err = k.err
	}
	return k
}

// Err returns the first error, or nil.
func (m *Module) Err() error {
	if m.err == nil {
		return nil
	}
	return m.err
}

// Kernel is the code of one kernel. Instructions can be added only while its build function runs;
// afterwards only its properties can be read.
type Kernel struct {
	m        *Module
	name     string
	age      uint32 // number of times that the memory was reused
	code     []instr
	prologue []instr // instructions that run before code
	lists    []val   // operands for which an instruction has no room
	consts   []uint64
	pos      []uintptr // positions of code, if positions are recorded
	params   []param
	shared   []sharedArray
	raws     []string
	marks    []mark
	loops    []loop
	err      *Error

	written uint32 // age at which the text was written
	head    []byte // text before code
	headAge uint32 // age of head

	state
}

// state is the part of a kernel that is reset to zeros.
type state struct {
	regs    [numClasses]uint32
	target  Target // 0 if the kernel accepts no instructions: see ready
	version uint8
	level   uint8 // compared with brief.level
	guard   guard
	labels  uint32
	listed  int // index at which the current list begins

	specials [numSpecials]val
	static   uint64 // bytes of static shared memory
	dynamic  uint64
	rest     bool   // an array has the rest of the dynamic shared memory
	pointer  val    // pointer to the dynamic shared memory
	align    uint32 // alignment of arrays that are declared later
	extern   uint32 // alignment of the dynamic shared memory
	truths   [2]val // predicates that are always false and always true

	changed  bool // the parameters differ from those of the previous kernel
	depth    int
	threads  [3]uint32 // see Kernel.Block
	cluster  [3]uint32
	exactly  bool
	minimum  uint32
	building bool
	ignored  int // number of calls after the first error
}

type param struct {
	name string
	hash uint32 // hash of the name
	kind kind   // 0 for a TensorMap
	decl word   // "p_name"
	tail word   // ", [p_name];" and the end of the line
}

// layout returns the size of a parameter and its alignment.
func (p *param) layout() (size, align uint32) {
	if p.kind == kNone {
		return tensorMapBytes, tensorMapAlign
	}
	size = uint32(kinds[p.kind].size)
	return size, size
}

type sharedArray struct {
	name         string
	bytes, align uint32
	decl         []byte
	tail         word // ", s_name;" and the end of the line
}

// nowhere, unfolded and tooBig are placeholder kernels for values without a kernel. They accept no
// instructions, so they are never printed.
var (
	nowhere  = notMade("something that no kernel made")
	unfolded = notMade("an operation on constants that is not computed while building: put one into a register with Reg")
	tooBig   = notMade("a number that is negative or has more than 32 bits")
)

func notMade(what string) *Kernel { return &Kernel{err: &Error{Msg: what}} }

// owner returns k, or, for nil, a kernel that ignores all calls.
func (k *Kernel) owner() *Kernel {
	if k == nil {
		return nowhere
	}
	return k
}

func (k *Kernel) start(m *Module, name string) {
	k.state = state{}
	k.m, k.name, k.err, k.pos = m, name, nil, nil
	k.age++
	k.target, k.version, k.building, k.align = m.target.features(), m.least, true, 16
	k.code, k.prologue, k.lists, k.consts = k.code[:0], k.prologue[:0], k.lists[:0], k.consts[:0]
	k.params, k.shared, k.loops, k.raws, k.marks = k.params[:0], k.shared[:0], k.loops[:0], k.raws[:0], k.marks[:0]
	k.lists = append(k.lists, 0) // index 0 means no list
	k.level = levelPlain
	if m.positions {
		k.pos, k.level = make([]uintptr, 0, 64), 0
	}
	if m.err != nil {
		k.err, k.target, k.level = m.err, 0, 0
		return
	}
	if nameHash(name) == 0 {
		k.fail("%q is not a valid name of a kernel", name)
	}
	for _, other := range m.kernels[:m.n-1] {
		if other.name == name {
			k.fail("two kernels are called %s", name)
		}
	}
}

// abandoned is the panic value that ends a build function that does not end after an error.
type abandoned struct{}

func (k *Kernel) run(build func(k *Kernel)) {
	defer k.finish()
	build(k)
	if k.err == nil {
		k.put(opReturn, 0, 0, 0, 0, 0)
	}
}

func (k *Kernel) finish() {
	if r := recover(); r != nil {
		if _, ok := r.(abandoned); !ok {
			err, _ := r.(error)
			k.failure(err, "the build function panicked: %v", r)
		}
	}
	for _, m := range k.marks {
		if m.used && !m.placed && k.err == nil {
			k.failAt(m.pc, nil, "a label that is branched to and not placed")
		}
	}
	k.building, k.target, k.level = false, 0, 0
}

// fail records the first error; later ones are ignored.
func (k *Kernel) fail(format string, args ...any) { k.failure(nil, format, args...) }

func (k *Kernel) failure(err error, format string, args ...any) {
	if k.err == nil && k.m != nil {
		k.failAt(authorCounter(), err, format, args...)
	}
}

func (k *Kernel) failAt(pc uintptr, err error, format string, args ...any) {
	k.err = &Error{Kernel: k.name, Pos: position(pc), Msg: fmt.Sprintf(format, args...), Err: err}
	k.target, k.level = 0, 0
	if k.m.err == nil {
		k.m.err = k.err
	}
}

// ready reports whether calls have an effect: the kernel is being built and there was no error. If
// a build function does not end after an error, ready ends it by a panic.
func (k *Kernel) ready() bool {
	switch {
	case k.m == nil:
		return false
	case k.err != nil:
		if k.building {
			if k.ignored++; k.ignored > MaxInstructions {
				panic(abandoned{})
			}
		}
		return false
	case !k.building:
		k.fail("the kernel was used after it was built")
		return false
	}
	return true
}

// Target returns the target of the kernel's module, or 0 for a kernel without a module.
func (k *Kernel) Target() Target {
	if k = k.owner(); k.m == nil {
		return 0
	}
	return k.m.target
}

// Name returns the name of the kernel.
func (k *Kernel) Name() string { return k.name }

// Instructions returns the number of instructions of the kernel, including labels.
func (k *Kernel) Instructions() int { return len(k.prologue) + len(k.code) }

// Arg describes a parameter of a kernel for a launch.
type Arg struct {
	Name   string
	Offset int // offset in the block of parameters
	Size   int // bytes
}

// Args returns the parameters in order.
func (k *Kernel) Args() []Arg {
	args := make([]Arg, len(k.params))
	end := uint32(0)
	for i, p := range k.params {
		size, align := p.layout()
		offset := (end + align - 1) &^ (align - 1)
		args[i], end = Arg{p.name, int(offset), int(size)}, offset+size
	}
	return args
}

// SharedBytes returns the bytes of static shared memory of a block, and the bytes of dynamic shared
// memory that the launch must provide.
func (k *Kernel) SharedBytes() (static, dynamic int) { return int(k.static), int(k.dynamic) }

// MaxBlock promises that a block has at most x·y·z threads. The assembler uses this to distribute
// registers.
func (k *Kernel) MaxBlock(x, y, z int) { k.block(x, y, z, false) }

// Block promises that a block has exactly x·y·z threads. A launch with another block size fails.
func (k *Kernel) Block(x, y, z int) { k.block(x, y, z, true) }

func (k *Kernel) block(x, y, z int, exactly bool) {
	k = k.owner()
	if !k.ready() {
		return
	}
	if x < 1 || y < 1 || z < 1 || x > MaxThreads || y > MaxThreads || z > 64 || x*y*z > MaxThreads {
		k.failure(ErrLimit, "a block of %d x %d x %d threads is invalid: it must have 1 to 1024 threads", x, y, z)
		return
	}
	k.threads, k.exactly = [3]uint32{uint32(x), uint32(y), uint32(z)}, exactly
}

// MinBlocks limits the registers of the kernel, so that n blocks fit on a multiprocessor. It needs
// [Kernel.Block] or [Kernel.MaxBlock].
func (k *Kernel) MinBlocks(n int) {
	k = k.owner()
	if !k.ready() {
		return
	}
	if n < 1 || n > 32 {
		k.failure(ErrLimit, "%d is not a valid number of blocks on a multiprocessor", n)
		return
	}
	k.minimum = uint32(n)
}

// nameHash returns a hash of a name. It returns 0 if prefix + s is not a valid PTX name for the
// prefixes in use.
func nameHash(s string) uint32 {
	if s == "" || s == "_" || s == "WARP_SZ" || len(s) > 200 || s[0] >= '0' && s[0] <= '9' {
		return 0
	}
	h, before := uint32(1), byte(0)
	for i := range len(s) {
		c := s[i]
		if !nameBytes[c] || c == '_' && before == '_' {
			return 0
		}
		h, before = (h^uint32(c))*16777619, c
	}
	return h | 1
}

// nameBytes has the bytes that names may contain.
var nameBytes = func() (t [256]bool) {
	for _, c := range []byte("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		t[c] = true
	}
	return t
}()
