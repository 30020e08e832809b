package cuda

import "testing"

// A stub is a driver that returns success from the measured calls and does nothing, so
// that benchmarks measure the cost of this package. A fake creates its objects.
type stub struct{ *fake }

func (s stub) call(f *frame) {
	switch entry(f.Fn - 1) {
	case cuLaunchKernel, cuLaunchKernelEx, cuMemcpyDtoDAsync, cuMemcpyHtoDAsync, cuMemcpyDtoHAsync, cuEventRecord, cuEventQuery, cuStreamWaitEvent, cuStreamQuery, cuGraphLaunch:
		f.Result, f.Refused = 0, 0
		return
	}
	s.fake.call(f)
}

func stubDriver() *driver {
	return &driver{load: func() (library, error) { return stub{newFake()}, nil }}
}

func benchmark(b *testing.B, f func(*Stream, *Function, *Event)) {
	d := must[*Device](b)(stubDriver().open(0, WithCubinCache("")))
	defer d.Close()
	s := must[*Stream](b)(d.NewStream(0))
	fn := must[*Function](b)(must[*Module](b)(d.Load([]byte(reluText))).Function("relu"))
	e := must[*Event](b)(d.NewEvent(false))
	b.ReportAllocs()
	for b.Loop() {
		f(s, fn, e)
	}
}

// The benchmarks measure only this package. Each call of the driver takes additional time: see BenchmarkBoundCall of
// internal/dl.

func BenchmarkLaunch(b *testing.B) {
	p := make(Params, 0, 64)
	benchmark(b, func(s *Stream, fn *Function, _ *Event) {
		p = p[:0]
		p.Ptr(1)
		p.Ptr(2)
		p.U32(3)
		_ = s.Launch(fn, Config{Grid: Dim{X: 1}, Block: Dim{X: 32}}, p)
	})
}

func BenchmarkCopy(b *testing.B) {
	benchmark(b, func(s *Stream, _ *Function, _ *Event) { _ = s.Copy(1, 2, 3) })
}

func BenchmarkRecord(b *testing.B) {
	benchmark(b, func(s *Stream, _ *Function, e *Event) { _ = s.Record(e) })
}

func BenchmarkDone(b *testing.B) {
	benchmark(b, func(s *Stream, _ *Function, _ *Event) { _, _ = s.Done() })
}

func BenchmarkAllocFree(b *testing.B) {
	benchmark(b, func(s *Stream, _ *Function, _ *Event) {
		m, _ := s.Alloc(4096)
		_ = m.Free()
	})
}
