package wgpunative

import (
	"encoding/binary"
	"math"
	"testing"

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

// open opens the adapter, unguarded.
func open(t testing.TB) webgpu.HostDevice {
	t.Helper()
	h, index := library(t)
	d, err := h.Open(ctx, index)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestHost passes through each function of the library and looks at the result,
// which would not come out if a structure had another layout.
func TestHost(t *testing.T) {
	d := open(t)
	defer d.Close()
	a := d.Adapter()
	t.Logf("%+v", a)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	if a.API != "Vulkan" || a.Limits.Buffer < 128<<20 || a.Limits.StorageAlign == 0 || a.Target.Limits.Invocations < 256 {
		t.Errorf("this cannot be: %+v", a)
	}
	const n = 1000
	up, err := d.NewBuffer(4*n, webgpu.Upload)
	must(err)
	x, err := d.NewBuffer(4*n, webgpu.Storage)
	must(err)
	y, err := d.NewBuffer(4*n, webgpu.Storage)
	must(err)
	down, err := d.NewBuffer(4*n+32, webgpu.Readback)
	must(err)
	for _, trusted := range []bool{false, true} {
		p, err := d.NewPipeline(&webgpu.Shader{Label: "relu", Text: relu, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}, Trusted: trusted})
		must(err)
		g, err := d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 4 * n}, {Buffer: y, Bytes: 4 * n}})
		must(err)
		for i := range n {
			binary.LittleEndian.PutUint32(up.Mapped()[4*i:], math.Float32bits(float32(i-n/2)))
		}
		up.Unmap()
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
		ticket, err := d.Submit(list, []webgpu.HostBuffer{up, down})
		must(err)
		for done := uint64(0); done < ticket; {
			done, err = d.Poll()
			must(err)
		}
		got := down.Mapped()
		if len(got) != 4*n+32 || len(up.Mapped()) != 4*n {
			t.Fatalf("%d and %d bytes are mapped", len(got), len(up.Mapped()))
		}
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
			if ns := float64(t1-t0) * a.Tick; ns <= 0 || ns > 60e9 {
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
