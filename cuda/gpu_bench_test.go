package cuda

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"
)

// heldOpen keeps the context between benchmarks, because creating it takes long.
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

// BenchmarkGPULaunchRaw measures the launch function of the driver with prepared arguments: with and without binding
// the context, and with the parameters as a list of pointers.
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

// BenchmarkGPUCost alternates calls of this package and direct calls of the driver, with prepared arguments and the
// context bound. It reports the medians of both, and the median difference of consecutive calls.
func BenchmarkGPUCost(b *testing.B) {
	const calls = 64 // in turn
	kinds := []struct {
		name  string
		entry entry
		args  func(s *Stream, fn *Function, e *Event, m Memory, f *frame, p Params)
		call  func(s *Stream, fn *Function, c Config, e *Event, m Memory, p Params) error
	}{
		{"launch", cuLaunchKernel, func(s *Stream, fn *Function, _ *Event, _ Memory, f *frame, p Params) {
			c := blocks(1024)
			f.Args = [15]uintptr{fn.handle, uintptr(c.Grid.X), 1, 1, uintptr(c.Block.X), 1, 1, 0, s.handle, 0, f.launch.address(p)}
		}, func(s *Stream, fn *Function, c Config, _ *Event, _ Memory, p Params) error {
			for range calls {
				if err := s.Launch(fn, c, p); err != nil {
					return err
				}
			}
			return nil
		}},
		{"record", cuEventRecord, func(s *Stream, _ *Function, e *Event, _ Memory, f *frame, _ Params) {
			f.Args[0], f.Args[1] = e.handle, s.handle
		}, func(s *Stream, _ *Function, _ Config, e *Event, _ Memory, _ Params) error {
			for range calls {
				if err := s.Record(e); err != nil {
					return err
				}
			}
			return nil
		}},
		{"set", cuMemsetD8Async, func(s *Stream, _ *Function, _ *Event, m Memory, f *frame, _ Params) {
			f.Args[0], f.Args[1], f.Args[2], f.Args[3] = uintptr(m.Ptr()), 0, 64, s.handle
		}, func(s *Stream, _ *Function, _ Config, _ *Event, m Memory, _ Params) error {
			for range calls {
				if err := s.Set8(m.Ptr(), 0, 64); err != nil {
					return err
				}
			}
			return nil
		}},
		{"query", cuStreamQuery, func(s *Stream, _ *Function, _ *Event, _ Memory, f *frame, _ Params) {
			f.Args[0] = s.handle
		}, func(s *Stream, _ *Function, _ Config, _ *Event, _ Memory, _ Params) error {
			for range calls {
				if _, err := s.Done(); err != nil {
					return err
				}
			}
			return nil
		}},
	}
	for _, kind := range kinds {
		b.Run(kind.name, func(b *testing.B) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			gpuBench(b, func(b *testing.B, s *Stream, relu *Function, p Params) {
				e, m := must[*Event](b)(s.dev.NewEvent(false)), must[Memory](b)(s.Alloc(1<<10))
				f := newFrame()
				defer f.release()
				c := blocks(1024)
				check(b, f.pack(relu, &c, p))
				kind.args(s, relu, e, m, f, p)
				f.Fn, _ = s.dev.prim.drv.find(kind.entry)
				f.Bind, _ = s.dev.prim.drv.find(cuCtxSetCurrent)
				f.Context = s.dev.prim.context
				f.Call()
				f.Bind = 0
				var raw, ours, above []float64
				for range b.N {
					start := time.Now()
					for range calls {
						f.Call()
					}
					drivers := float64(time.Since(start).Nanoseconds()) / calls
					if c := f.code(); c != codeNotReady {
						check(b, f.failed())
					}
					check(b, s.Synchronize())
					start = time.Now()
					if err := kind.call(s, relu, c, e, m, p); err != nil {
						b.Fatal(err)
					}
					our := float64(time.Since(start).Nanoseconds()) / calls
					check(b, s.Synchronize())
					raw, ours, above = append(raw, drivers), append(ours, our), append(above, our-drivers)
				}
				for name, all := range map[string][]float64{"ns/raw": raw, "ns/call": ours, "ns/above": above} {
					slices.Sort(all)
					b.ReportMetric(all[len(all)/2], name)
				}
			})
		})
	}
}

// failed returns an error for a call that was made without the package.
func (f *frame) failed() error {
	if c := f.code(); c != codeSuccess {
		return fmt.Errorf("the driver answers %d", c)
	}
	return nil
}

// BenchmarkGPULaunchBlock waits only by the driver's blocking function.
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

// BenchmarkGPUQueryRaw measures the query function of the driver, with and without binding the context.
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

// BenchmarkGPUVersion measures one of the cheapest calls of the driver.
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

// BenchmarkGPURelu measures an operation on Go slices: upload, kernel, download.
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

// BenchmarkGPUReluMapped measures the same operation on page-locked memory, which the kernel accesses directly.
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
