// Package dl calls functions of shared libraries that are loaded at run time,
// so that a program needs them neither to be built nor to start.
//
// A [Library] is opened by the first of several names that the system finds. A
// [Frame] holds the arguments and the result of one call; it is made once and
// used again, and a call through it allocates nothing:
//
//	lib, err := dl.Open("libcuda.so.1", "libcuda.so")
//	version, err := lib.Symbol("cuDriverGetVersion")
//	f := dl.NewFrame()
//	f.Fn, f.Args[0] = version, uintptr(unsafe.Pointer(&f.Out[0]))
//	f.Call()
//
// # Platforms
//
// With cgo a few lines of C load libraries and make the calls, on every Unix.
// Without cgo package goffi loads them and gives the runtime what it needs to
// leave Go, and a few lines of assembly make the calls: Linux and macOS on
// amd64 and arm64. Such a program is linked dynamically to the C library, for
// only its loader can load others; the tag goffi_static keeps it static, and
// Open then fails. A program that links purego as well, which brings the same
// part of the runtime, is built with cgo or with the tag nofakecgo. On Windows
// package syscall does all of it. Elsewhere Open returns [ErrUnsupported].
//
// # Pointers
//
// Arguments are plain numbers, which the collector does not see. What they
// point to must be memory that does not move and stays reachable: the frame's
// own [Frame.Out], other objects on the heap that the caller keeps alive, or
// memory of the library. The address of a local variable is none of these,
// because the stack of a goroutine moves as it grows.
package dl
