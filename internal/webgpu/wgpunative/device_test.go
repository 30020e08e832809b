package wgpunative

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/webgpu"
)

var ctx = context.Background()

// hardware is the variable that has the tests run on the first adapter that is no
// software, in the place of lavapipe.
const hardware = "RAYO_TEST_HARDWARE"

// library returns the library and the adapter to test with.
func library(t testing.TB) (h webgpu.Host, index int) {
	t.Helper()
	if os.Getenv(hardware) == "" {
		testutil.Vulkan(t, "lavapipe")
	}
	h, err := New()
	if err != nil {
		testutil.Missing(t, "cgo", err)
	}
	if os.Getenv(hardware) == "" {
		return h, 0
	}
	list, err := h.Adapters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	index = slices.IndexFunc(list, func(a webgpu.Adapter) bool { return a.Type != webgpu.Software })
	if index < 0 {
		t.Fatalf("%s is set, and all adapters are software", hardware)
	}
	return h, index
}

// guarded opens the adapter, guarded.
func guarded(t testing.TB) *webgpu.Device {
	t.Helper()
	h, index := library(t)
	d, err := webgpu.Open(ctx, h, index)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// reluShader is relu over as many workgroups as it takes, folded into two axes.
var reluShader = &webgpu.Shader{
	Label: "relu",
	Text: `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
	let i = (wg.y * n.x + wg.x) * 256u + lane;
	if (i < arrayLength(&y)) { y[i] = max(x[i], 0.0); }
}
`,
	Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}, Lanes: [3]uint32{256, 1, 1}, Trusted: true,
}

// rig is relu of n elements, ready to run again and again.
type rig struct {
	d      *webgpu.Device
	x, y   *webgpu.Buffer
	p      *webgpu.Pipeline
	g      *webgpu.Group
	in     []byte
	out    []byte
	submit webgpu.Submission
}

func newRig(d *webgpu.Device, n int, from, to webgpu.Usage) (*rig, error) {
	r := &rig{d: d, in: make([]byte, 4*n), out: make([]byte, 4*n)}
	var err error
	if r.x, err = d.NewBuffer(int64(4*n), from); err != nil {
		return nil, err
	}
	if r.y, err = d.NewBuffer(int64(4*n), to); err != nil {
		return nil, err
	}
	if r.p, err = d.Compile(ctx, reluShader); err != nil {
		return nil, err
	}
	if r.g, err = d.Bind(r.p, []webgpu.Range{{Buffer: r.x, Bytes: int64(4 * n)}, {Buffer: r.y, Bytes: int64(4 * n)}}); err != nil {
		return nil, err
	}
	groups := uint32((n + 255) / 256)
	r.submit = webgpu.Submission{
		Uploads:   []webgpu.Transfer{{Host: r.in, Buffer: r.x}},
		Commands:  []webgpu.Command{{Group: r.g, Grid: [3]uint32{min(groups, 32768), (groups + 32767) / 32768, 1}}},
		Downloads: []webgpu.Transfer{{Host: r.out, Buffer: r.y}},
	}
	return r, nil
}

func (r *rig) free() {
	r.g.Free()
	r.p.Free()
	r.x.Free()
	r.y.Free()
}

// fill makes other operands, and results that are none.
func (r *rig) fill() {
	g := rand.New(rand.NewPCG(rand.Uint64(), 0))
	for i := 0; i < len(r.in); i += 4 {
		binary.LittleEndian.PutUint32(r.in[i:], math.Float32bits(float32(g.NormFloat64())))
		binary.LittleEndian.PutUint32(r.out[i:], 0x7fc00000)
	}
}

func (r *rig) check() error {
	for i := 0; i < len(r.in); i += 4 {
		x := math.Float32frombits(binary.LittleEndian.Uint32(r.in[i:]))
		y := math.Float32frombits(binary.LittleEndian.Uint32(r.out[i:]))
		if y != max(x, 0) {
			return fmt.Errorf("element %d of %d: relu of %v is %v", i/4, len(r.in)/4, x, y)
		}
	}
	return nil
}

// relus does relu of n elements, through stages and without.
func relus(d *webgpu.Device, n int) error {
	for _, u := range [][2]webgpu.Usage{{webgpu.Storage, webgpu.Storage}, {webgpu.Input, webgpu.Output}} {
		r, err := newRig(d, n, u[0], u[1])
		if err != nil {
			return err
		}
		defer r.free()
		for range 2 {
			r.fill()
			if err := d.Run(ctx, &r.submit); err != nil {
				return err
			}
			if err := r.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestTrips(t *testing.T) {
	d := guarded(t)
	for _, n := range []int{1, 2, 3, 63, 64, 65, 1000, 1 << 20, 2 << 20, 2<<20 + 1, 9<<20 + 3, int(d.Adapter().Binding / 4)} {
		if testing.Short() && n > 3<<20 {
			continue
		}
		before := d.Stats().Submits
		if err := relus(d, n); err != nil {
			t.Errorf("%d elements: %v", n, err)
		}
		if after := d.Stats().Submits; n <= 2<<20 && after != before+4 {
			t.Errorf("%d elements took %d submissions", n, after-before)
		}
	}
}

// TestCopies carries bytes there and back that no kernel sees, more than a binding
// holds.
func TestCopies(t *testing.T) {
	d := guarded(t)
	for _, n := range []int{1, 2, 3, 5, 65537, 300<<20 + 1} {
		if testing.Short() && n > 1<<20 {
			continue
		}
		b, err := d.NewBuffer(int64(n), webgpu.Storage)
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]byte, n), make([]byte, n)
		for i := range in {
			in[i] = byte(i*7 + i>>13)
		}
		if err := d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: in, Buffer: b}}, Downloads: []webgpu.Transfer{{Host: out, Buffer: b}}}); err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if in[i] != out[i] {
				t.Fatalf("byte %d of %d is %d, not %d", i, n, out[i], in[i])
			}
		}
		b.Free()
	}
}

func TestConcurrent(t *testing.T) {
	d := guarded(t)
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 10 {
				if err := relus(d, 1+(g*37+i*1001)%20000); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// TestStamps has the device note times, where it has clocks, as software has.
func TestStamps(t *testing.T) {
	d := guarded(t)
	a := d.Adapter()
	if a.Type == webgpu.Software && !a.Clocks {
		t.Error("lavapipe has no clocks")
	}
	r, err := newRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	defer r.free()
	r.fill()
	stamps := []uint64{7}
	s := r.submit
	s.Commands = []webgpu.Command{s.Commands[0], {Dst: r.y, Bytes: 4, Stamp: true}, s.Commands[0]}
	s.Commands[0].Stamp = true
	s.Commands[2].Stamp = true
	s.Stamps = &stamps
	if err := d.Run(ctx, &s); err != nil {
		t.Fatal(err)
	}
	if err := r.check(); err != nil {
		t.Error(err)
	}
	if !a.Clocks {
		if len(stamps) != 0 {
			t.Errorf("stamps %v without clocks", stamps)
		}
		return
	}
	if len(stamps) != 4 || stamps[3] <= stamps[0] || stamps[3]-stamps[0] > 60e9 {
		t.Errorf("stamps %v", stamps)
	}
}
