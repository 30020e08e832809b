package cuda

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/dl"
)

// A fake is a driver without devices: it keeps handles, memory and errors as the
// real one does, refuses what the real one refuses, and knows a few kernels. It
// runs work at once, and claims for two queries that it is not finished.
type fake struct {
	version  int
	devices  int
	capacity int64
	missing  map[string]bool
	inject   func(name string) Code // called with the lock held
	current  Code                   // the answer to a call in a stream that binds no context, 0 if there needs to be none
	unbound  int                    // such calls
	refused  map[*frame]Code        // what inject has answered to them

	mu       sync.Mutex
	calls    map[string]int
	total    int
	next     uintptr
	handles  map[uintptr]string // what lives, and of which kind
	contexts map[uintptr]int    // device of each primary context
	retained [8]int
	memory   []span
	used     int64
	pinned   map[uintptr][]byte
	sticky   Code
	busy     int
	modules  map[uintptr]string // text
	funcs    map[uintptr]*fakeFunction
	linkers  map[uintptr]*fakeLinker
	capture  map[uintptr]*fakeGraph // of a stream
	graphs   map[uintptr]*fakeGraph
	params   [][]byte // what was launched
	strings  map[string][]byte
	bad      []string // misuse
}

type span struct {
	base uintptr
	data []byte
}

type fakeFunction struct {
	module uintptr
	name   string
	shared int
}

type fakeLinker struct {
	text  string
	cubin []byte
	log   []uintptr // options
}

type fakeGraph struct {
	nodes []*fakeNode
}

type fakeNode struct {
	handle uintptr
	kernel bool
	run    func() Code
}

func newFake() *fake {
	return &fake{refused: map[*frame]Code{}, version: 13000, devices: 1, capacity: 1 << 30, missing: map[string]bool{}, calls: map[string]int{}, next: 0x1000,
		handles: map[uintptr]string{}, contexts: map[uintptr]int{}, pinned: map[uintptr][]byte{}, modules: map[uintptr]string{},
		funcs: map[uintptr]*fakeFunction{}, linkers: map[uintptr]*fakeLinker{}, capture: map[uintptr]*fakeGraph{},
		graphs: map[uintptr]*fakeGraph{}, strings: map[string][]byte{}}
}

// driver returns a driver whose library is the fake.
func (k *fake) driver() *driver { return &driver{load: func() (library, error) { return k, nil }} }

// open opens device 0 of a driver of its own, which the test closes.
func (k *fake) open(t testing.TB, opts ...Option) *Device {
	t.Helper()
	d, err := k.driver().open(0, append([]Option{WithCubinCache("")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// leaks returns what lives that should not once all is closed.
func (k *fake) leaks() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := slices.Clone(k.bad)
	for h, kind := range k.handles {
		all = append(all, fmt.Sprintf("%s %#x", kind, h))
	}
	if k.used != 0 {
		all = append(all, fmt.Sprintf("%d bytes of the device in %d blocks", k.used, len(k.memory)))
	}
	if len(k.pinned) != 0 {
		all = append(all, fmt.Sprintf("%d blocks of the host", len(k.pinned)))
	}
	for i, n := range k.retained {
		if n != 0 {
			all = append(all, fmt.Sprintf("context of device %d, %d times", i, n))
		}
	}
	slices.Sort(all)
	return all
}

func (k *fake) count(name string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.calls[name]
}

var fakeNames = func() []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.name)
	}
	return names
}()

// Symbol implements library.
func (k *fake) Symbol(name string) (uintptr, error) {
	i := slices.Index(fakeNames, name)
	if i < 0 || k.missing[name] {
		return 0, fmt.Errorf("fake: %w: %s", dl.ErrNoSymbol, name)
	}
	return uintptr(i) + 1, nil
}

// withoutContext are the functions that need no current context.
var withoutContext = map[string]bool{
	"cuInit": true, "cuDriverGetVersion": true, "cuGetErrorName": true, "cuGetErrorString": true, "cuDeviceGet": true,
	"cuDeviceGetCount": true, "cuDeviceGetName": true, "cuDeviceGetAttribute": true, "cuDeviceTotalMem_v2": true,
	"cuDeviceGetUuid": true, "cuDeviceGetPCIBusId": true, "cuDevicePrimaryCtxRetain": true,
	"cuDevicePrimaryCtxRelease_v2": true, "cuDevicePrimaryCtxReset_v2": true, "cuDevicePrimaryCtxSetFlags_v2": true,
}

// call implements library.
func (k *fake) call(f *frame) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f.Refused = 0
	name := fakeNames[f.Fn-1]
	if f.Bind != 0 {
		if _, ok := k.contexts[f.Context]; !ok || fakeNames[f.Bind-1] != "cuCtxSetCurrent" {
			f.Result, f.Refused = 201, 1
			return
		}
	} else if streamed[f.Fn-1] {
		if k.unbound++; k.current != 0 {
			f.Result = uintptr(uint32(k.current))
			return
		}
	} else if !withoutContext[name] {
		k.bad = append(k.bad, name+" without a context")
		f.Result = 201
		return
	}
	f.Result = uintptr(uint32(k.do(name, f)))
}

func (k *fake) do(name string, f *frame) Code {
	a := f.Args[:]
	switch name {
	case "cuGetErrorName", "cuGetErrorString": // never fails, not counted
		s := fmt.Sprintf("FAKE_ERROR_%d", a[0])
		if name == "cuGetErrorString" {
			s = fmt.Sprintf("meaning of %d", a[0])
		}
		if k.strings[s] == nil {
			k.strings[s] = onHeap(s)
		}
		store(a[1], uint64(address(k.strings[s])))
		return 0
	}
	k.calls[name]++
	k.total++
	release := strings.Contains(name, "Destroy") || strings.Contains(name, "Free") || strings.Contains(name, "Unload") ||
		strings.Contains(name, "Release") || strings.Contains(name, "Reset")
	if k.inject != nil && !release {
		// A call that failed without a context is made again with one, and fails
		// again.
		c := k.refused[f]
		if delete(k.refused, f); c == 0 || f.Bind == 0 {
			c = k.inject(name)
		}
		if c != 0 {
			if f.Bind == 0 && streamed[f.Fn-1] {
				k.refused[f] = c
			}
			if c.sticky() && !withoutContext[name] {
				k.sticky = c
			}
			return c
		}
	}
	if k.sticky != 0 && !withoutContext[name] {
		if release {
			k.release(name, f)
		}
		return k.sticky
	}
	if release {
		return k.release(name, f)
	}

	switch name {
	case "cuInit":
		if k.devices == 0 {
			return codeNoDevice
		}
	case "cuDriverGetVersion":
		store32(a[0], k.version)
	case "cuDeviceGetCount":
		store32(a[0], k.devices)
	case "cuDeviceGet":
		if int(a[1]) >= k.devices {
			return codeInvalidDevice
		}
		store32(a[0], int(a[1]))
	case "cuDeviceGetName":
		copy(at(a[0], int(a[1])), "Fake H0")
	case "cuDeviceTotalMem_v2":
		store(a[0], uint64(k.capacity))
	case "cuDeviceGetAttribute":
		v, ok := map[Attribute]int{CapabilityMajor: 9, CapabilityMinor: 0, Multiprocessors: 4, MaxThreadsPerBlock: 1024,
			SharedPerBlock: 48 << 10, SharedPerBlockOptin: 227 << 10, WarpSize: 32, MemoryPools: 1, ClusterLaunch: 1}[Attribute(a[1])]
		if !ok && a[1] > 130 {
			return codeInvalidValue
		}
		store32(a[0], v)
	case "cuDeviceGetUuid":
		copy(at(a[0], 16), "0123456789abcdef")
	case "cuDeviceGetPCIBusId":
		copy(at(a[0], int(a[1])), "0000:1b:00.0")
	case "cuDevicePrimaryCtxSetFlags_v2":
	case "cuDevicePrimaryCtxRetain":
		if k.sticky != 0 {
			return k.sticky
		}
		ctx := 0x100 + a[1]
		k.contexts[ctx] = int(a[1])
		k.retained[a[1]]++
		store(a[0], uint64(ctx))
	case "cuDeviceGetDefaultMemPool":
		store(a[0], 0x900)
	case "cuMemPoolSetAttribute":
		if a[1] == 4 && load(a[2]) != math.MaxUint64 {
			k.bad = append(k.bad, "the pool gives memory back")
		}
	case "cuMemPoolTrimTo", "cuMemPoolSetAccess", "cuCtxSynchronize", "cuCtxSetCurrent":
	case "cuDeviceCanAccessPeer":
		store32(a[0], 1)
	case "cuCtxEnablePeerAccess":
		if k.calls[name] > 1 {
			return codePeerAlreadyOn
		}
	case "cuCtxGetStreamPriorityRange":
		store32(a[0], 0)
		store32(a[1], -5)
	case "cuMemGetInfo_v2":
		store(a[0], uint64(k.capacity-k.used))
		store(a[1], uint64(k.capacity))
	case "cuMemAlloc_v2", "cuMemAllocAsync":
		n := int64(a[1])
		if n == 0 {
			return codeInvalidValue
		}
		if k.used+n > k.capacity {
			return codeOutOfMemory
		}
		k.used += n
		first := uint64(0x7f0000000000)
		base := uintptr(first)
		if l := len(k.memory); l > 0 {
			base = (k.memory[l-1].base + uintptr(len(k.memory[l-1].data)) + 511) &^ 255
		}
		k.memory = append(k.memory, span{base, make([]byte, n)})
		store(a[0], uint64(base))
	case "cuMemHostAlloc":
		b := onHeap(bytes.Repeat([]byte{0xaa}, int(a[1])))
		k.pinned[address(b)] = b
		store(a[0], uint64(address(b)))
	case "cuMemHostGetDevicePointer_v2":
		store(a[0], uint64(a[1]))
	case "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2":
		dst, src, n := a[0], a[1], int(a[2])
		return k.put(a[3], false, func() Code {
			var to, from []byte
			switch name {
			case "cuMemcpyHtoDAsync_v2":
				to, from = k.bytes(dst, n), at(src, n)
			case "cuMemcpyDtoHAsync_v2":
				to, from = at(dst, n), k.bytes(src, n)
			default:
				to, from = k.bytes(dst, n), k.bytes(src, n)
			}
			if to == nil || from == nil {
				return codeInvalidValue
			}
			copy(to, from)
			return 0
		})
	case "cuMemcpyPeerAsync":
		to, from := k.bytes(a[0], int(a[4])), k.bytes(a[2], int(a[4]))
		if to == nil || from == nil {
			return codeInvalidValue
		}
		copy(to, from)
	case "cuMemsetD8Async", "cuMemsetD32Async":
		dst, v, n := a[0], uint32(a[1]), int(a[2])
		return k.put(a[3], false, func() Code {
			size := 1
			if name == "cuMemsetD32Async" {
				size = 4
			}
			b := k.bytes(dst, n*size)
			if b == nil {
				return codeInvalidValue
			}
			for i := range b {
				b[i] = byte(v >> (8 * (i % size)))
			}
			return 0
		})
	case "cuStreamCreateWithPriority":
		store(a[0], uint64(k.handle("stream")))
	case "cuEventCreate":
		store(a[0], uint64(k.handle("event")))
	case "cuStreamSynchronize", "cuEventSynchronize":
		k.busy = 0
		return k.lives(a[0])
	case "cuStreamQuery", "cuEventQuery":
		if c := k.lives(a[0]); c != 0 {
			return c
		}
		if k.capture[a[0]] != nil {
			return 900
		}
		if k.busy > 0 {
			k.busy--
			return codeNotReady
		}
	case "cuStreamWaitEvent", "cuEventRecord":
		return max(k.lives(a[0]), k.lives(a[1]))
	case "cuEventElapsedTime":
		store32(a[0], int(int32(math.Float32bits(1.5))))
		return max(k.lives(a[1]), k.lives(a[2]))
	case "cuModuleLoadDataEx":
		return k.load(f)
	case "cuModuleGetFunction":
		text, ok := k.modules[a[1]]
		name := cstring(a[2])
		if !ok {
			return 400
		}
		if !strings.Contains(text, ".entry "+name+"(") {
			return codeNotFound
		}
		h := k.handle("")
		delete(k.handles, h) // it goes with its module
		k.funcs[h] = &fakeFunction{module: a[1], name: name, shared: defaultShared}
		store(a[0], uint64(h))
	case "cuModuleGetGlobal_v2":
		if !strings.Contains(k.modules[a[2]], ".global "+cstring(a[3])+";") {
			return codeNotFound
		}
		store(a[0], 0x7e0000000000)
		store(a[1], 64)
	case "cuFuncGetAttribute":
		if k.function(a[2]) == nil {
			return 400
		}
		store32(a[0], map[uintptr]int{funcMaxThreads: 1024, funcRegisters: 20, funcPTX: 80, funcBinary: 90}[a[1]])
	case "cuFuncSetAttribute":
		fn := k.function(a[0])
		if fn == nil {
			return 400
		}
		if a[1] == funcMaxDynamicShared {
			fn.shared = int(a[2])
		}
	case "cuFuncGetParamInfo":
		fn := k.function(a[0])
		if fn == nil {
			return 400
		}
		all := map[string][]uint64{"relu": {8, 8, 4}, "fault": {8}}[fn.name]
		if int(a[1]) >= len(all) {
			return codeInvalidValue
		}
		off := uint64(0)
		for _, n := range all[:a[1]] {
			off += n
		}
		store(a[2], off)
		store(a[3], all[a[1]])
	case "cuLaunchKernel":
		return k.launch(a[8], a[0], [3]uintptr{a[1], a[2], a[3]}, int(a[7]), a[10])
	case "cuLaunchKernelEx":
		c := (*launchConfig)(pointer(a[0]))
		return k.launch(c.stream, a[1], [3]uintptr{uintptr(c.grid.X), uintptr(c.grid.Y), uintptr(c.grid.Z)}, int(c.shared), a[3])
	case "cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuOccupancyMaxActiveClusters":
		store32(a[0], 2)
	case "cuOccupancyMaxPotentialBlockSize":
		store32(a[0], 8)
		store32(a[1], 256)
	case "cuTensorMapEncodeTiled":
		if a[0]&63 != 0 || a[2] < 1 || a[2] > 5 {
			return codeInvalidValue
		}
		for i, b := range at(a[4], 8) {
			at(a[0], 128)[i] = b
		}
	case "cuLinkCreate_v2":
		h := k.handle("linker")
		k.linkers[h] = &fakeLinker{log: slices.Clone(a[:3])}
		store(a[3], uint64(h))
	case "cuLinkAddData_v2":
		l := k.linkers[a[0]]
		l.text = strings.TrimSuffix(string(at(a[2], int(a[3]))), "\x00")
		return k.judge(l.text, l.log)
	case "cuLinkComplete":
		l := k.linkers[a[0]]
		l.cubin = fakeCubin(l.text)
		store(a[1], uint64(address(l.cubin)))
		store(a[2], uint64(len(l.cubin)))
	case "cuStreamBeginCapture_v2":
		if k.capture[a[0]] != nil {
			return 901
		}
		k.capture[a[0]] = &fakeGraph{}
	case "cuStreamEndCapture":
		g := k.capture[a[0]]
		if g == nil {
			return 903
		}
		delete(k.capture, a[0])
		h := k.handle("graph")
		k.graphs[h] = g
		store(a[1], uint64(h))
	case "cuGraphGetNodes":
		g := k.graphs[a[0]]
		if a[1] != 0 {
			for i, n := range g.nodes {
				store(a[1]+uintptr(8*i), uint64(n.handle))
			}
		}
		store(a[2], uint64(len(g.nodes)))
	case "cuGraphNodeGetType":
		for _, g := range k.graphs {
			for _, n := range g.nodes {
				if n.handle == a[0] {
					store32(a[1], 1)
					if n.kernel {
						store32(a[1], 0)
					}
				}
			}
		}
	case "cuGraphInstantiateWithFlags":
		g := k.graphs[a[1]]
		c := &fakeGraph{}
		for _, n := range g.nodes {
			m := *n
			c.nodes = append(c.nodes, &m)
		}
		h := k.handle("executable graph")
		k.graphs[h] = c
		store(a[0], uint64(h))
	case "cuGraphUpload":
		return max(k.lives(a[0]), k.lives(a[1]))
	case "cuGraphLaunch":
		if c := max(k.lives(a[0]), k.lives(a[1])); c != 0 {
			return c
		}
		for _, n := range k.graphs[a[0]].nodes {
			if c := n.run(); c != 0 {
				return c
			}
		}
	case "cuGraphExecUpdate":
		e, g := k.graphs[a[0]], k.graphs[a[1]]
		if len(e.nodes) != len(g.nodes) {
			return codeUpdateFailed
		}
		for i := range e.nodes {
			e.nodes[i].run = g.nodes[i].run
		}
	case "cuGraphExecKernelNodeSetParams":
		p := (*kernelNode)(pointer(a[2]))
		run, c := k.prepare(p.fn, [3]uintptr{uintptr(p.grid.X), uintptr(p.grid.Y), uintptr(p.grid.Z)}, int(p.shared), p.extra)
		if c != 0 {
			return c
		}
		for _, n := range k.graphs[a[0]].nodes {
			if n.handle == a[1] {
				n.run = run
			}
		}
	default:
		k.bad = append(k.bad, "unknown function "+name)
		return codeUnknown
	}
	return 0
}
