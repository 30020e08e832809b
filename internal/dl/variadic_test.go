//go:build unix && (cgo || (!goffi_static && (linux || darwin) && !android && (amd64 || arm64))) && !(darwin && arm64) && !(386 || arm || mips || mipsle)

package dl

import (
	"bytes"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// TestCallWithAllArguments sends a different number through each position, the
// registers and all places on the stack. The format is for numbers of 64 bits, and
// arguments of such functions travel differently on Apple's processors.
func TestCallWithAllArguments(t *testing.T) {
	f := NewFrame()
	f.Fn = symbol(t, libc(t), "snprintf")
	buf := text(strings.Repeat("?", 512))
	format := text(strings.TrimSuffix(strings.Repeat("%lld ", MaxArgs-3), " "))
	f.Args[0], f.Args[1], f.Args[2] = uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), uintptr(unsafe.Pointer(&format[0]))
	var want []string
	for i := 3; i < MaxArgs; i++ {
		f.Args[i] = uintptr(1000 + 37*i)
		want = append(want, strconv.Itoa(1000+37*i))
	}
	f.Call()
	runtime.KeepAlive(buf)
	runtime.KeepAlive(format)
	all := strings.Join(want, " ")
	if got := string(buf[:bytes.IndexByte(buf, 0)]); got != all || int(int32(f.Result)) != len(all) {
		t.Errorf("snprintf wrote %q and returned %d, want %q", got, int32(f.Result), all)
	}
}
