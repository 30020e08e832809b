package cuda

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/rayo-go/rayo/internal/dl"
)

// smallParams is how many bytes of parameters every device takes.
const smallParams = 4096

// A frame is a call of the driver with everything that its arguments point to.
// It lies on the heap, which the collector does not compact, so that the
// addresses of its parts stay good while it is reachable.
type frame struct {
	dl.Frame
	launch launchFrame
	text   [256]byte // names
}

// launchFrame has the other memory that a launch points to. The fields that every launch needs are
// adjacent, because the driver evicts most of the program's data from the first-level caches.
type launchFrame struct {
	extra  [5]uintptr // CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, end
	size   uint64
	params [smallParams]byte
	large  []byte // parameters beyond smallParams
	config launchConfig
	attrs  [4]launchAttribute
	node   kernelNode
}

// frames holds frames that nobody uses.
var frames = sync.Pool{New: func() any { return new(frame) }}

func newFrame() *frame      { return frames.Get().(*frame) }
func (f *frame) release()   { frames.Put(f) }
func (f *frame) live()      { runtime.KeepAlive(f) }
func (f *frame) code() Code { return Code(int32(f.Result)) }

// out returns the address of result i, for an argument that the driver stores
// through.
func (f *frame) out(i int) uintptr {
	f.Out[i] = 0
	return uintptr(unsafe.Pointer(&f.Out[i]))
}

// int returns result i, an int of C.
func (f *frame) int(i int) int { return int(*(*int32)(unsafe.Pointer(&f.Out[i]))) }

// ptr returns result i, a pointer or size of C.
func (f *frame) ptr(i int) uintptr { return uintptr(f.Out[i]) }

// buffer returns the address and size of room for a name.
func (f *frame) buffer() (addr, size uintptr) {
	clear(f.text[:])
	return uintptr(unsafe.Pointer(&f.text[0])), uintptr(len(f.text))
}

// string returns the text that the driver wrote into the buffer.
func (f *frame) string() string {
	for i, c := range f.text {
		if c == 0 {
			return string(f.text[:i])
		}
	}
	return string(f.text[:])
}

// at returns memory of the driver as bytes.
func at(addr uintptr, n int) []byte {
	if addr == 0 || n <= 0 {
		return nil
	}
	// The address is not in Go's memory, so the garbage collector cannot have moved the memory that
	// it points to.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&addr)), n)
}

// cstring returns the text at the address, which ends with a zero.
func cstring(addr uintptr) string {
	if addr == 0 {
		return ""
	}
	p := *(*unsafe.Pointer)(unsafe.Pointer(&addr))
	n := 0
	for n < 1<<16 && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(at(addr, n))
}

// onHeap returns a zero-terminated copy of text. The result of a function that is not inlined is on
// the heap, not on a stack, which moves when it grows.
//
//go:noinline
func onHeap[T string | []byte](text T) []byte {
	b := make([]byte, len(text)+1)
	copy(b, text)
	return b
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// words returns the address of result i and those behind it, for a small
// structure that the driver reads.
func (f *frame) words(i int) unsafe.Pointer { return unsafe.Pointer(&f.Out[i]) }
