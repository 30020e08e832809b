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
// With cgo a few lines of C load libraries and make the calls, on every Unix. Without cgo, on Linux
// and macOS on amd64 and arm64, package goffi loads libraries and provides the functions that the
// runtime needs to call C, and a few lines of assembly make the calls. Such a program is linked
// dynamically to the C library, because only its loader can load other libraries. With the tag
// goffi_static the program stays static, and Open fails. A program that also links purego, which
// provides the same functions, must be built with cgo or with the tag nofakecgo. On Windows package
// syscall loads libraries and makes the calls. On other systems Open returns [ErrUnsupported].
//
// # Pointers
//
// Arguments are plain numbers, which the garbage collector ignores. They must point to memory that
// does not move and stays reachable: the frame's own [Frame.Out], other objects on the heap that the
// caller keeps reachable, or memory of the library. A local variable does not qualify, because the
// stack of a goroutine moves when it grows.
package dl
