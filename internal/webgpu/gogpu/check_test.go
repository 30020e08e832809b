//go:build !nowebgpu && !goffi_static && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package gogpu

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

const buffers = `@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
var<private> p: array<u32, 4>;
var<workgroup> w: array<u32, 300>;
`

func shader(body string) *webgpu.Shader {
	return &webgpu.Shader{Label: "test", Text: buffers + body, Entry: "main", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}}
}

// TestRefused requires an error for SPIR-V that the compiler accepts and drivers do not verify.
func TestRefused(t *testing.T) {
	for name, body := range map[string]string{
		"a number of another type": "@compute @workgroup_size(1) fn main() { y[0] = x[0]; }",
		"read-only":                "@compute @workgroup_size(1) fn main() { x[0] = 1.0; }",
		"operands that differ":     "@compute @workgroup_size(1) fn main() { y[0] = y[1] + u32(x[0] + f32(y[2])) + x[1]; }",
		"recursion":                "fn f(n: u32) -> u32 { return f(n - 1u); }\n@compute @workgroup_size(1) fn main() { y[0] = f(3u); }",
		"leading zeros":            "@compute @workgroup_size(1) fn main() { y[0] = countLeadingZeros(y[1]); }",
		"another entry point":      "@compute @workgroup_size(1) fn other() { y[0] = 1u; }",
		"another binding":          "@group(0) @binding(5) var<storage, read_write> z: array<u32>;\n@compute @workgroup_size(1) fn main() { z[0] = 1u; }",
		"half floats":              "enable f16;\n@compute @workgroup_size(1) fn main() { y[0] = u32(f16(x[0])); }",
		"long integers":            "@compute @workgroup_size(1) fn main() { y[0] = u32(u64(y[1]) * 3lu); }",
		"no text":                  "@compute",
	} {
		var mistake *webgpu.CompileError
		if _, err := compile(shader(body)); !errors.As(err, &mistake) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHardened requires that indices and shifts out of range stay in range, and give the results that
// WGSL specifies.
func TestHardened(t *testing.T) {
	drivers(t, func(t *testing.T, d webgpu.HostDevice) {
		p := hosttest.Must(d.NewPipeline(shader(`@compute @workgroup_size(1) fn main() {
  let far = y[15] + 1000000u;
  p[far] = 7u;
  y[0] = p[3];
  y[1] = p[far];
  var v = vec4<u32>(1u, 2u, 3u, 4u);
  y[2] = v[far];
  let big = f32(y[15]) + 1e20;
  y[3] = u32(-big);
  y[4] = u32(big);
  y[5] = bitcast<u32>(i32(-big));
  y[6] = bitcast<u32>((f32(y[15]) - 7.5) % 2.0);
  y[7] = w[299] + w[0] + 5u;
  w[far] = 9u;
  y[8] = w[299];
}`)))(t)
		const size = 64
		b := map[webgpu.Usage]webgpu.HostBuffer{}
		for _, u := range []webgpu.Usage{webgpu.Storage, webgpu.Readback} {
			b[u] = hosttest.Must(d.NewBuffer(size, u))(t)
		}
		x := hosttest.Must(d.NewBuffer(size, webgpu.Storage))(t)
		g := hosttest.Must(d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: size}, {Buffer: b[webgpu.Storage], Bytes: size}}))(t)
		ticket := hosttest.Must(d.Submit([]webgpu.HostCommand{
			{Do: webgpu.Clear, Dst: b[webgpu.Storage], Bytes: size},
			{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{1, 1, 1}},
			{Do: webgpu.Copy, Src: b[webgpu.Storage], Dst: b[webgpu.Readback], Bytes: size},
		}, nil))(t)
		if err := hosttest.Wait(d, ticket); err != nil {
			t.Fatal(err)
		}
		for i, want := range []uint32{7, 7, 4, 0, 0xffffff00, 0x80000000, 0xbfc00000, 5, 9} {
			if got := binary.LittleEndian.Uint32(b[webgpu.Readback].Mapped()[4*i:]); got != want {
				t.Errorf("result %d is %#x, not %#x", i, got, want)
			}
		}
	})
}
