// Package emulated runs the driver of CUDA devices on the emulator of PTX. A defect of a kernel is
// an error of its launch, and names the instruction.
package emulated

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	cu "github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/driver/cuda"
	"github.com/rayo-go/rayo/internal/ptxkernels"
	"github.com/rayo-go/rayo/ptx/emu"
)

// emulator implements cuda.Hardware by the emulator of PTX. Work in the stream is complete when the
// call returns.
type emulator struct {
	info cu.Info

	mu       sync.Mutex
	m        *emu.Machine
	hosts    map[*emuHost]bool
	live     map[string]int // number of objects of each kind that have not been freed
	launches int
	copies   int                     // number of copies on the device
	maps     []*emu.TensorMap        // tensor maps by handle
	fail     func(what string) error // nil, or the first error
}

// Open returns a device with the compute capability that the emulator implements. checked also
// detects races and reads of uninitialised memory, which makes it slower.
func Open(c cu.Capability, checked bool) (driver.Device, error) {
	return cuda.New(newEmulator(c, checked))
}

func newEmulator(c cu.Capability, checked bool) *emulator {
	return &emulator{m: emu.NewMachine(emu.Config{Unchecked: !checked}), hosts: map[*emuHost]bool{}, live: map[string]int{},
		info: cu.Info{Name: "emulator", Capability: c, Driver: 12000, Memory: 1 << 32, Multiprocessors: 2}}
}

func (e *emulator) Info() cu.Info { return e.info }

func (e *emulator) failing(what string) error {
	if e.fail == nil {
		return nil
	}
	return e.fail(what)
}

type emuMemory struct {
	e   *emulator
	ptr emu.Ptr
}

func (m *emuMemory) Ptr() cu.Ptr { return cu.Ptr(m.ptr) }

func (m *emuMemory) Free() error {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.live["memory"]--
	return m.e.m.Free(m.ptr)
}

func (e *emulator) Alloc(n int64) (cuda.Memory, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("alloc"); err != nil {
		return nil, err
	}
	if n > 1<<31 {
		return nil, fmt.Errorf("cannot allocate %d bytes: %w", n, cu.ErrOutOfMemory)
	}
	p, err := e.m.Alloc("memory", int((n+255)&^255))
	if err != nil {
		return nil, err
	}
	e.live["memory"]++
	return &emuMemory{e, p}, nil
}

// emuHost is host memory. The part that a kernel accesses is copied before and after its launch,
// because other goroutines may use the rest at the same time.
type emuHost struct {
	e   *emulator
	b   []byte
	ptr emu.Ptr
}

func (h *emuHost) Bytes() []byte { return h.b }
func (h *emuHost) Ptr() cu.Ptr   { return cu.Ptr(h.ptr) }

func (h *emuHost) Write(off int64, src []byte) error {
	copy(h.b[off:], src)
	return nil
}

func (h *emuHost) Read(dst []byte, off int64) error {
	copy(dst, h.b[off:])
	return nil
}

func (h *emuHost) Close() error {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	delete(h.e.hosts, h)
	h.e.live["host memory"]--
	return h.e.m.Free(h.ptr)
}

// emuLocked is memory of the user whose pages are locked. Kernels do not use it.
type emuLocked struct{ emuHost }

func (h *emuLocked) Close() error {
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	h.e.live["locked pages"]--
	return nil
}

func (e *emulator) LockHost(b []byte) (cuda.HostMemory, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("lock"); err != nil {
		return nil, err
	}
	e.live["locked pages"]++
	return &emuLocked{emuHost{e: e, b: b}}, nil
}

func (e *emulator) AllocHost(n int64) (cuda.HostMemory, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("host"); err != nil {
		return nil, err
	}
	p, err := e.m.Alloc("host", int(n))
	if err != nil {
		return nil, err
	}
	words := make([]uint64, (n+7)/8)
	h := &emuHost{e, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n), p}
	e.hosts[h] = true
	e.live["host memory"]++
	return h, nil
}

type emuModule struct {
	e    *emulator
	m    *emu.Module
	text string
}

func (e *emulator) Load(text []byte) (cuda.Module, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("load"); err != nil {
		return nil, err
	}
	m, err := emu.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", cu.ErrBadImage, err)
	}
	e.live["modules"]++
	return &emuModule{e, m, string(text)}, nil
}

func (m *emuModule) Close() error {
	m.e.mu.Lock()
	defer m.e.mu.Unlock()
	m.e.live["modules"]--
	return nil
}

type emuFunction struct {
	k     *emu.Kernel
	sizes []int // sizes of the parameters; a tensor map is aligned to 128 bytes
}

var parameter = regexp.MustCompile(`\.param (?:\.align 64 \.b8 |\.[bfsu](\d+) )`)

func (m *emuModule) Function(name string) (cuda.Function, error) {
	k, err := m.m.Kernel(name)
	if err == nil {
		err = k.Err()
	}
	if err != nil {
		return nil, err
	}
	f := &emuFunction{k: k}
	head, _, _ := strings.Cut(m.text, "{")
	for _, p := range parameter.FindAllStringSubmatch(head, -1) {
		n := 8 * len(cu.TensorMap{})
		if p[1] != "" {
			fmt.Sscan(p[1], &n)
		}
		f.sizes = append(f.sizes, n/8)
	}
	return f, nil
}

func (e *emulator) Launch(fn cuda.Function, c cu.Config, args []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("launch"); err != nil {
		return err
	}
	f := fn.(*emuFunction)
	var params []any
	seen := map[*emuHost]bool{} // host memory that the kernel may use
	for at := 0; len(params) < len(f.sizes); {
		n := f.sizes[len(params)]
		align := min(n, 64)
		at = (at + align - 1) &^ (align - 1)
		args := args[at:]
		at += n
		switch n {
		case len(cu.TensorMap{}):
			params = append(params, e.maps[binary.LittleEndian.Uint64(args)])
		case 8:
			p := binary.LittleEndian.Uint64(args)
			params = append(params, p)
			for h := range e.hosts {
				if from := uint64(h.ptr); p >= from && p < from+uint64(len(h.b)) {
					seen[h] = true
				}
			}
		default:
			params = append(params, binary.LittleEndian.Uint32(args))
		}
	}
	for h := range seen {
		if err := e.m.Write(h.ptr, h.b); err != nil {
			return err
		}
	}
	e.launches++
	dim := func(d cu.Dim) emu.Dim { return emu.Dim{X: int(d.X), Y: int(d.Y), Z: int(d.Z)} }
	if err := e.m.Launch(context.Background(), f.k, dim(c.Grid), dim(c.Block), int(c.Shared), params...); err != nil {
		return err
	}
	for h := range seen {
		if err := e.m.Read(h.ptr, h.b); err != nil {
			return err
		}
	}
	return nil
}

// TensorMap returns a tensor map that contains only the number of t.
func (e *emulator) TensorMap(t *ptxkernels.Tiles, at cu.Ptr) (cu.TensorMap, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("tensor map"); err != nil {
		return cu.TensorMap{}, err
	}
	m := &emu.TensorMap{Base: emu.Ptr(at), Type: t.Type.String(), Dims: t.Size, Strides: t.Stride, Box: t.Tile, Swizzle: t.Swizzle}
	i := slices.IndexFunc(e.maps, func(o *emu.TensorMap) bool { return reflect.DeepEqual(o, m) })
	if i < 0 {
		i = len(e.maps)
		e.maps = append(e.maps, m)
	}
	var b cu.TensorMap
	binary.LittleEndian.PutUint64(b[:], uint64(i))
	return b, nil
}

func (e *emulator) Copy(dst, src cu.Ptr, n int64) error {
	e.mu.Lock()
	e.copies++
	e.mu.Unlock()
	b := make([]byte, n)
	if err := e.Download(b, src); err != nil {
		return err
	}
	return e.Upload(dst, b)
}

func (e *emulator) CopyFromHost(dst cu.Ptr, h cuda.HostMemory, off, n int64) error {
	return e.Upload(dst, h.Bytes()[off:off+n])
}

func (e *emulator) CopyToHost(h cuda.HostMemory, off int64, src cu.Ptr, n int64) error {
	return e.Download(h.Bytes()[off:off+n], src)
}

func (e *emulator) Synchronize() error { return nil }

func (e *emulator) Zero(dst cu.Ptr, n int64) error { return e.Upload(dst, make([]byte, n)) }

func (e *emulator) Upload(dst cu.Ptr, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("copy"); err != nil {
		return err
	}
	for h := range e.hosts {
		if off := int64(dst) - int64(h.ptr); off >= 0 && off < int64(len(h.b)) {
			copy(h.b[off:], src)
		}
	}
	return e.m.Write(emu.Ptr(dst), src)
}

func (e *emulator) Download(dst []byte, src cu.Ptr) error {
	if len(dst) == 0 {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("copy"); err != nil {
		return err
	}
	return e.m.Read(emu.Ptr(src), dst)
}

// Capture records the calls, which the graph executes when it is launched.
func (e *emulator) Capture(record func(hw cuda.Hardware) error) (cuda.Graph, error) {
	e.mu.Lock()
	err := e.failing("capture")
	e.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r := &emuGraph{emulator: e}
	if err := record(r); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live["graphs"]++
	return &emuRecorded{r}, nil
}

// emuGraph is an emulator that records the work of its stream.
type emuGraph struct {
	*emulator
	calls []func() error
}

func (g *emuGraph) note(f func() error) error {
	g.calls = append(g.calls, f)
	return nil
}

func (g *emuGraph) Launch(fn cuda.Function, c cu.Config, args []byte) error {
	args = slices.Clone(args)
	return g.note(func() error { return g.emulator.Launch(fn, c, args) })
}

func (g *emuGraph) Copy(dst, src cu.Ptr, n int64) error {
	return g.note(func() error { return g.emulator.Copy(dst, src, n) })
}

func (g *emuGraph) CopyFromHost(dst cu.Ptr, h cuda.HostMemory, off, n int64) error {
	return g.note(func() error { return g.emulator.CopyFromHost(dst, h, off, n) })
}

func (g *emuGraph) CopyToHost(h cuda.HostMemory, off int64, src cu.Ptr, n int64) error {
	return g.note(func() error { return g.emulator.CopyToHost(h, off, src, n) })
}

func (g *emuGraph) Zero(dst cu.Ptr, n int64) error {
	return g.note(func() error { return g.emulator.Zero(dst, n) })
}

var errCapturing = errors.New("the call cannot be recorded in a graph")

func (g *emuGraph) Alloc(int64) (cuda.Memory, error) { return nil, errCapturing }
func (g *emuGraph) Upload(cu.Ptr, []byte) error      { return errCapturing }
func (g *emuGraph) Download([]byte, cu.Ptr) error    { return errCapturing }

type emuRecorded struct{ g *emuGraph }

func (r *emuRecorded) Launch() error {
	for _, f := range r.g.calls {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (r *emuRecorded) Close() error {
	r.g.mu.Lock()
	defer r.g.mu.Unlock()
	r.g.live["graphs"]--
	return nil
}

type emuEvent struct {
	e      *emulator
	at     time.Time
	closed bool
}

func (v *emuEvent) Synchronize() error {
	v.e.mu.Lock()
	defer v.e.mu.Unlock()
	return v.e.failing("wait")
}

func (v *emuEvent) Close() error {
	v.e.mu.Lock()
	defer v.e.mu.Unlock()
	if v.closed {
		return errors.New("an event is closed twice")
	}
	v.closed = true
	v.e.live["events"]--
	return nil
}

func (e *emulator) NewEvent(bool) (cuda.Event, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.failing("event"); err != nil {
		return nil, err
	}
	e.live["events"]++
	return &emuEvent{e: e}, nil
}

func (e *emulator) Record(v cuda.Event) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.(*emuEvent).at = time.Now()
	return e.failing("record")
}

func (e *emulator) Elapsed(from, to cuda.Event) (time.Duration, error) {
	return to.(*emuEvent).at.Sub(from.(*emuEvent).at), nil
}

// Close returns an error if something was not freed. It waits a little, because a buffer may be
// freed while its device is closed.
func (e *emulator) Close() error {
	var err error
	for range 100 {
		if err = e.left(); err == nil {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return err
}

func (e *emulator) left() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for what, n := range e.live {
		if n != 0 {
			return fmt.Errorf("%d %s were not freed", n, what)
		}
	}
	return nil
}
