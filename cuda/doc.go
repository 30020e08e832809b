// Package cuda is the driver interface of NVIDIA's devices from Go. It loads the
// driver's library when it is first used: a program needs neither the CUDA
// toolkit nor cgo, and runs where there is no NVIDIA driver at all, with an
// error that says so.
//
//	dev, err := cuda.Open(0)
//	defer dev.Close()
//	mod, err := dev.Load(ptx)               // text, or a cubin
//	relu, err := mod.Function("relu")
//	s, err := dev.NewStream(0)
//	x, err := s.Alloc(4 * n)
//	err = s.Upload(x.Ptr(), cuda.AsBytes(in))
//	var p cuda.Params
//	p.Ptr(x.Ptr())
//	p.U32(n)
//	err = s.Launch(relu, cuda.Config{Grid: cuda.Dim{X: (n + 255) / 256}, Block: cuda.Dim{X: 256}}, p)
//	err = s.Download(cuda.AsBytes(out), x.Ptr())
//
// # Streams and order
//
// Work is put into a [Stream] and runs in the order in which it was put there,
// while the program goes on. [Stream.Synchronize] waits for all of it. Streams
// run beside each other; an [Event] of one is what another can wait for. There
// is no default stream.
//
// # Memory
//
// [Stream.Alloc] gives memory of the device in stream order: freeing it does not
// wait, and what was freed is used again without the driver. [Device.Alloc] is
// for memory that lives long. [Stream.Upload] and [Stream.Download] copy from
// and to Go's memory through locked memory of their own; a program that fills
// locked memory itself, [HostMemory], copies nothing twice.
//
// An address, [Ptr], is a number, and nothing checks what a kernel does with it.
// A kernel that reads or writes where it must not costs the device: see below.
//
// # Threads
//
// Everything is safe for concurrent use, from any goroutine. The driver keeps a
// current context for each thread: a call that needs one binds it, in the same
// excursion from Go as the call itself, and what goes into a stream needs none.
//
// # Errors
//
// Errors wrap the sentinels of this package, and what the driver answers is an
// [*Error] with its code. Nothing panics. When a kernel fails, in a way of which
// [ErrIllegalAddress] is the most frequent, the device is lost: that error comes
// back from every later call ([ErrDeviceLost]), with the name of the kernel that
// was launched last. Close the Device then; Open resets it and tries again. The
// driver allows that after some failures only: after an illegal address it answers
// with the same error until the process ends, and a new process starts afresh.
//
// # Closing
//
// What is made from a Device is closed with it, and can be closed before. Close
// waits for calls that run, never twice, and what is used afterwards returns
// [ErrClosed].
package cuda
