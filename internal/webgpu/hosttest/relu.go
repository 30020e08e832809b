package hosttest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"unsafe"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// Shader computes relu. The workgroups of a grid have two axes.
var Shader = &webgpu.Shader{
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

// Rig computes relu of some elements. It can run many times.
type Rig struct {
	X, Y       *webgpu.Buffer
	Pipeline   *webgpu.Pipeline
	Group      *webgpu.Group
	In, Out    []byte // x and y
	x, y       []float32
	Submission webgpu.Submission
}

// NewRig makes a rig of n elements, in buffers of these usages.
func NewRig(d *webgpu.Device, n int, from, to webgpu.Usage) (*Rig, error) {
	r := &Rig{x: make([]float32, n), y: make([]float32, n)}
	r.In, r.Out = bytesOf(r.x), bytesOf(r.y)
	var err error
	if r.X, err = d.NewBuffer(int64(4*n), from); err != nil {
		return nil, err
	}
	if r.Y, err = d.NewBuffer(int64(4*n), to); err != nil {
		return nil, err
	}
	if r.Pipeline, err = d.Compile(ctx, Shader); err != nil {
		return nil, err
	}
	if r.Group, err = d.Bind(r.Pipeline, []webgpu.Range{{Buffer: r.X, Bytes: int64(4 * n)}, {Buffer: r.Y, Bytes: int64(4 * n)}}); err != nil {
		return nil, err
	}
	groups := uint32((n + 255) / 256)
	r.Submission = webgpu.Submission{
		Uploads:   []webgpu.Transfer{{Host: r.In, Buffer: r.X}},
		Commands:  []webgpu.Command{{Group: r.Group, Grid: [3]uint32{min(groups, 32768), (groups + 32767) / 32768, 1}}},
		Downloads: []webgpu.Transfer{{Host: r.Out, Buffer: r.Y}},
	}
	return r, nil
}

// Free frees the buffers and the pipeline of the rig.
func (r *Rig) Free() {
	r.Group.Free()
	r.Pipeline.Free()
	r.X.Free()
	r.Y.Free()
}

func bytesOf(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}

// Fill writes new operands, and results that relu does not have.
func (r *Rig) Fill() {
	g := rand.NewPCG(rand.Uint64(), 0)
	for i := range r.x {
		r.x[i], r.y[i] = float32(int32(g.Uint64()))*0x1p-28, nan
	}
}

var nan = float32(math.NaN())

// Check returns an error if the results are wrong.
func (r *Rig) Check() error {
	for i, x := range r.x {
		if y := r.y[i]; y != max(x, 0) {
			return fmt.Errorf("element %d of %d: relu of %v is %v", i, len(r.x), x, y)
		}
	}
	return nil
}

// Relu computes relu of n elements, with and without staging buffers.
func Relu(d *webgpu.Device, n int) error {
	for _, u := range [][2]webgpu.Usage{{webgpu.Storage, webgpu.Storage}, {webgpu.Input, webgpu.Output}} {
		r, err := NewRig(d, n, u[0], u[1])
		if err != nil {
			return err
		}
		defer r.Free()
		for range 2 {
			r.Fill()
			if err := d.Run(ctx, &r.Submission); err != nil {
				return err
			}
			if err := r.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}
