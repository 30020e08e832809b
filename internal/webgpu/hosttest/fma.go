package hosttest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/wgsl"
)

// fmaKernel computes out = x·y + z in workgroups of 64.
var fmaKernel = kernel.New("fma", func(b *kernel.Builder, _ *struct{}) {
	b.LocalSize(64, 1, 1)
	x, y, z := kernel.Input[kernel.F32](b, "x"), kernel.Input[kernel.F32](b, "y"), kernel.Input[kernel.F32](b, "z")
	out := kernel.Output[kernel.F32](b, "out")
	i := b.Index()
	out.Set(i, x.At(i).Fma(y.At(i), z.At(i)))
})

// fma multiplies and adds numbers of all exponents. The text must correct a device whose fma rounds
// twice: the product may be rounded once, and the error of the sum is at most a unit in the last
// place. Subnormal intermediate results may be lost, up to a dozen times.
func fma(t *testing.T, d webgpu.HostDevice) {
	target := d.Adapter().Target
	if !target.Unfused {
		return // what a GPU may do with it, the conformance suite knows
	}
	s := Must(wgsl.Kernel(fmaKernel, target))(t)
	if s.Params >= 0 {
		t.Fatalf("a kernel without parameters has a block of them:\n%s", s.Text)
	}
	const lost = 0x1p-122
	var in [3][]float32
	for ex := -126; ex <= 127; ex++ {
		for ey := -126; ey <= 127 && ex+ey < 127; ey++ {
			x := float32(math.Ldexp(1+rand.Float64(), ex))
			y := float32(math.Ldexp(1+rand.Float64(), ey))
			z := float32(0)
			if p := -x * y; rand.IntN(2) == 0 && math.Abs(float64(p)) >= 0x1p-126 {
				z = p
			}
			if math.IsInf(float64(x), 0) || math.IsInf(float64(y), 0) || math.IsInf(float64(x*y), 0) {
				continue
			}
			in[0], in[1], in[2] = append(in[0], x), append(in[1], y), append(in[2], z)
		}
	}
	for i := range in {
		in[i] = in[i][:len(in[i])/64*64]
	}
	n := len(in[0])
	size := int64(4 * n)
	p := Must(d.NewPipeline(&webgpu.Shader{Label: "fma", Text: s.Text, Entry: s.Entry, Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadOnly, webgpu.ReadOnly, webgpu.ReadWrite}, Trusted: true}))(t)
	var list []webgpu.HostCommand
	var bound []webgpu.HostRange
	var mapped []webgpu.HostBuffer
	for i := range 4 {
		b := Must(d.NewBuffer(size, webgpu.Storage))(t)
		bound = append(bound, webgpu.HostRange{Buffer: b, Bytes: size})
		if i == 3 {
			break
		}
		up := Must(d.NewBuffer(size, webgpu.Upload))(t)
		var bits []byte
		for _, v := range in[i] {
			bits = binary.LittleEndian.AppendUint32(bits, math.Float32bits(v))
		}
		if err := put(d, up, bits); err != nil {
			t.Fatal(err)
		}
		mapped = append(mapped, up)
		list = append(list, webgpu.HostCommand{Do: webgpu.Copy, Src: up, Dst: b, Bytes: size})
	}
	down := Must(d.NewBuffer(size, webgpu.Readback))(t)
	g := Must(d.NewGroup(p, bound))(t)
	list = append(list,
		webgpu.HostCommand{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{uint32(n / 64), 1, 1}},
		webgpu.HostCommand{Do: webgpu.Copy, Src: bound[3].Buffer, Dst: down, Bytes: size})
	ticket := Must(d.Submit(list, append(mapped, down)))(t)
	if err := Wait(d, ticket); err != nil {
		t.Fatal(err)
	}
	results := Must(get(d, down, int(size)))(t)
	bad := 0
	for i := range n {
		x, y, z := in[0][i], in[1][i], in[2][i]
		want := float64(x)*float64(y) + float64(z) // exactly: of 48 digits the 24 in front may go
		got := float64(math.Float32frombits(binary.LittleEndian.Uint32(results[4*i:])))
		unit := math.Ldexp(1, max(math.Ilogb(want), -126)-23)
		if want == 0 {
			unit = 0
		}
		if !(math.Abs(got-want) <= unit+lost) {
			if bad++; bad < 10 {
				t.Errorf("%x·%x + %x is %x, not %x", x, y, z, got, want)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d of %d wrong", bad, n)
	}
}
