// Package cuda calls the driver API of NVIDIA devices from Go. It loads the driver
// library at its first use. A program needs neither the CUDA toolkit nor cgo, and it runs
// on machines without an NVIDIA driver, where [Open] returns an error.
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
// Work in a [Stream] runs in the order in which it was submitted, while the program
// continues. [Stream.Synchronize] waits for all of it. Different streams run
// concurrently; to make one stream wait for another, record an [Event]. There is no
// default stream.
//
// # Memory
//
// [Stream.Alloc] allocates device memory in stream order: Free does not wait, and later
// allocations reuse freed memory without a call to the driver. Use [Device.Alloc] for
// memory with a long life. [Stream.Upload] and [Stream.Download] copy from and to Go memory
// through page-locked memory of the stream. A program that fills page-locked memory
// itself ([HostMemory]) avoids the second copy.
//
// An address ([Ptr]) is a number, and the package does not check the accesses of a kernel.
// A kernel that accesses memory outside its allocations makes the device unusable: see
// Errors.
//
// # Threads
//
// All functions and methods are safe for concurrent use by several goroutines. The driver
// has a current context for each thread. A call that needs a context binds it in the same
// transition from Go as the call itself; submissions to a stream need none.
//
// # Errors
//
// Errors wrap the sentinels of this package. An error of the driver is an [*Error] with
// its code. Nothing panics. If a kernel fails, most often by [ErrIllegalAddress], the device
// is lost: every later call returns [ErrDeviceLost] and the name of the kernel that was
// launched last. Close the Device in that case. Open resets the device and tries again, but
// the driver permits it only after some failures. After an illegal address, it returns the
// same error until the process ends.
//
// # Closing
//
// Closing a Device closes everything that was made from it; each object can also be closed
// earlier. Close waits for running calls and may be called several times. Later calls
// return [ErrClosed].
package cuda
