package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"unsafe"
)

// release implements the functions that free an object.
func (k *fake) release(name string, f *frame) Code {
	h := f.Args[0]
	drop := func(kind string) Code {
		if k.handles[h] != kind {
			k.bad = append(k.bad, fmt.Sprintf("%s of %#x, which is %q", name, h, k.handles[h]))
			return 400
		}
		delete(k.handles, h)
		return 0
	}
	switch name {
	case "cuDevicePrimaryCtxRelease_v2":
		if k.retained[h]--; k.retained[h] < 0 {
			k.bad = append(k.bad, "a context released too often")
		}
	case "cuDevicePrimaryCtxReset_v2":
		k.sticky = 0
		delete(k.contexts, 0x100+h)
	case "cuMemFree_v2", "cuMemFreeAsync":
		for i, s := range k.memory {
			if s.base == h {
				k.used -= int64(len(s.data))
				k.memory = slices.Delete(k.memory, i, i+1)
				return 0
			}
		}
		k.bad = append(k.bad, fmt.Sprintf("%s of %#x, which is free", name, h))
		return codeInvalidValue
	case "cuMemFreeHost":
		if k.pinned[h] == nil {
			k.bad = append(k.bad, "memory of the host freed twice")
			return codeInvalidValue
		}
		delete(k.pinned, h)
	case "cuStreamDestroy_v2":
		delete(k.capture, h)
		return drop("stream")
	case "cuEventDestroy_v2":
		return drop("event")
	case "cuModuleUnload":
		delete(k.modules, h)
		for fn, x := range k.funcs {
			if x.module == h {
				delete(k.funcs, fn)
			}
		}
		return drop("module")
	case "cuLinkDestroy":
		delete(k.linkers, h)
		return drop("linker")
	case "cuGraphDestroy":
		delete(k.graphs, h)
		return drop("graph")
	case "cuGraphExecDestroy":
		delete(k.graphs, h)
		return drop("executable graph")
	default:
		k.bad = append(k.bad, "unknown function "+name)
	}
	return 0
}

func (k *fake) handle(kind string) uintptr {
	k.next += 8
	k.handles[k.next] = kind
	return k.next
}

func (k *fake) lives(h uintptr) Code {
	if _, ok := k.handles[h]; !ok {
		k.bad = append(k.bad, fmt.Sprintf("handle %#x is used and does not live", h))
		return 400
	}
	return 0
}

func (k *fake) function(h uintptr) *fakeFunction {
	fn := k.funcs[h]
	if fn == nil {
		k.bad = append(k.bad, fmt.Sprintf("function %#x is used and its module is unloaded", h))
	}
	return fn
}

// bytes returns a range of device memory, or nil if a part of it is not allocated.
func (k *fake) bytes(p uintptr, n int) []byte {
	for _, s := range k.memory {
		if p >= s.base && p-s.base <= uintptr(len(s.data)) && n <= len(s.data)-int(p-s.base) {
			return s.data[p-s.base:][:n]
		}
	}
	for base, b := range k.pinned {
		if p >= base && p < base+uintptr(len(b)) {
			return b[p-base:][:n]
		}
	}
	return nil
}

// put runs work, or records it if the stream is captured.
func (k *fake) put(stream uintptr, kernel bool, run func() Code) Code {
	if c := k.lives(stream); c != 0 {
		return c
	}
	if g := k.capture[stream]; g != nil {
		k.next += 8
		g.nodes = append(g.nodes, &fakeNode{k.next, kernel, run})
		return 0
	}
	k.busy = 2
	return run()
}

func (k *fake) launch(stream, fn uintptr, grid [3]uintptr, shared int, extra uintptr) Code {
	run, c := k.prepare(fn, grid, shared, extra)
	if c != 0 {
		return c
	}
	return k.put(stream, true, run)
}

func (k *fake) prepare(h uintptr, grid [3]uintptr, shared int, extra uintptr) (func() Code, Code) {
	fn := k.function(h)
	if fn == nil {
		return nil, 400
	}
	if grid[0]*grid[1]*grid[2] == 0 || grid[1] > 65535 || shared > fn.shared {
		return nil, codeInvalidValue
	}
	var p []byte
	if extra != 0 {
		e := (*[5]uintptr)(pointer(extra))
		if e[0] != 1 || e[2] != 2 || e[4] != 0 {
			return nil, codeInvalidValue
		}
		p = slices.Clone(at(e[1], int(load(e[3]))))
	}
	return func() Code {
		k.params = append(k.params[max(0, len(k.params)-16):], p)
		switch fn.name {
		case "fault":
			k.sticky = codeIllegalAddress // seen by the next call
		case "relu":
			le := binary.LittleEndian
			n := int(le.Uint32(p[16:]))
			y, x := k.bytes(uintptr(le.Uint64(p)), 4*n), k.bytes(uintptr(le.Uint64(p[8:])), 4*n)
			if x == nil || y == nil {
				k.sticky = codeIllegalAddress
				return 0
			}
			for i := range n {
				v := math.Float32frombits(le.Uint32(x[4*i:]))
				le.PutUint32(y[4*i:], math.Float32bits(max(v, 0)))
			}
		}
		return 0
	}, 0
}

// load loads a module.
func (k *fake) load(f *frame) Code {
	a := f.Args[:]
	options := slices.Clone(a[2:5])
	head := at(a[1], 4)
	var text string
	if string(head) == string(elfMagic) {
		size := load(a[1] + 40) // the sections are last
		image := at(a[1], int(size)+64)
		text = string(image[64:size])
		if strings.Contains(text, "@wrongdevice") {
			return codeNoBinaryForGPU
		}
	} else {
		text = cstring(a[1])
		if c := k.compile(text, options); c != 0 {
			return c
		}
	}
	h := k.handle("module")
	k.modules[h] = text
	store(a[0], uint64(h))
	return 0
}

// compile stands in for the compiler of the driver: it writes a log, and returns an error
// code for texts that the tests mark as wrong.
func (k *fake) compile(text string, options []uintptr) Code {
	say := func(option uint32, s string) {
		for i := range int(options[0]) {
			if *(*uint32)(pointer(options[1] + uintptr(4*i))) == option {
				copy(at(uintptr(load(options[2]+uintptr(8*i))), logSize), s)
			}
		}
	}
	switch {
	case strings.Contains(text, ".version 99.9"):
		return codeUnsupportedPTX
	case strings.Contains(text, "@bad"):
		say(jitErrorLog, "ptxas fatal : line 7; syntax error near '@bad'")
		return codeInvalidPTX
	}
	say(jitInfoLog, "ptxas info : Used 20 registers")
	return 0
}

// fakeCubin returns an ELF file with one section, which is the text.
func fakeCubin(text string) []byte {
	b := make([]byte, 64+len(text)+64)
	copy(b, elfMagic)
	le := binary.LittleEndian
	b[4], b[5] = 2, 1
	le.PutUint16(b[18:], 190)
	sections := uint64(64 + len(text))
	le.PutUint64(b[40:], sections)
	le.PutUint16(b[58:], 64)
	le.PutUint16(b[60:], 1)
	copy(b[64:], text)
	le.PutUint32(b[sections+4:], 1)
	le.PutUint64(b[sections+24:], 64)
	le.PutUint64(b[sections+32:], uint64(len(text)))
	return b
}

func pointer(a uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&a)) }
func load(a uintptr) uint64            { return *(*uint64)(pointer(a)) }
func store(a uintptr, v uint64)        { *(*uint64)(pointer(a)) = v }
func store32(a uintptr, v int)         { *(*int32)(pointer(a)) = int32(v) }
