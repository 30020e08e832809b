package emu

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rayo-go/rayo/ptx"
)

// Module is PTX that is prepared for running. It is safe for concurrent use.
type Module struct {
	lines   []string
	listing *ptx.Listing // nil if the text does not come from package ptx
	source  *source
	kernels []*Kernel
	names   map[string]*Kernel
	size    int // number of instructions of all kernels
}

// Load prepares the kernels of a module for running. It uses the text that the driver would get.
// Findings have the author's lines if the module recorded them: see [ptx.Module.RecordPositions].
// The caller may use the module again afterwards.
func Load(m *ptx.Module) (*Module, error) {
	if m == nil {
		return nil, errors.New("emu: no module")
	}
	l, err := m.Listing()
	if err != nil {
		return nil, err
	}
	return newModule(string(l.Text), l)
}

// Parse prepares the kernels of a PTX text to run. It supports the PTX of package ptx and of CUDA C
// compilers, and a little more. An error names the line of the text. An unsupported kernel does not
// prevent others from running: [Kernel.Err] and its launch return the reason.
func Parse(text string) (*Module, error) { return newModule(text, nil) }

// Build builds one kernel, with positions, and prepares it for running.
func Build(t ptx.Target, name string, build func(k *ptx.Kernel)) (*Kernel, error) {
	m := ptx.NewModule(t)
	m.RecordPositions()
	m.Kernel(name, build)
	em, err := Load(m)
	if err != nil {
		return nil, err
	}
	k, err := em.Kernel(name)
	if err != nil {
		return nil, err
	}
	return k, k.err
}

func newModule(text string, l *ptx.Listing) (*Module, error) {
	src, err := parse(text)
	if err != nil {
		return nil, err
	}
	m := &Module{lines: strings.Split(text, "\n"), listing: l, source: src, names: map[string]*Kernel{}}
	for _, f := range src.kernels {
		k := compile(m, f)
		m.kernels = append(m.kernels, k)
		m.names[k.name] = k
	}
	return m, nil
}

// Kernels returns the kernels in the order of the text.
func (m *Module) Kernels() []*Kernel { return append([]*Kernel(nil), m.kernels...) }

// Kernel returns the kernel with the given name.
func (m *Module) Kernel(name string) (*Kernel, error) {
	if k := m.names[name]; k != nil {
		return k, nil
	}
	return nil, fmt.Errorf("emu: the module has no kernel %q", name)
}

// Err returns the errors of kernels that cannot run, or nil if all can.
func (m *Module) Err() error {
	var errs []error
	for _, k := range m.kernels {
		errs = append(errs, k.err)
	}
	return errors.Join(errs...)
}

// at returns the author's position of a line.
func (m *Module) at(line int) ptx.Position {
	if m.listing == nil {
		return ptx.Position{}
	}
	return m.listing.At(line)
}

// text returns the given line of the text.
func (m *Module) text(line int) string {
	if line < 1 || line > len(m.lines) {
		return ""
	}
	return strings.TrimSpace(m.lines[line-1])
}

// Kernel is one kernel of a module. It is safe for concurrent use.
type Kernel struct {
	module   *Module
	name     string
	err      error // the reason why the kernel cannot run, or nil
	code     []inst
	routines []*routine // the kernel itself, and the functions that it may call
	stacks   bool       // threads need a stack
	used     []int      // variables of the module that the kernel uses, except those in shared memory
	params   []variable
	offsets  []int // offsets of params in the block of parameters
	bytes    int   // size of the block of parameters
	arrays   []array
	static   int // bytes of static shared memory
	align    int // alignment of the dynamic shared memory, 0 without dynamic shared memory
	threads  [3]int
	exactly  bool
	cluster  int
	remote   bool // the kernel has copies to, or mbarriers in, several blocks of a cluster

	proxy bool // the kernel has instructions of the async proxy

	planes int // number of planes: registers, then values that are constant for a launch
	preds  int
	given  []given // planes with initial values
}

// Name returns the name of the kernel.
func (k *Kernel) Name() string { return k.name }

// Instructions returns the number of instructions of the kernel and of the functions that it may
// call.
func (k *Kernel) Instructions() int { return len(k.code) }

// Param is a declared parameter of a kernel.
type Param struct {
	Name  string
	Type  string // type of an element, for example f32 or b8
	Bytes int    // size of all elements
}

// Err returns the reason why the kernel cannot run, or nil.
func (k *Kernel) Err() error { return k.err }

// Params returns the parameters of the kernel.
func (k *Kernel) Params() []Param {
	ps := make([]Param, len(k.params))
	for i, v := range k.params {
		ps[i] = Param{v.name, v.typ, v.bytes}
	}
	return ps
}

// array is an array in shared memory.
type array struct {
	name     string
	at, size int // the size of the dynamic array depends on the launch
}

// given is a plane that holds a constant, a special register or the address of a variable.
type given struct {
	plane    int32
	special  special // specialNone for a constant
	bits     uint64
	variable int // variable of the module, plus 1; the plane holds its address
}

// Shared memory begins above 0, so that an offset that was not added to an address is not a valid
// address. There is a gap after each array.
const (
	sharedBase = 1024
	sharedGap  = 64
)
