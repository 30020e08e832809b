package memory

import (
	"runtime"
	"syscall/js"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/internal/jsmemory"
)

const (
	// probed is the size in bytes from which probe asks the page.
	probed = 64 << 20
	// page is the size in bytes of a page of WebAssembly, and mostPages the most pages of a memory.
	page, mostPages = 1 << 16, 1 << 16
)

// probe returns an error if the memory of this program cannot grow by size bytes and the heap does not have them: a refusal
// would end the program. It makes another memory of the size that this one would have, which nothing touches.
func probe(size int) error {
	if size < probed {
		return nil
	}
	m, err := jsmemory.Find()
	if err != nil {
		return nil
	}
	if grows(m.Get("buffer").Get("byteLength").Int(), size) {
		return nil
	}
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	if s.HeapIdle > 2*uint64(size) { // the idle memory may lie in several parts
		return nil
	}
	return fmt.Errorf("the engine refuses %d bytes: %w", size, ErrOutOfMemory)
}

// grows reports whether the engine makes a memory of size more bytes than has.
func grows(has, size int) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	pages := has/page + size/page + 1
	if pages > mostPages {
		return false
	}
	js.Global().Get("WebAssembly").Get("Memory").New(map[string]any{"initial": pages})
	return true
}
