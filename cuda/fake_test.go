package cuda

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/dl"
)

// A fake is a driver without devices. It keeps handles, memory and errors as the real
// driver does, refuses the same calls, and implements a few kernels. It runs work at
// once, but answers "not finished" to the first two queries.
type fake struct {
	version  int
	devices  int
	capacity int64
	missing  map[string]bool
	inject   func(name string) Code // called with the lock held
	current  Code                   // the result of a call in a stream without a bound context; 0 if the driver needs none
	unbound  int                    // such calls
	refused  map[*frame]Code        // the results of inject for these calls

	mu       sync.Mutex
	calls    map[string]int
	total    int
	next     uintptr
	handles  map[uintptr]string // the kind of each live handle
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
	params   [][]byte // the parameters of each launch
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

// leaks lists the objects that are still alive although everything was closed.
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
		// The package repeats a call that failed without a context with a context, so the injected failure
		// occurs again.
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

	for _, calls := range []map[string]fakeCall{fakeDevices, fakeMemory, fakeStreams, fakeModules, fakeGraphs} {
		if call := calls[name]; call != nil {
			return call(k, name, a, f)
		}
	}
	k.bad = append(k.bad, "unknown function "+name)
	return codeUnknown
}
