package cuda

import (
	"bytes"
	"math"
	"slices"
	"strings"
)

// fakeCall implements a function of the driver, given its name and arguments.
type fakeCall func(k *fake, name string, a []uintptr, f *frame) Code

// fakeDevices are the functions on devices and contexts.
var fakeDevices = map[string]fakeCall{
	"cuInit": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.devices == 0 {
			return codeNoDevice
		}
		return 0
	},
	"cuDriverGetVersion": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], k.version)
		return 0
	},
	"cuDeviceGetCount": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], k.devices)
		return 0
	},
	"cuDeviceGet": func(k *fake, name string, a []uintptr, f *frame) Code {
		if int(a[1]) >= k.devices {
			return codeInvalidDevice
		}
		store32(a[0], int(a[1]))
		return 0
	},
	"cuDeviceGetName": func(k *fake, name string, a []uintptr, f *frame) Code {
		copy(at(a[0], int(a[1])), "Fake H0")
		return 0
	},
	"cuDeviceTotalMem_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], uint64(k.capacity))
		return 0
	},
	"cuDeviceGetAttribute": func(k *fake, name string, a []uintptr, f *frame) Code {
		v, ok := map[Attribute]int{CapabilityMajor: 9, CapabilityMinor: 0, Multiprocessors: 4, MaxThreadsPerBlock: 1024,
			SharedPerBlock: 48 << 10, SharedPerBlockOptin: 227 << 10, WarpSize: 32, MemoryPools: 1, ClusterLaunch: 1}[Attribute(a[1])]
		if !ok && a[1] > 130 {
			return codeInvalidValue
		}
		store32(a[0], v)
		return 0
	},
	"cuDeviceGetUuid": func(k *fake, name string, a []uintptr, f *frame) Code {
		copy(at(a[0], 16), "0123456789abcdef")
		return 0
	},
	"cuDeviceGetPCIBusId": func(k *fake, name string, a []uintptr, f *frame) Code {
		copy(at(a[0], int(a[1])), "0000:1b:00.0")
		return 0
	},
	"cuDevicePrimaryCtxSetFlags_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		return 0
	},
	"cuDevicePrimaryCtxRetain": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.sticky != 0 {
			return k.sticky
		}
		ctx := 0x100 + a[1]
		k.contexts[ctx] = int(a[1])
		k.retained[a[1]]++
		store(a[0], uint64(ctx))
		return 0
	},
	"cuDeviceCanAccessPeer": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], 1)
		return 0
	},
	"cuCtxEnablePeerAccess": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.calls[name] > 1 {
			return codePeerAlreadyOn
		}
		return 0
	},
	"cuCtxGetStreamPriorityRange": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], 0)
		store32(a[1], -5)
		return 0
	},
}

// fakeMemory are the functions on memory.
var fakeMemory = map[string]fakeCall{
	"cuDeviceGetDefaultMemPool": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], 0x900)
		return 0
	},
	"cuMemPoolSetAttribute": func(k *fake, name string, a []uintptr, f *frame) Code {
		if a[1] == 4 && load(a[2]) != math.MaxUint64 {
			k.bad = append(k.bad, "the pool gives memory back")
		}
		return 0
	},
	"cuMemPoolTrimTo":    fakeNothing,
	"cuMemPoolSetAccess": fakeNothing,
	"cuCtxSynchronize":   fakeNothing,
	"cuCtxSetCurrent":    fakeNothing,
	"cuMemGetInfo_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], uint64(k.capacity-k.used))
		store(a[1], uint64(k.capacity))
		return 0
	},
	"cuMemAlloc_v2":   fakeMemAlloc,
	"cuMemAllocAsync": fakeMemAlloc,
	"cuMemHostAlloc": func(k *fake, name string, a []uintptr, f *frame) Code {
		b := onHeap(bytes.Repeat([]byte{0xaa}, int(a[1])))
		k.pinned[address(b)] = b
		store(a[0], uint64(address(b)))
		return 0
	},
	"cuMemHostGetDevicePointer_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], uint64(a[1]))
		return 0
	},
	"cuMemHostRegister_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		k.pinned[a[0]] = at(a[0], int(a[1]))
		return 0
	},
	"cuMemHostUnregister": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.pinned[a[0]] == nil {
			return 713 // CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED
		}
		delete(k.pinned, a[0])
		return 0
	},
	"cuMemcpyHtoDAsync_v2": fakeMemcpy,
	"cuMemcpyDtoHAsync_v2": fakeMemcpy,
	"cuMemcpyDtoDAsync_v2": fakeMemcpy,
	"cuMemcpyPeerAsync": func(k *fake, name string, a []uintptr, f *frame) Code {
		to, from := k.bytes(a[0], int(a[4])), k.bytes(a[2], int(a[4]))
		if to == nil || from == nil {
			return codeInvalidValue
		}
		copy(to, from)
		return 0
	},
	"cuMemsetD8Async":  fakeMemset,
	"cuMemsetD32Async": fakeMemset,
}

func fakeNothing(k *fake, name string, a []uintptr, f *frame) Code {
	return 0
}

func fakeMemAlloc(k *fake, name string, a []uintptr, f *frame) Code {
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
	return 0
}

func fakeMemcpy(k *fake, name string, a []uintptr, f *frame) Code {
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
}

func fakeMemset(k *fake, name string, a []uintptr, f *frame) Code {
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
}

// fakeStreams are the functions on streams and events.
var fakeStreams = map[string]fakeCall{
	"cuStreamCreateWithPriority": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], uint64(k.handle("stream")))
		return 0
	},
	"cuEventCreate": func(k *fake, name string, a []uintptr, f *frame) Code {
		store(a[0], uint64(k.handle("event")))
		return 0
	},
	"cuStreamSynchronize": fakeStreamSynchronize,
	"cuEventSynchronize":  fakeStreamSynchronize,
	"cuStreamQuery":       fakeStreamQuery,
	"cuEventQuery":        fakeStreamQuery,
	"cuStreamWaitEvent":   fakeStreamWaitEvent,
	"cuEventRecord":       fakeStreamWaitEvent,
	"cuEventElapsedTime": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], int(int32(math.Float32bits(1.5))))
		return max(k.lives(a[1]), k.lives(a[2]))
	},
}

func fakeStreamSynchronize(k *fake, name string, a []uintptr, f *frame) Code {
	k.busy = 0
	return k.lives(a[0])
}

func fakeStreamQuery(k *fake, name string, a []uintptr, f *frame) Code {
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
	return 0
}

func fakeStreamWaitEvent(k *fake, name string, a []uintptr, f *frame) Code {
	return max(k.lives(a[0]), k.lives(a[1]))
}

// fakeModules are the functions on modules, functions, launches and linkers.
var fakeModules = map[string]fakeCall{
	"cuModuleLoadDataEx": func(k *fake, name string, a []uintptr, f *frame) Code {
		return k.load(f)
	},
	"cuModuleGetFunction": func(k *fake, name string, a []uintptr, f *frame) Code {
		text, ok := k.modules[a[1]]
		entry := cstring(a[2])
		if !ok {
			return 400
		}
		if !strings.Contains(text, ".entry "+entry+"(") {
			return codeNotFound
		}
		h := k.handle("")
		delete(k.handles, h) // it goes with its module
		k.funcs[h] = &fakeFunction{module: a[1], name: entry, shared: defaultShared}
		store(a[0], uint64(h))
		return 0
	},
	"cuModuleGetGlobal_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		if !strings.Contains(k.modules[a[2]], ".global "+cstring(a[3])+";") {
			return codeNotFound
		}
		store(a[0], 0x7e0000000000)
		store(a[1], 64)
		return 0
	},
	"cuFuncGetAttribute": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.function(a[2]) == nil {
			return 400
		}
		store32(a[0], map[uintptr]int{funcMaxThreads: 1024, funcRegisters: 20, funcPTX: 80, funcBinary: 90}[a[1]])
		return 0
	},
	"cuFuncSetAttribute": func(k *fake, name string, a []uintptr, f *frame) Code {
		fn := k.function(a[0])
		if fn == nil {
			return 400
		}
		if a[1] == funcMaxDynamicShared {
			fn.shared = int(a[2])
		}
		return 0
	},
	"cuFuncGetParamInfo": func(k *fake, name string, a []uintptr, f *frame) Code {
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
		return 0
	},
	"cuLaunchKernel": func(k *fake, name string, a []uintptr, f *frame) Code {
		return k.launch(a[8], a[0], [3]uintptr{a[1], a[2], a[3]}, int(a[7]), a[10])
	},
	"cuLaunchKernelEx": func(k *fake, name string, a []uintptr, f *frame) Code {
		c := (*launchConfig)(pointer(a[0]))
		return k.launch(c.stream, a[1], [3]uintptr{uintptr(c.grid.X), uintptr(c.grid.Y), uintptr(c.grid.Z)}, int(c.shared), a[3])
	},
	"cuOccupancyMaxActiveBlocksPerMultiprocessor": fakeOccupancy,
	"cuOccupancyMaxActiveClusters":                fakeOccupancy,
	"cuOccupancyMaxPotentialBlockSize": func(k *fake, name string, a []uintptr, f *frame) Code {
		store32(a[0], 8)
		store32(a[1], 256)
		return 0
	},
	"cuTensorMapEncodeTiled": func(k *fake, name string, a []uintptr, f *frame) Code {
		if a[0]&63 != 0 || a[2] < 1 || a[2] > 5 {
			return codeInvalidValue
		}
		for i, b := range at(a[4], 8) {
			at(a[0], 128)[i] = b
		}
		return 0
	},
	"cuLinkCreate_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		h := k.handle("linker")
		k.linkers[h] = &fakeLinker{log: slices.Clone(a[:3])}
		store(a[3], uint64(h))
		return 0
	},
	"cuLinkAddData_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		l := k.linkers[a[0]]
		l.text = strings.TrimSuffix(string(at(a[2], int(a[3]))), "\x00")
		return k.compile(l.text, l.log)
	},
	"cuLinkComplete": func(k *fake, name string, a []uintptr, f *frame) Code {
		l := k.linkers[a[0]]
		l.cubin = fakeCubin(l.text)
		store(a[1], uint64(address(l.cubin)))
		store(a[2], uint64(len(l.cubin)))
		return 0
	},
}

func fakeOccupancy(k *fake, name string, a []uintptr, f *frame) Code {
	store32(a[0], 2)
	return 0
}

// fakeGraphs are the functions on graphs.
var fakeGraphs = map[string]fakeCall{
	"cuStreamBeginCapture_v2": func(k *fake, name string, a []uintptr, f *frame) Code {
		if k.capture[a[0]] != nil {
			return 901
		}
		k.capture[a[0]] = &fakeGraph{}
		return 0
	},
	"cuStreamEndCapture": func(k *fake, name string, a []uintptr, f *frame) Code {
		g := k.capture[a[0]]
		if g == nil {
			return 903
		}
		delete(k.capture, a[0])
		h := k.handle("graph")
		k.graphs[h] = g
		store(a[1], uint64(h))
		return 0
	},
	"cuGraphGetNodes": func(k *fake, name string, a []uintptr, f *frame) Code {
		g := k.graphs[a[0]]
		if a[1] != 0 {
			for i, n := range g.nodes {
				store(a[1]+uintptr(8*i), uint64(n.handle))
			}
		}
		store(a[2], uint64(len(g.nodes)))
		return 0
	},
	"cuGraphNodeGetType": func(k *fake, name string, a []uintptr, f *frame) Code {
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
		return 0
	},
	"cuGraphInstantiateWithFlags": func(k *fake, name string, a []uintptr, f *frame) Code {
		g := k.graphs[a[1]]
		c := &fakeGraph{}
		for _, n := range g.nodes {
			m := *n
			c.nodes = append(c.nodes, &m)
		}
		h := k.handle("executable graph")
		k.graphs[h] = c
		store(a[0], uint64(h))
		return 0
	},
	"cuGraphUpload": func(k *fake, name string, a []uintptr, f *frame) Code {
		return max(k.lives(a[0]), k.lives(a[1]))
	},
	"cuGraphLaunch": func(k *fake, name string, a []uintptr, f *frame) Code {
		if c := max(k.lives(a[0]), k.lives(a[1])); c != 0 {
			return c
		}
		for _, n := range k.graphs[a[0]].nodes {
			if c := n.run(); c != 0 {
				return c
			}
		}
		return 0
	},
	"cuGraphExecUpdate": func(k *fake, name string, a []uintptr, f *frame) Code {
		e, g := k.graphs[a[0]], k.graphs[a[1]]
		if len(e.nodes) != len(g.nodes) {
			return codeUpdateFailed
		}
		for i := range e.nodes {
			e.nodes[i].run = g.nodes[i].run
		}
		return 0
	},
	"cuGraphExecKernelNodeSetParams": func(k *fake, name string, a []uintptr, f *frame) Code {
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
		return 0
	},
}
