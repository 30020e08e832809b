package hosttest

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// relu is a shader of one array for reading and one for writing.
const relu = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
	if (id.x < arrayLength(&y)) { y[id.x] = max(x[id.x], 0.0); }
}
`

// calls passes through each function that is called and looks at the result, which
// would not come out if a structure had another layout.
func calls(t *testing.T, d webgpu.HostDevice) {
	a := d.Adapter()
	t.Logf("%+v", a)
	if a.Name == "" || a.Driver == "" || a.API == "" || a.Limits.Buffer < 128<<20 || a.StorageAlign == 0 || a.Target.Limits.Invocations < 128 || a.Clocks && a.Tick <= 0 {
		t.Errorf("this cannot be: %+v", a)
	}
	if os.Getenv(hardware) == "" && (a.Type != webgpu.Software || !a.Clocks) {
		t.Errorf("this is no software driver: %+v", a)
	}
	const n = 1000
	up := Must(d.NewBuffer(4*n, webgpu.Upload))(t)
	x := Must(d.NewBuffer(4*n, webgpu.Storage))(t)
	y := Must(d.NewBuffer(4*n, webgpu.Storage))(t)
	down := Must(d.NewBuffer(4*n+32, webgpu.Readback))(t)
	for _, trusted := range []bool{false, true} {
		p := Must(d.NewPipeline(&webgpu.Shader{Label: "relu", Text: relu, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}, Trusted: trusted}))(t)
		g := Must(d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 4 * n}, {Buffer: y, Bytes: 4 * n}}))(t)
		in := make([]byte, 4*n)
		for i := range n {
			binary.LittleEndian.PutUint32(in[4*i:], math.Float32bits(float32(i-n/2)))
		}
		if err := put(d, up, in); err != nil {
			t.Fatal(err)
		}
		list := []webgpu.HostCommand{
			{Do: webgpu.Copy, Src: up, Dst: x, Bytes: 4 * n},
			{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{(n + 63) / 64, 1, 1}},
			{Do: webgpu.Clear, Dst: y, To: 4, Bytes: 8},
			{Do: webgpu.Copy, Src: y, Dst: down, Bytes: 4 * n},
		}
		if a.Clocks {
			list = append([]webgpu.HostCommand{{Do: webgpu.Stamp}}, list...)
			list = append(list, webgpu.HostCommand{Do: webgpu.Stamp, Mark: 1}, webgpu.HostCommand{Do: webgpu.Stamps, Dst: down, To: 4 * n, Bytes: 2})
		}
		ticket := Must(d.Submit(list, []webgpu.HostBuffer{up, down}))(t)
		if err := Wait(d, ticket); err != nil {
			t.Fatal(err)
		}
		if done, err := d.Poll(); err != nil || done < ticket {
			t.Fatalf("after Wait %d of %d are done: %v", done, ticket, err)
		}
		if _, remote := d.(webgpu.Remote); !remote && (len(down.Mapped()) != 4*n+32 || len(up.Mapped()) != 4*n) {
			t.Fatalf("%d and %d bytes are mapped", len(down.Mapped()), len(up.Mapped()))
		}
		written := 4 * n // the bytes that the commands write; a host may map no more
		if a.Clocks {
			written += 2 * 8
		}
		got := Must(get(d, down, written))(t)
		for i := range n {
			want := float32(max(i-n/2, 0))
			if i == 1 || i == 2 {
				want = 0
			}
			if v := math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])); v != want {
				t.Fatalf("element %d is %v, not %v", i, v, want)
			}
		}
		if a.Clocks {
			t0, t1 := binary.LittleEndian.Uint64(got[4*n:]), binary.LittleEndian.Uint64(got[4*n+8:])
			if ns := float64(t1-t0) * a.Tick; ns < 0 || ns == 0 && a.API != "browser" || ns > 60e9 { // browsers round the time
				t.Errorf("the device took %v ns (%d to %d, %v each)", ns, t0, t1, a.Tick)
			}
		}
		down.Unmap()
		g.Release()
		p.Release()
	}
	for _, b := range []webgpu.HostBuffer{up, x, y, down} {
		b.Release()
	}
}

// outOfRange asks for adapters that are not there, and when it is too late.
func outOfRange(t *testing.T, library Library, driver string) {
	h, _ := Adapter(t, library, driver)
	all, err := h.Adapters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{-1, len(all), math.MaxInt32} {
		if _, err := h.Open(ctx, i); !errors.Is(err, webgpu.ErrNoAdapter) {
			t.Errorf("adapter %d: %v", i, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Adapters(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
}

// Wait waits as the guard does: until the host says that the submission is complete, or by
// asking.
func Wait(d webgpu.HostDevice, ticket uint64) error {
	if r, remote := d.(webgpu.Remote); remote {
		return told(d, r, ticket)
	}
	for {
		if done, err := d.Poll(); err != nil || done >= ticket {
			return err
		}
		time.Sleep(20 * time.Microsecond)
	}
}

// told waits until the host says that the submission is complete.
func told(d webgpu.HostDevice, r webgpu.Remote, ticket uint64) error {
	type end struct {
		ticket uint64
		err    error
	}
	ends := make(chan end, 1024)
	r.Notify(func(ticket uint64, err error) { ends <- end{ticket, err} })
	if done, err := d.Poll(); err != nil || done >= ticket {
		return err // before anybody asked
	}
	for e := range ends {
		if e.err != nil || e.ticket >= ticket {
			return e.err
		}
	}
	return nil
}

// put brings bytes to the beginning of a buffer of Upload, which is unmapped then.
func put(d webgpu.HostDevice, up webgpu.HostBuffer, from []byte) error {
	if r, remote := d.(webgpu.Remote); remote {
		return r.Write(up, 0, from)
	}
	copy(up.Mapped(), from)
	up.Unmap()
	return nil
}

// get returns the first bytes of a buffer of Readback that is mapped.
func get(d webgpu.HostDevice, down webgpu.HostBuffer, n int) ([]byte, error) {
	to := make([]byte, n)
	if r, remote := d.(webgpu.Remote); remote {
		return to, r.Read(down, 0, to)
	}
	copy(to, down.Mapped())
	return to, nil
}
