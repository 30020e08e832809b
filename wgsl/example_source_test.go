package wgsl_test

import (
	"fmt"

	"github.com/rayo-go/rayo/wgsl"
)

// Interface returns the bindings of a text, without a device.
func ExampleSource_Interface() {
	i, err := wgsl.Source{Text: `
		struct Params { center: vec2f, steps: u32 }
		override SIDE = 8u;
		@group(0) @binding(4) var<storage, read_write> out: array<vec4f>;
		@group(0) @binding(0) var<storage> seeds: array<u32>;
		@group(1) @binding(0) var<uniform> params: Params;
		var<workgroup> tile: array<f32, SIDE * SIDE>;

		@compute @workgroup_size(SIDE, SIDE)
		fn paint(@builtin(local_invocation_index) i: u32) {
			tile[i] = params.center.x;
			out[i] = vec4f(tile[i], f32(seeds[i]), 0, f32(params.steps));
		}`, Constants: map[string]float64{"SIDE": 16}}.Interface()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(i.Entry, i.Local, i.SharedBytes)
	for _, b := range i.Buffers {
		fmt.Println(b.Name, b.Type)
	}
	for _, f := range i.Params.Type.Fields {
		fmt.Println(f.Name, f.Type, f.Offset)
	}
	// Output:
	// paint [16 16 1] 1024
	// seeds array<u32>
	// out array<vec4<f32>>
	// center vec2<f32> 0
	// steps u32 8
}
