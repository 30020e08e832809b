//go:build unix && (cgo || (!goffi_static && (linux || darwin) && !android && (amd64 || arm64)))

package dl

import (
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"
)

// libc opens the C library.
func libc(t testing.TB) *Library {
	t.Helper()
	names := []string{"libc.so.6", "libc.musl-x86_64.so.1", "libc.musl-aarch64.so.1"}
	if runtime.GOOS == "darwin" {
		names = []string{"/usr/lib/libSystem.B.dylib"}
	}
	l, err := Open(names...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// text returns s as C has it, on the heap: a result of a function that is not
// inlined cannot be on the stack, which moves.
//
//go:noinline
func text(s string) []byte { return append([]byte(s), 0) }

func symbol(t testing.TB, l *Library, name string) uintptr {
	t.Helper()
	a, err := l.Symbol(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCallWithoutArguments(t *testing.T) {
	f := NewFrame()
	f.Fn = symbol(t, libc(t), "getpid")
	f.Call()
	if got := int(int32(f.Result)); got != os.Getpid() {
		t.Errorf("getpid() = %d, want %d", got, os.Getpid())
	}
}

func TestCallWithPointer(t *testing.T) {
	f := NewFrame()
	f.Fn = symbol(t, libc(t), "strlen")
	for _, n := range []int{0, 1, 7, 4096} {
		s := text(strings.Repeat("x", n))
		p := &s[0]
		f.Args[0] = uintptr(unsafe.Pointer(p))
		f.Call()
		runtime.KeepAlive(p)
		if int(f.Result) != n {
			t.Errorf("strlen of %d bytes = %d", n, f.Result)
		}
	}
}

func TestBindComesFirst(t *testing.T) {
	l := libc(t)
	f := NewFrame()
	f.Fn, f.Bind = symbol(t, l, "getpid"), symbol(t, l, "labs")

	f.Context = 0 // labs(0) is 0: bound
	f.Call()
	if f.Refused != 0 || int(int32(f.Result)) != os.Getpid() {
		t.Errorf("bound: refused %d, result %d, want 0 and %d", f.Refused, int32(f.Result), os.Getpid())
	}

	f.Context = 7
	f.Call()
	if f.Refused == 0 || int32(f.Result) != 7 {
		t.Errorf("not bound: refused %d, result %d, want 1 and 7", f.Refused, int32(f.Result))
	}

	f.Bind = 0
	f.Call()
	if f.Refused != 0 || int(int32(f.Result)) != os.Getpid() {
		t.Errorf("without a binding: refused %d, result %d", f.Refused, int32(f.Result))
	}
}

func TestMissingLibrary(t *testing.T) {
	libc(t)
	for _, names := range [][]string{nil, {""}, {"lib\x00c.so"}, {"librayo-has-no-such.so.1", "librayo-nor-this.so"}} {
		l, err := Open(names...)
		if l != nil || !errors.Is(err, ErrNotFound) {
			t.Errorf("Open(%q) = %v, %v; want ErrNotFound", names, l, err)
			continue
		}
		for _, n := range names {
			if n != "" && !strings.Contains(n, "\x00") && !strings.Contains(err.Error(), n) {
				t.Errorf("Open(%q) does not say what it looked for: %v", names, err)
			}
			if strings.HasPrefix(n, "lib") && strings.Contains(strings.ToLower(err.Error()), "no such file") {
				t.Errorf("Open(%q) says it again for each name: %v", names, err)
			}
		}
	}
}

func TestOpenTakesTheFirstThatExists(t *testing.T) {
	want := libc(t).Name()
	l, err := Open("librayo-has-no-such.so.1", want)
	if err != nil || l.Name() != want {
		t.Errorf("Open = %v, %v; want %s", l, err, want)
	}
}

func TestMissingSymbol(t *testing.T) {
	l := libc(t)
	for _, name := range []string{"", "rayo_has_no_such", "get\x00pid"} {
		if a, err := l.Symbol(name); a != 0 || !errors.Is(err, ErrNoSymbol) {
			t.Errorf("Symbol(%q) = %#x, %v; want ErrNoSymbol", name, a, err)
		}
	}
}

// TestConcurrentCalls calls from many goroutines whose stacks grow meanwhile,
// while the collector runs.
func TestConcurrentCalls(t *testing.T) {
	l := libc(t)
	strlen := symbol(t, l, "strlen")
	var wg sync.WaitGroup
	for g := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f := NewFrame()
			f.Fn = strlen
			for i := range 200 {
				n := (g*31 + i) % 300
				s := text(strings.Repeat("y", n))
				f.Args[0] = uintptr(unsafe.Pointer(&s[0]))
				deep(i%40, f)
				runtime.KeepAlive(s)
				if int(f.Result) != n {
					t.Errorf("strlen of %d bytes = %d", n, f.Result)
					return
				}
			}
			if _, err := l.Symbol("getpid"); err != nil {
				t.Error(err)
			}
		}()
	}
	for range 5 {
		runtime.GC()
	}
	wg.Wait()
}

// deep makes the call below n frames of 1 KiB.
func deep(n int, f *Frame) byte {
	var room [1024]byte
	if n == 0 {
		f.Call()
		return room[f.Result%1024]
	}
	room[n] = deep(n-1, f)
	return room[n]
}

func TestCallDoesNotAllocate(t *testing.T) {
	l := libc(t)
	f := NewFrame()
	f.Fn, f.Bind = symbol(t, l, "labs"), symbol(t, l, "labs")
	if n := testing.AllocsPerRun(1000, func() {
		f.Args[0] = 5
		f.Call()
	}); n != 0 {
		t.Errorf("a call allocates %v times", n)
	}
	if int(f.Result) != 5 {
		t.Errorf("labs(5) = %d", f.Result)
	}
}

func BenchmarkCall(b *testing.B) {
	l := libc(b)
	f := NewFrame()
	f.Fn = symbol(b, l, "labs")
	b.ReportAllocs()
	for b.Loop() {
		f.Call()
	}
}

// BenchmarkBoundCall is what a call of a driver costs without the driver.
func BenchmarkBoundCall(b *testing.B) {
	l := libc(b)
	f := NewFrame()
	f.Fn, f.Bind = symbol(b, l, "labs"), symbol(b, l, "labs")
	b.ReportAllocs()
	for b.Loop() {
		f.Call()
	}
}
