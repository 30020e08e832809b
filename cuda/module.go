package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// A Module is loaded code. It is safe for concurrent use.
type Module struct {
	dev    *Device
	handle uintptr
	guard  guard
	log    string

	mu    sync.Mutex
	funcs map[string]*Function
}

// LoadOptions changes how text is compiled. The zero value is the usual way.
type LoadOptions struct {
	MaxRegisters int  // of a thread, or 0 for no limit
	Optimization int  // 1 to 4, or 0 for the driver's default, which is 4
	LineInfo     bool // keep positions for profilers
	NoCache      bool // compile even if a compiled form is kept
}

// Load loads a module from PTX text, which the driver compiles for the device, or from a cubinfor
// this device. Compiled modules are cached in a folder of the user; see [WithCubinCache].
//
// Load only trusted modules: a cubin is machine code, and the driver does not
// look at it closely. Text is checked by the driver's compiler.
//
// # Errors
//   - [ErrBadImage] if the driver refuses it; the error holds the log of the compiler.
//   - [ErrPTXTooNew], in a [*PTXError], if the text needs a newer driver.
//   - [ErrOutOfMemory] if the device is full.
func (d *Device) Load(image []byte) (*Module, error) { return d.LoadWith(image, LoadOptions{}) }

// LoadWith is Load with options.
func (d *Device) LoadWith(image []byte, o LoadOptions) (*Module, error) {
	if d == nil || d.prim == nil || !d.guard.enter() {
		return nil, closed("device")
	}
	handle, log, err := d.load(image, o)
	if err != nil {
		d.leave()
		return nil, err
	}
	m := &Module{dev: d, handle: handle, log: log, funcs: map[string]*Function{}}
	if err := d.adopt(m); err != nil {
		return nil, err
	}
	return m, nil
}

func (d *Device) load(image []byte, o LoadOptions) (handle uintptr, log string, err error) {
	f := newFrame()
	defer f.release()
	if bytes.HasPrefix(image, elfMagic) {
		if err := checkCubin(image); err != nil {
			return 0, "", err
		}
		return d.loadImage(f, onHeap(image), o)
	}
	if err := checkText(image); err != nil {
		return 0, "", err
	}
	text := onHeap(image)
	var cache *cubinCache
	// The linker compiles as if other code were to call in, and then ignores
	// setmaxnreg: registers that a kernel was to have are spilt (seen with driver
	// 580). Such text goes to the loader, and the driver's own cache keeps it.
	if !o.NoCache && !d.opts.noCache && !bytes.Contains(image, []byte("setmaxnreg")) {
		cache = openCubins(d.opts.cubins)
	}
	if cache == nil {
		return d.loadImage(f, text, o)
	}
	key := cubinKey(image, d.prim.drv.version, d.prim.info.Capability, o)
	if cubin := cache.get(key); cubin != nil {
		if handle, log, err = d.loadImage(f, onHeap(cubin), LoadOptions{}); err == nil || d.prim.lost.Load() != nil || errors.Is(err, ErrOutOfMemory) {
			return handle, log, err
		}
		cache.remove(key)
	}
	cubin, log, err := d.compile(f, text, o)
	if err == nil && checkCubin(cubin) == nil {
		cache.put(key, cubin)
		if handle, _, err = d.loadImage(f, onHeap(cubin), LoadOptions{}); err == nil {
			return handle, log, nil
		}
	}
	// On some drivers the linker accepts fewer texts than the loader, so the loader's error is the
	// one to report.
	return d.loadImage(f, text, o)
}

// checkText returns an error for what cannot be PTX.
func checkText(text []byte) error {
	switch {
	case len(text) == 0:
		return fmt.Errorf("cuda: %w: it is empty", ErrBadImage)
	case bytes.IndexByte(text, 0) >= 0:
		return fmt.Errorf("cuda: %w: the module is neither a cubin nor PTX text", ErrBadImage)
	case !bytes.Contains(text, []byte(".version")) || !bytes.Contains(text, []byte(".target")):
		return fmt.Errorf("cuda: %w: PTX has a .version and a .target", ErrBadImage)
	}
	return nil
}

// directive returns the word behind a directive of the text's head, or "".
func directive(text []byte, name string) string {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(name)); ok {
			if words := strings.FieldsFunc(string(rest), func(r rune) bool { return r <= ' ' || r == ',' }); len(words) > 0 {
				return words[0]
			}
		}
	}
	return ""
}

// textVersion returns the version of PTX that the text is in, or 0.
func textVersion(text []byte) PTXVersion {
	var major, minor int
	if n, _ := fmt.Sscanf(directive(text, ".version"), "%d.%d", &major, &minor); n != 2 || major < 0 || major > 99 || minor < 0 || minor > 9 {
		return 0
	}
	return PTXVersion(10*major + minor)
}

// loadImage gives the driver a cubin or text, which has a zero behind it.
func (d *Device) loadImage(f *frame, image []byte, o LoadOptions) (handle uintptr, log string, err error) {
	j := newJIT(o, image)
	f.Args[0], f.Args[1] = f.out(0), address(image)
	f.Args[2], f.Args[3], f.Args[4] = j.arguments()
	err = d.prim.call(f, cuModuleLoadDataEx)
	keep(image)
	keep(j)
	if err != nil {
		return 0, "", d.explainLoad(err, image, j)
	}
	return f.ptr(0), j.log(), nil
}

// explainLoad adds the compiler's log to the error of a module.
func (d *Device) explainLoad(err error, image []byte, j *jit) error {
	e, ok := err.(*Error)
	if !ok || e.Code.sticky() {
		return err
	}
	if e.Code == codeUnsupportedPTX {
		if v := textVersion(image); v != 0 {
			return &PTXError{Have: d.prim.drv.version.PTX(), Need: v, Driver: d.prim.drv.version, Update: driverFor(v)}
		}
	}
	detail := j.errors()
	if e.Code == codeNoBinaryForGPU || e.Code == codeInvalidPTX {
		if target := directive(image, ".target"); target != "" {
			detail = strings.TrimSpace(fmt.Sprintf("the text is for %s, the device is %s of capability %v\n%s",
				target, d.prim.info.Name, d.prim.info.Capability, detail))
		}
	}
	e.Detail = detail
	return e
}

// Log returns the compiler's messages about the module: registers, spills and warnings. It is empty
// for a module from the cache.
func (m *Module) Log() string {
	if m == nil {
		return ""
	}
	return m.log
}

// enter begins a call that uses the module.
func (m *Module) enter() error {
	if m == nil || m.dev == nil || !m.guard.enter() {
		return closed("module")
	}
	return nil
}

func (m *Module) leave() {
	if m.guard.leave() {
		m.destroy()
	}
}

// Global returns the address and the size of a variable of the module. The error wraps
// [ErrNotFound] if the module has no variable of that name.
func (m *Module) Global(name string) (Ptr, int64, error) {
	if err := m.enter(); err != nil {
		return 0, 0, err
	}
	defer m.leave()
	f := newFrame()
	defer f.release()
	n := onHeap(name)
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = f.out(0), f.out(1), m.handle, address(n)
	err := m.dev.prim.call(f, cuModuleGetGlobal)
	keep(n)
	if err != nil {
		return 0, 0, named(err, name)
	}
	return Ptr(f.Out[0]), int64(f.Out[1]), nil
}

// Function returns a kernel of the module. The error wraps [ErrNotFound] if the module has no
// kernel of that name.
func (m *Module) Function(name string) (*Function, error) {
	if err := m.enter(); err != nil {
		return nil, err
	}
	defer m.leave()
	m.mu.Lock()
	defer m.mu.Unlock()
	if fn := m.funcs[name]; fn != nil {
		return fn, nil
	}
	f := newFrame()
	defer f.release()
	n := onHeap(name)
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), m.handle, address(n)
	err := m.dev.prim.call(f, cuModuleGetFunction)
	keep(n)
	if err != nil {
		return nil, named(err, name)
	}
	fn := &Function{mod: m, prim: m.dev.prim, name: name, handle: f.ptr(0)}
	if err := fn.describe(f); err != nil {
		return nil, named(err, name)
	}
	m.funcs[name] = fn
	return fn, nil
}

// named adds the name of what an error is about.
func named(err error, name string) error {
	if e, ok := err.(*Error); ok && !e.Code.sticky() {
		e.Detail = fmt.Sprintf("%q", name)
	}
	return err
}

// Close unloads the module. Its kernels must not be running or recorded in a graph: wait for them,
// and close the graph first. Closing again does nothing.
func (m *Module) Close() error {
	if m == nil || m.dev == nil {
		return nil
	}
	if m.guard.close() {
		m.destroy()
	}
	return nil
}

func (m *Module) destroy() {
	f := newFrame()
	defer f.release()
	f.Args[0] = m.handle
	m.dev.prim.destroy(f, cuModuleUnload)
	m.dev.orphan(m)
}

// A Function is a kernel of a module, and lives as long. It is safe for
// concurrent use.
type Function struct {
	mod    *Module
	prim   *primary
	handle uintptr
	params int           // bytes of parameters as Params has them, or -1 if the driver does not say
	moves  []paramMove   // where the driver wants them, nil if it is there
	shared atomic.Uint32 // dynamic shared memory that it may have
	name   string
	attrs  FunctionInfo
}

// FunctionInfo describes a compiled kernel.
type FunctionInfo struct {
	Registers  int // of a thread
	Spilled    int // bytes of local memory of a thread: arrays, and registers that did not fit
	Shared     int // bytes of static shared memory of a block
	Constant   int // bytes of constant memory
	MaxThreads int // that a block can have
	PTX        PTXVersion
	Binary     Capability
	Params     int // bytes of parameters, or -1 if the driver does not say
}

// Name returns the name of the kernel.
func (fn *Function) Name() string { return fn.name }

// Info returns properties of the compiled kernel.
func (fn *Function) Info() FunctionInfo { return fn.attrs }

// Attributes of functions.
const (
	funcMaxThreads         = 0
	funcShared             = 1
	funcConstant           = 2
	funcLocal              = 3
	funcRegisters          = 4
	funcPTX                = 5
	funcBinary             = 6
	funcMaxDynamicShared   = 8
	funcNonPortableCluster = 14
)

// describe asks for the attributes of a new function.
func (fn *Function) describe(f *frame) error {
	p := fn.mod.dev.prim
	var ptx, binary int
	for _, a := range []struct {
		attribute uintptr
		to        *int
	}{
		{funcMaxThreads, &fn.attrs.MaxThreads}, {funcShared, &fn.attrs.Shared}, {funcConstant, &fn.attrs.Constant},
		{funcLocal, &fn.attrs.Spilled}, {funcRegisters, &fn.attrs.Registers}, {funcPTX, &ptx}, {funcBinary, &binary},
	} {
		f.Args[0], f.Args[1], f.Args[2] = f.out(0), a.attribute, fn.handle
		if err := p.call(f, cuFuncGetAttribute); err != nil {
			return err
		}
		*a.to = f.int(0)
	}
	fn.attrs.PTX, fn.attrs.Binary = PTXVersion(ptx), Capability{binary / 10, binary % 10}
	fn.shared.Store(uint32(max(0, defaultShared-fn.attrs.Shared)))

	// The driver returns the position of one parameter for each call, and an error after the last one.
	fn.params = 0
	var moves []paramMove
	for i := uintptr(0); ; i++ {
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = fn.handle, i, f.out(0), f.out(1)
		err := p.call(f, cuFuncGetParamInfo)
		if err == nil && i < largeParams {
			moves = append(moves, paramMove{to: int(f.Out[0]), size: int(f.Out[1])})
			continue
		}
		if f.code() != codeInvalidValue {
			fn.params, moves = -1, nil
		}
		break
	}
	if n := len(moves); n > 0 {
		fn.params = moves[n-1].to + moves[n-1].size
		if end := lay(moves); end > 0 {
			fn.params, fn.moves = end, moves
		}
	}
	if lost := p.lost.Load(); lost != nil {
		return lost
	}
	fn.attrs.Params = fn.params
	return nil
}

// enter begins a call that uses the function on a device.
func (fn *Function) enter(p *primary) error {
	if fn == nil {
		return closed("module")
	}
	if err := fn.mod.enter(); err != nil {
		return err
	}
	if fn.prim != p {
		fn.mod.leave()
		return foreign("kernel " + fn.name)
	}
	return nil
}

func (fn *Function) leave() { fn.mod.leave() }

// allowShared lets blocks of the kernel have n bytes of dynamic shared memory.
func (fn *Function) allowShared(n uint32) error {
	info := &fn.mod.dev.prim.info
	if most := info.SharedPerBlockOptin - fn.attrs.Shared; info.SharedPerBlockOptin > 0 && int64(n) > int64(most) {
		return invalid("%d bytes of dynamic shared memory; the device has %d for this kernel", n, most)
	}
	return fn.set(funcMaxDynamicShared, uintptr(n), func() {
		// Another goroutine may have requested more in the meantime, and the driver keeps the last
		// request: record only the size that is certain.
		fn.shared.Store(n)
	})
}

// AllowLargeClusters allows clusters of the kernel with more than 8 blocks, up to the limit of the
// device, which is 16 on Hopper.
func (fn *Function) AllowLargeClusters() error {
	if err := fn.enter(fn.primary()); err != nil {
		return err
	}
	defer fn.leave()
	return fn.set(funcNonPortableCluster, 1, func() {})
}

func (fn *Function) primary() *primary {
	if fn == nil || fn.mod == nil || fn.mod.dev == nil {
		return nil
	}
	return fn.mod.dev.prim
}

// set sets an attribute, and calls done before anyone else can set one.
func (fn *Function) set(attribute, v uintptr, done func()) error {
	fn.mod.mu.Lock()
	defer fn.mod.mu.Unlock()
	if attribute == funcMaxDynamicShared && uint32(v) <= fn.shared.Load() {
		return nil
	}
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2] = fn.handle, attribute, v
	if err := fn.mod.dev.prim.call(f, cuFuncSetAttribute); err != nil {
		return err
	}
	done()
	return nil
}

// MaxActiveBlocks returns how many blocks of a number of threads, with shared
// bytes of dynamic shared memory each, run on a multiprocessor at once.
func (fn *Function) MaxActiveBlocks(threads int, shared uint32) (int, error) {
	if err := fn.enter(fn.primary()); err != nil {
		return 0, err
	}
	defer fn.leave()
	if threads < 1 || threads > 1<<16 {
		return 0, invalid("blocks of %d threads", threads)
	}
	if shared > fn.shared.Load() {
		if err := fn.allowShared(shared); err != nil {
			return 0, err
		}
	}
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2], f.Args[3] = f.out(0), fn.handle, uintptr(threads), uintptr(shared)
	err := fn.mod.dev.prim.call(f, cuOccupancyMaxActiveBlocksPerMultiprocessor)
	return f.int(0), err
}

// BestBlock returns the number of threads of a block, and the number of blocks
// of a grid, with which the kernel fills the device.
func (fn *Function) BestBlock(shared uint32) (threads, blocks int, err error) {
	if err := fn.enter(fn.primary()); err != nil {
		return 0, 0, err
	}
	defer fn.leave()
	f := newFrame()
	defer f.release()
	f.Args[0], f.Args[1], f.Args[2], f.Args[3], f.Args[4], f.Args[5] = f.out(0), f.out(1), fn.handle, 0, uintptr(shared), 0
	err = fn.mod.dev.prim.call(f, cuOccupancyMaxPotentialBlockSize)
	return f.int(1), f.int(0), err
}

// MaxActiveClusters returns how many clusters of a launch run on the device at
// once. It needs CUDA 11.8.
func (fn *Function) MaxActiveClusters(c Config) (int, error) {
	if err := fn.enter(fn.primary()); err != nil {
		return 0, err
	}
	defer fn.leave()
	if c.Shared > fn.shared.Load() {
		if err := fn.allowShared(c.Shared); err != nil {
			return 0, err
		}
	}
	f := newFrame()
	defer f.release()
	l := &f.launch
	l.config = launchConfig{grid: c.Grid.or1(), block: c.Block.or1(), shared: c.Shared, attrs: addressOf(&l.attrs[0])}
	l.attributes(&c)
	f.Args[0], f.Args[1], f.Args[2] = f.out(0), fn.handle, addressOf(&l.config)
	err := fn.mod.dev.prim.call(f, cuOccupancyMaxActiveClusters)
	return f.int(0), err
}
