package wgpunative

import (
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// TestRefused has what this library, or another, answers with an abort, a hang or
// nothing at all. What is wrong comes back as an error, and the device works on.
func TestRefused(t *testing.T) {
	d := guarded(t)
	r, err := newRig(d, 1000, webgpu.Storage, webgpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	defer r.free()
	l := d.Adapter().Limits
	group := webgpu.Command{Group: r.g, Grid: [3]uint32{1, 1, 1}}
	vec4 := *reluShader
	vec4.Text = strings.ReplaceAll(strings.ReplaceAll(vec4.Text, "array<f32>", "array<vec4<f32>>"), "0.0)", "vec4<f32>())")
	wide, err := d.Compile(ctx, &vec4)
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Free()
	buffer := func(n int64) error { _, err := d.NewBuffer(n, webgpu.Storage); return err }
	compile := func(change func(s *webgpu.Shader)) error {
		s := *reluShader
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
	any := errors.New("any")
	for name, c := range map[string]struct{ got, want error }{
		"4 TiB":                {buffer(4 << 40), webgpu.ErrLimit},
		"over the limit":       {buffer(l.Buffer + 4), webgpu.ErrLimit},
		"workgroup memory":     {compile(func(s *webgpu.Shader) { s.Shared = 1 << 20 }), webgpu.ErrLimit},
		"workgroup size":       {compile(func(s *webgpu.Shader) { s.Lanes = [3]uint32{4096, 1, 1} }), webgpu.ErrLimit},
		"many bindings":        {compile(func(s *webgpu.Shader) { s.Bindings = make([]webgpu.BindingKind, d.Adapter().Target.Limits.Bindings+1) }), webgpu.ErrLimit},
		"read and written":     {bind(r.p, webgpu.Range{Buffer: r.x, Bytes: 4}, webgpu.Range{Buffer: r.x, Bytes: 4}), webgpu.ErrInvalid},
		"unaligned":            {bind(r.p, webgpu.Range{Buffer: r.x, Off: 4, Bytes: 4}, webgpu.Range{Buffer: r.y, Bytes: 4}), webgpu.ErrInvalid},
		"too short":            {bind(wide, webgpu.Range{Buffer: r.x, Bytes: 4}, webgpu.Range{Buffer: r.y, Bytes: 4}), any},
		"70000 workgroups":     {run(webgpu.Command{Group: r.g, Grid: [3]uint32{70000, 1, 1}}), webgpu.ErrLimit},
		"copy past the end":    {run(webgpu.Command{Src: r.x, Dst: r.y, To: 4, Bytes: 4000}), webgpu.ErrInvalid},
		"upload past the end":  {d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, 4000), Buffer: r.x, Off: 4}}}), webgpu.ErrInvalid},
		"nothing is bound":     {bind(r.p, webgpu.Range{Buffer: r.x}, webgpu.Range{Buffer: r.y}), nil},
		"no workgroups":        {run(webgpu.Command{Group: r.g}), nil},
		"upload of 3 bytes":    {d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, 3), Buffer: r.x}}}), nil},
		"copy within a buffer": {run(webgpu.Command{Src: r.x, Dst: r.x, To: 4, Bytes: 3996}), nil},
		"the same group twice": {run(group, group), nil},
	} {
		if c.want == any && c.got != nil && !errors.Is(c.got, webgpu.ErrDeviceLost) {
			continue
		}
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, not %v", name, c.got, c.want)
		}
	}
	// Freed while submissions use them.
	for range 50 {
		other, err := newRig(d, 5000, webgpu.Storage, webgpu.Output)
		if err != nil {
			t.Fatal(err)
		}
		other.fill()
		f, err := d.Submit(ctx, &other.submit, nil)
		other.free()
		if err == nil {
			err = f.Wait(ctx)
		}
		if err == nil {
			err = other.check()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := relus(d, 1000); err != nil {
		t.Errorf("after all that: %v", err)
	}
}
