package cuda

import (
	"fmt"
	"unsafe"
)

// A Dim is a size along three axes. An axis that is 0 counts as 1.
type Dim struct{ X, Y, Z uint32 }

func (d Dim) or1() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// String returns the size with a sign between the axes: "8×4×1".
func (d Dim) String() string {
	d = d.or1()
	return fmt.Sprintf("%d×%d×%d", d.X, d.Y, d.Z)
}

// A Config says how a kernel is launched.
type Config struct {
	Grid   Dim    // in blocks
	Block  Dim    // in threads
	Shared uint32 // bytes of dynamic shared memory for each block

	Cluster     Dim  // in blocks, if not zero: the grid is made of clusters (capability 9.0, CUDA 11.8)
	Cooperative bool // all blocks run at once and can wait for each other (CUDA 11.8)
	Overlap     bool // may begin before the launch ahead has ended; the kernel waits with griddepcontrol (9.0, 11.8)
}

// defaultShared is how much dynamic shared memory a kernel has without asking.
const defaultShared = 48 << 10

// largeParams is how many bytes of parameters a kernel can have at most: devices
// and drivers that are not the newest take 4 KiB.
const largeParams = 32764

// launchConfig is CUlaunchConfig.
type launchConfig struct {
	grid, block Dim
	shared      uint32
	_           uint32
	stream      uintptr
	attrs       uintptr
	count       uint32
	_           uint32
}

// launchAttribute is CUlaunchAttribute.
type launchAttribute struct {
	id    uint32
	_     uint32
	value [16]uint32
}

// kernelNode is CUDA_KERNEL_NODE_PARAMS.
type kernelNode struct {
	fn          uintptr
	grid, block Dim
	shared      uint32
	_           uint32
	params      uintptr
	extra       uintptr
}

// Attributes of launches.
const (
	launchCooperative = 2
	launchCluster     = 4
	launchOverlap     = 6
)

// Launch launches fn in the stream. params are the kernel's parameters, see [Params]; they are
// copied.
//
// # Errors
//   - [ErrInvalid] if the parameters are fewer than the kernel has, or the
//     driver refuses the sizes.
//   - [ErrForeign] if fn is of another device.
//   - [ErrDriverTooOld], [ErrUnsupported] for clusters and the like.
//   - [ErrDeviceLost] if this or an earlier kernel has failed.
func (s *Stream) Launch(fn *Function, c Config, params []byte) error {
	if s == nil || s.dev == nil {
		return closed("stream")
	}
	// The driver evicts most of the program from the first-level caches, so every cache line of
	// code and data matters here: this function handles the usual case without defer, and launch
	// handles the rest.
	if fn == nil || fn.prim != s.prim || !fn.mod.guard.enter() {
		return fn.enter(s.prim) // which says why
	}
	s.mu.Lock()
	f := s.f
	var err error
	plain := c.plain()
	if plain {
		grid, block := c.Grid.or1(), c.Block.or1()
		f.Args[0] = fn.handle
		f.Args[1], f.Args[2], f.Args[3] = uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z)
		f.Args[4], f.Args[5], f.Args[6] = uintptr(block.X), uintptr(block.Y), uintptr(block.Z)
		f.Args[7], f.Args[8], f.Args[9], f.Args[10] = uintptr(c.Shared), s.handle, 0, f.launch.address(params)
	}
	if direct := s.direct; direct != 0 && plain && f.fits(fn, &c, params) && s.prim.lost.Load() == nil {
		f.Fn, f.Bind = direct, 0
		f.launch.take(params)
		if driver, real := s.lib.(shared); real {
			driver.call(f) // not through a table of methods
		} else {
			s.lib.call(f)
		}
		f.live()
		if f.code() != codeSuccess {
			err = s.relaunch(fn, &c)
		} else if s.last.Load() != fn {
			s.last.Store(fn)
		}
	} else {
		err = s.launch(fn, &c, params)
	}
	s.mu.Unlock()
	if fn.mod.guard.leave() {
		fn.mod.destroy()
	}
	return err
}

// plain reports whether a launch needs no attributes.
func (c *Config) plain() bool {
	return c.Cluster.X|c.Cluster.Y|c.Cluster.Z == 0 && !c.Cooperative && !c.Overlap
}

// launch is Launch in a locked stream, for a kernel that is not unloaded meanwhile. The
// arguments of a plain launch are in the frame.
func (s *Stream) launch(fn *Function, c *Config, params []byte) error {
	if s.closed {
		return closed("stream")
	}
	f := s.f
	if err := f.pack(fn, c, params); err != nil {
		return err
	}
	e := cuLaunchKernel
	if !c.plain() {
		e = cuLaunchKernelEx
		l := &f.launch
		l.config = launchConfig{grid: c.Grid.or1(), block: c.Block.or1(), shared: c.Shared, stream: s.handle, attrs: uintptr(unsafe.Pointer(&l.attrs[0]))}
		l.attributes(c)
		f.Args[0], f.Args[1], f.Args[2], f.Args[3] = uintptr(unsafe.Pointer(&l.config)), fn.handle, 0, l.address(params)
	}
	if err := s.call(f, e); err != nil {
		return explain(err, fn, c)
	}
	if s.last.Load() != fn {
		s.last.Store(fn)
	}
	if s.sync {
		return s.launched(f, fn)
	}
	return nil
}

// relaunch repeats a launch that the driver has refused, with the context bound. The result of this
// call is final, see [primary.callAfter].
func (s *Stream) relaunch(fn *Function, c *Config) error {
	if err := s.prim.callBound(s.f, cuLaunchKernel, s.last.Load()); err != nil {
		return explain(err, fn, c)
	}
	s.last.Store(fn)
	return nil
}

// launched waits for a launch of a device with [WithSynchronousLaunches].
func (s *Stream) launched(f *frame, fn *Function) error {
	if s.capturing.Load() {
		return nil
	}
	f.Args[0] = s.handle
	return s.prim.callAfter(f, cuStreamSynchronize, fn)
}

// attributes fills in the attributes of a launch that has some.
func (l *launchFrame) attributes(c *Config) {
	add := func(id uint32, value ...uint32) {
		a := &l.attrs[l.config.count]
		*a = launchAttribute{id: id}
		copy(a.value[:], value)
		l.config.count++
	}
	if c.Cooperative {
		add(launchCooperative, 1)
	}
	if c.Cluster != (Dim{}) {
		d := c.Cluster.or1()
		add(launchCluster, d.X, d.Y, d.Z)
	}
	if c.Overlap {
		add(launchOverlap, 1)
	}
}

// pack checks the parameters and copies them to where they do not move, and sees
// to it that the kernel may have its shared memory.
func (f *frame) pack(fn *Function, c *Config, params []byte) error {
	if !f.fits(fn, c, params) {
		return f.packSlow(fn, c, params)
	}
	f.launch.take(params)
	return nil
}

// fits reports whether the parameters can be copied without conversion into a frame, and the kernel
// already may use its shared memory.
func (f *frame) fits(fn *Function, c *Config, params []byte) bool {
	return fn.moves == nil && len(params) >= fn.params && len(params) <= smallParams && c.Shared <= fn.shared.Load()
}

// take copies parameters that fit.
func (l *launchFrame) take(params []byte) {
	copy(l.params[:], params)
	l.point(l.params[:], len(params))
}

// packSlow is pack for everything that is not usual.
func (f *frame) packSlow(fn *Function, c *Config, params []byte) error {
	if len(params) < fn.params {
		return explain(invalid("%d bytes of parameters for a kernel that has %d", len(params), fn.params), fn, c)
	}
	size := len(params)
	if n := len(fn.moves); n > 0 {
		size = fn.moves[n-1].to + fn.moves[n-1].size
	}
	if size > largeParams {
		return explain(invalid("%d bytes of parameters", len(params)), fn, c)
	}
	if c.Shared > fn.shared.Load() {
		if err := fn.allowShared(c.Shared); err != nil {
			return explain(err, fn, c)
		}
	}
	l := &f.launch
	to := l.params[:]
	if size > len(to) {
		if len(l.large) == 0 {
			l.large = onHeap(make([]byte, largeParams))
		}
		to = l.large
	}
	if fn.moves == nil {
		copy(to, params)
	}
	for _, m := range fn.moves {
		copy(to[m.to:m.to+m.size], params[m.from:])
	}
	l.point(to, size)
	return nil
}

// point says where the parameters are.
func (l *launchFrame) point(to []byte, size int) {
	const end, buffer, bytes = 0, 1, 2
	l.size = uint64(size)
	// One by one: a literal is put together elsewhere, by stores that its copy waits
	// for.
	l.extra[0], l.extra[1] = buffer, uintptr(unsafe.Pointer(&to[0]))
	l.extra[2], l.extra[3] = bytes, uintptr(unsafe.Pointer(&l.size))
	l.extra[4] = end
}

// address returns the address of what pack has made of the parameters.
func (l *launchFrame) address(params []byte) uintptr {
	if len(params) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&l.extra[0]))
}

// explain adds the launch to its error. It does not change an error that other goroutines may have
// seen.
func explain(err error, fn *Function, c *Config) error {
	if e, ok := err.(*Error); ok && e.Code.sticky() {
		return err
	}
	return fmt.Errorf("%w (%s, grid %v, block %v, %d bytes shared)", err, fn.name, c.Grid, c.Block, c.Shared)
}
