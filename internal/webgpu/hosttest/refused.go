package hosttest

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/wgsl"
)

// refused makes mistakes at which libraries abort, hang or do nothing. Each mistake must return an
// error, and the device must continue to work.
func refused(t *testing.T, d *webgpu.Device) {
	r, err := NewRig(d, 1000, webgpu.Storage, webgpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	l := d.Adapter().Limits
	group := webgpu.Command{Group: r.Group, Grid: [3]uint32{1, 1, 1}}
	vec4 := *Shader
	vec4.Text = strings.ReplaceAll(strings.ReplaceAll(vec4.Text, "array<f32>", "array<vec4<f32>>"), "0.0)", "vec4<f32>())")
	wide, err := d.Compile(ctx, &vec4)
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Free()
	buffer := func(n int64) error { _, err := d.NewBuffer(n, webgpu.Storage); return err }
	compile := func(change func(s *webgpu.Shader)) error {
		s := *Shader
		change(&s)
		_, err := d.Compile(ctx, &s)
		return err
	}
	run := func(c ...webgpu.Command) error { return d.Run(ctx, &webgpu.Submission{Commands: c}) }
	bind := func(p *webgpu.Pipeline, x, y webgpu.Range) error {
		g, err := d.Bind(p, []webgpu.Range{x, y})
		if err == nil {
			defer g.Free()
			err = run(webgpu.Command{Group: g, Grid: [3]uint32{1, 1, 1}})
		}
		return err
	}
	for name, c := range map[string]struct{ got, want error }{
		"4 TiB":                {buffer(4 << 40), webgpu.ErrLimit},
		"over the limit":       {buffer(l.Buffer + 4), webgpu.ErrLimit},
		"workgroup memory":     {compile(func(s *webgpu.Shader) { s.Shared = 1 << 20 }), webgpu.ErrLimit},
		"workgroup size":       {compile(func(s *webgpu.Shader) { s.Lanes = [3]uint32{4096, 1, 1} }), webgpu.ErrLimit},
		"many bindings":        {compile(func(s *webgpu.Shader) { s.Bindings = make([]webgpu.BindingKind, d.Adapter().Target.Limits.Bindings+1) }), webgpu.ErrLimit},
		"read and written":     {bind(r.Pipeline, webgpu.Range{Buffer: r.X, Bytes: 4}, webgpu.Range{Buffer: r.X, Bytes: 4}), webgpu.ErrInvalid},
		"unaligned":            {bind(r.Pipeline, webgpu.Range{Buffer: r.X, Off: 4, Bytes: 4}, webgpu.Range{Buffer: r.Y, Bytes: 4}), webgpu.ErrInvalid},
		"70000 workgroups":     {run(webgpu.Command{Group: r.Group, Grid: [3]uint32{70000, 1, 1}}), webgpu.ErrLimit},
		"copy past the end":    {run(webgpu.Command{Src: r.X, Dst: r.Y, To: 4, Bytes: 4000}), webgpu.ErrInvalid},
		"upload past the end":  {d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, 4000), Buffer: r.X, Off: 4}}}), webgpu.ErrInvalid},
		"nothing is bound":     {bind(r.Pipeline, webgpu.Range{Buffer: r.X}, webgpu.Range{Buffer: r.Y}), nil},
		"no workgroups":        {run(webgpu.Command{Group: r.Group}), nil},
		"upload of 3 bytes":    {d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, 3), Buffer: r.X}}}), nil},
		"copy within a buffer": {run(webgpu.Command{Src: r.X, Dst: r.X, To: 4, Bytes: 3996}), nil},
		"the same group twice": {run(group, group), nil},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, not %v", name, c.got, c.want)
		}
	}
	// A range that is too short for an element is an error; or, if the library leaves the check to the
	// hardware, nothing is written there.
	r.Fill()
	out := make([]byte, len(r.Out))
	err = d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: r.Out, Buffer: r.Y}}})
	if err == nil {
		if err = bind(wide, webgpu.Range{Buffer: r.X, Bytes: 4}, webgpu.Range{Buffer: r.Y, Bytes: 4}); errors.Is(err, webgpu.ErrDeviceLost) {
			t.Fatalf("too short: %v", err)
		} else if err == nil && d.Adapter().Target.Consumer == wgsl.Naga {
			t.Error("too short: wgpu refuses it, and did not")
		}
		err = d.Run(ctx, &webgpu.Submission{Downloads: []webgpu.Transfer{{Host: out, Buffer: r.Y}}})
	}
	if err != nil || !bytes.Equal(out, r.Out) {
		t.Errorf("too short: %v, or written", err)
	}
	// Free arrays while submissions use them.
	for range 50 {
		other, err := NewRig(d, 5000, webgpu.Storage, webgpu.Output)
		if err != nil {
			t.Fatal(err)
		}
		other.Fill()
		f, err := d.Submit(ctx, &other.Submission, nil)
		other.Free()
		if err == nil {
			err = f.Wait(ctx)
		}
		if err == nil {
			err = other.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Relu(d, 1000); err != nil {
		t.Errorf("after all that: %v", err)
	}
}
