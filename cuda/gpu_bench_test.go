package cuda

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// heldOpen keeps the context between benchmarks, which takes long to make.
var heldOpen = sync.OnceValues(func() (*Device, error) { return Open(0) })

// gpuBench runs f on a device, with relu over 1024 floats ready to be launched.
func gpuBench(b *testing.B, f func(b *testing.B, s *Stream, relu *Function, p Params)) {
	d := gpu(b)
	must[*Device](b)(heldOpen())
	s := must[*Stream](b)(d.NewStream(0))
	relu := gpuFunction(b, d, "relu")
	x, y := must[Memory](b)(s.Alloc(64<<20)), must[Memory](b)(s.Alloc(4<<10))
	var p Params
	p.Ptr(y.Ptr())
	p.Ptr(x.Ptr())
	p.U32(1024)
	if err := s.Launch(relu, blocks(1024), p); err != nil {
		b.Fatal(err)
	}
	if err := s.Synchronize(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	f(b, s, relu, p)
	b.StopTimer()
	if err := s.Synchronize(); err != nil {
		b.Fatal(err)
	}
}

func check(b *testing.B, errs ...error) {
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
}

// every calls f in the loop, and waits for the stream now and then so that the
// queue never fills up. It reports the time of the calls without the waiting.
func every(b *testing.B, s *Stream, f func() error) {
	var calls time.Duration
	for n := b.N; n > 0; n -= 64 {
		start := time.Now()
		for range min(n, 64) {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		calls += time.Since(start)
		check(b, s.Synchronize())
	}
	b.ReportMetric(float64(calls.Nanoseconds())/float64(b.N), "ns/call")
}

func BenchmarkGPULaunch(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		every(b, s, func() error { return s.Launch(relu, blocks(1024), p) })
	})
}

// BenchmarkGPULaunchRaw is the driver's own launch: a call with arguments that
// are ready, with and without binding the context, and with the parameters as a
// list of pointers.
func BenchmarkGPULaunchRaw(b *testing.B) {
	for _, kind := range []string{"bind", "bound", "pointers"} {
		b.Run(kind, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
				f := newFrame()
				defer f.release()
				c := blocks(1024)
				check(b, f.pack(relu, &c, p))
				grid, block := c.Grid.or1(), c.Block.or1()
				f.Args = [15]uintptr{relu.handle, uintptr(grid.X), 1, 1, uintptr(block.X), 1, 1, 0, s.handle, 0, f.launch.address(p)}
				f.Fn, _ = s.dev.prim.drv.find(cuLaunchKernel)
				f.Bind, _ = s.dev.prim.drv.find(cuCtxSetCurrent)
				f.Context = s.dev.prim.context
				f.Call()
				if kind != "bind" {
					f.Bind = 0
				}
				if kind == "pointers" {
					l := &f.launch
					l.extra = [5]uintptr{addressOf(&l.params[0]), addressOf(&l.params[8]), addressOf(&l.params[16])}
					f.Args[9], f.Args[10] = addressOf(&l.extra), 0
				}
				every(b, s, func() error { f.Call(); return f.failed() })
			})
		})
	}
}

// BenchmarkGPULaunchCost takes turns between this package's launch and the
// driver's own, and reports both.
func BenchmarkGPULaunchCost(b *testing.B) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		f := newFrame()
		defer f.release()
		c := blocks(1024)
		check(b, f.pack(relu, &c, p))
		grid, block := c.Grid.or1(), c.Block.or1()
		f.Args = [15]uintptr{relu.handle, uintptr(grid.X), 1, 1, uintptr(block.X), 1, 1, 0, s.handle, 0, f.launch.address(p)}
		f.Fn, _ = s.dev.prim.drv.find(cuLaunchKernel)
		f.Bind = 0
		var ours, drivers time.Duration
		for range b.N {
			start := time.Now()
			for range 64 {
				f.Call()
			}
			drivers += time.Since(start)
			check(b, f.failed(), s.Synchronize())
			start = time.Now()
			for range 64 {
				if err := s.Launch(relu, c, p); err != nil {
					b.Fatal(err)
				}
			}
			ours += time.Since(start)
			check(b, s.Synchronize())
		}
		b.ReportMetric(float64(drivers.Nanoseconds())/float64(64*b.N), "ns/raw")
		b.ReportMetric(float64(ours.Nanoseconds())/float64(64*b.N), "ns/launch")
	})
}

// failed returns an error for a call that was made without the package.
func (f *frame) failed() error {
	if c := f.code(); c != codeSuccess {
		return fmt.Errorf("the driver answers %d", c)
	}
	return nil
}

// BenchmarkGPULaunchBlock waits with the driver's own way only.
func BenchmarkGPULaunchBlock(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		f := newFrame()
		defer f.release()
		for range b.N {
			check(b, s.Launch(relu, blocks(1024), p))
			f.Args[0] = s.handle
			check(b, s.call(f, cuStreamSynchronize))
		}
	})
}

func BenchmarkGPUQuery(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
		for range b.N {
			_, err := s.Done()
			check(b, err)
		}
	})
}

// BenchmarkGPUQueryRaw is the driver's own query, with and without binding.
func BenchmarkGPUQueryRaw(b *testing.B) {
	for _, bind := range []bool{true, false} {
		b.Run(fmt.Sprintf("bind=%v", bind), func(b *testing.B) {
			gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
				f := newFrame()
				f.Fn, _ = s.dev.prim.drv.find(cuStreamQuery)
				f.Bind = 0
				if bind {
					f.Bind, _ = s.dev.prim.drv.find(cuCtxSetCurrent)
				}
				f.Context, f.Args[0] = s.dev.prim.context, s.handle
				for range b.N {
					f.Call()
				}
				f.release()
			})
		})
	}
}

// BenchmarkGPUVersion is about the cheapest call there is.
func BenchmarkGPUVersion(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
		f := newFrame()
		f.Fn, _ = s.dev.prim.drv.find(cuDriverGetVersion)
		f.Bind, f.Args[0] = 0, uintptr(unsafe.Pointer(&f.Out[0]))
		for range b.N {
			f.Call()
		}
		f.release()
	})
}

func BenchmarkGPULaunchSynchronize(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		for range b.N {
			check(b, s.Launch(relu, blocks(1024), p), s.Synchronize())
		}
	})
}

func BenchmarkGPUCopy4K(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
		m := must[Memory](b)(s.Alloc(8 << 10))
		every(b, s, func() error { return s.Copy(m.Ptr()+4096, m.Ptr(), 4096) })
	})
}

func BenchmarkGPUAllocFree(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
		for range b.N {
			m, err := s.Alloc(1 << 20)
			check(b, err, m.Free())
		}
	})
}

func BenchmarkGPUDeviceAllocFree(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
		for range b.N {
			m, err := s.dev.Alloc(1 << 20)
			check(b, err, m.Free())
		}
	})
}

func BenchmarkGPUUploadSynchronize(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
				m := must[Memory](b)(s.Alloc(int64(n)))
				src := make([]byte, n)
				check(b, s.Upload(m.Ptr(), src), s.Synchronize())
				b.SetBytes(int64(n))
				b.ResetTimer()
				for range b.N {
					check(b, s.Upload(m.Ptr(), src), s.Synchronize())
				}
			})
		})
	}
}

func BenchmarkGPUDownload(b *testing.B) {
	for _, n := range []int{4 << 10, 64 << 10, 1 << 20, 4 << 20, 64 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
				m := must[Memory](b)(s.Alloc(int64(n)))
				dst := make([]byte, n)
				check(b, s.Download(dst, m.Ptr()))
				b.SetBytes(int64(n))
				b.ResetTimer()
				for range b.N {
					check(b, s.Download(dst, m.Ptr()))
				}
			})
		})
	}
}

func BenchmarkGPUPinned4M(b *testing.B) {
	for _, up := range []bool{true, false} {
		b.Run(fmt.Sprintf("up=%v", up), func(b *testing.B) {
			gpuBench(b, func(b *testing.B, s *Stream, _ *Function, _ Params) {
				const n = 4 << 20
				m := must[Memory](b)(s.Alloc(n))
				h := must[*HostMemory](b)(s.dev.AllocHost(n))
				b.SetBytes(n)
				b.ResetTimer()
				for range b.N {
					if up {
						check(b, s.CopyFromHost(m.Ptr(), h, 0, n), s.Synchronize())
					} else {
						check(b, s.CopyToHost(h, 0, m.Ptr(), n), s.Synchronize())
					}
				}
			})
		})
	}
}

// BenchmarkGPURelu is an operation on Go's slices: up, kernel, down.
func BenchmarkGPURelu(b *testing.B) {
	for _, n := range []int{4, 1 << 10, 1 << 20} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
				in, out := random(n), make([]float32, n)
				b.ResetTimer()
				for range b.N {
					x, err1 := s.Alloc(int64(4 * n))
					y, err2 := s.Alloc(int64(4 * n))
					check(b, err1, err2)
					p = p[:0]
					p.Ptr(y.Ptr())
					p.Ptr(x.Ptr())
					p.U32(uint32(n))
					check(b, s.Upload(x.Ptr(), AsBytes(in)), s.Launch(relu, blocks(n), p), s.Download(AsBytes(out), y.Ptr()), x.Free(), y.Free())
				}
			})
		})
	}
}

// BenchmarkGPUReluMapped is the same on locked memory that the kernel uses
// itself.
func BenchmarkGPUReluMapped(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		h := must[*HostMemory](b)(s.dev.AllocHost(16 << 10))
		p = p[:0]
		p.Ptr(h.Ptr() + 8<<10)
		p.Ptr(h.Ptr())
		p.U32(1024)
		for range b.N {
			check(b, s.Launch(relu, blocks(1024), p), s.Synchronize())
		}
	})
}

func BenchmarkGPU20Launches(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		for range b.N {
			for range 20 {
				check(b, s.Launch(relu, blocks(1024), p))
			}
			check(b, s.Synchronize())
		}
	})
}

func BenchmarkGPUGraphOf20(b *testing.B) {
	gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
		g := must[*Graph](b)(s.Capture(func() error {
			for range 20 {
				check(b, s.Launch(relu, blocks(1024), p))
			}
			return nil
		}))
		check(b, g.Upload(s), s.Synchronize())
		b.ResetTimer()
		for range b.N {
			check(b, g.Launch(s), s.Synchronize())
		}
		b.StopTimer()
		g.Close()
	})
}
