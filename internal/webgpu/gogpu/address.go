//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import "unsafe"

// Some fields and arguments of the bindings are addresses as integers. The functions here return
// the memory to which they point. They are not inlined, so their results are on the heap and do not
// move. Callers keep them alive.

// text is a string as C has it.
type text struct{ first *byte }

//go:noinline
func newText(s string) *text { return &text{&append([]byte(s), 0)[0]} }

func (t *text) address() uintptr { return uintptr(unsafe.Pointer(t.first)) }

// texts is an array of strings as C has it.
type texts struct{ first **byte }

//go:noinline
func newTexts(list []string) *texts {
	all := make([]*byte, len(list)+1)
	for i, s := range list {
		all[i] = newText(s).first
	}
	return &texts{&all[0]}
}

func (t *texts) address() uintptr { return uintptr(unsafe.Pointer(t.first)) }

// out is a place for an address that the driver returns.
type out struct{ value uintptr }

//go:noinline
func newOut() *out { return new(out) }

func (o *out) address() uintptr { return uintptr(unsafe.Pointer(&o.value)) }

// bytes returns n bytes of memory that the driver has mapped.
func (o *out) bytes(n int64) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&o.value)), n)
}
