package cuda_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/rayo-go/rayo/cuda"
)

// scale multiplies n numbers by a factor.
const scale = `.version 7.4
.target sm_52
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 factor, .param .u32 n)
{
	.reg .b64 %rd<4>; .reg .b32 %r<6>; .reg .f32 %f<4>; .reg .pred %p<2>;
	ld.param.u64 %rd0, [x]; ld.param.f32 %f0, [factor]; ld.param.u32 %r0, [n];
	mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
	mad.lo.u32 %r4, %r1, %r2, %r3;
	setp.ge.u32 %p0, %r4, %r0;
	@%p0 bra done;
	mul.wide.u32 %rd1, %r4, 4; add.u64 %rd2, %rd0, %rd1;
	ld.global.f32 %f1, [%rd2];
	mul.f32 %f2, %f1, %f0;
	st.global.f32 [%rd2], %f2;
done:
	ret;
}
`

// A program for machines with and without a GPU: Open returns an error without one.
func ExampleOpen() {
	dev, err := cuda.Open(0)
	switch {
	case errors.Is(err, cuda.ErrNoDriver), errors.Is(err, cuda.ErrNoDevice):
		fmt.Println("no GPU: the processor will do")
		return
	case errors.Is(err, cuda.ErrDriverTooOld):
		fmt.Println(err) // the version of the driver, and the oldest one that is supported
		return
	case err != nil:
		panic(err)
	}
	defer dev.Close()
	fmt.Println(dev.Info().Name, dev.Info().Capability)
}

// Load a kernel, run it on a slice, and get the result back.
func Example() {
	dev, err := cuda.Open(0)
	if err != nil {
		return
	}
	defer dev.Close()
	mod, err := dev.Load([]byte(scale))
	if err != nil {
		fmt.Println(err) // with the log of the compiler
		return
	}
	fn, err := mod.Function("scale")
	if err != nil {
		return
	}
	s, err := dev.NewStream(0)
	if err != nil {
		return
	}
	x := []float32{1, 2, 3, 4}
	m, err := s.Alloc(int64(4 * len(x)))
	if err != nil {
		return
	}
	defer m.Free()

	var p cuda.Params
	p.Ptr(m.Ptr())
	p.F32(10)
	p.U32(uint32(len(x)))
	for _, err := range []error{
		s.Upload(m.Ptr(), cuda.AsBytes(x)),
		s.Launch(fn, cuda.Config{Grid: cuda.Dim{X: 1}, Block: cuda.Dim{X: 128}}, p),
		s.Download(cuda.AsBytes(x), m.Ptr()),
	} {
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(x)
}

// Record work once, and launch it many times.
func ExampleStream_Capture() {
	var (
		s      *cuda.Stream
		fn     *cuda.Function
		params cuda.Params
	)
	g, err := s.Capture(func() error {
		for range 20 {
			if err := s.Launch(fn, cuda.Config{Grid: cuda.Dim{X: 64}, Block: cuda.Dim{X: 256}}, params); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return
	}
	defer g.Close()
	for range 1000 {
		if err := g.Launch(s); err != nil {
			return
		}
	}
}

// Watch the devices of a machine.
func ExampleMonitor() {
	m, err := cuda.OpenMonitor()
	if errors.Is(err, cuda.ErrNoMonitor) {
		return
	}
	defer m.Close()
	for range 3 {
		all, err := m.Read()
		if err != nil {
			return
		}
		for _, s := range all {
			fmt.Printf("%s: %v %% busy, %v W, %v °C\n", s.Name, s.Utilization, s.Power, s.Temperature)
		}
		time.Sleep(time.Second)
	}
}
