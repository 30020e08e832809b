package hosttest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

// repeated runs the same submissions many times: a single one, a few in turns, and more than a host
// can cache.
func repeated(t *testing.T, d *webgpu.Device) {
	for _, count := range []int{1, 3, 12} {
		var rigs []*Rig
		for i := range count {
			r, err := NewRig(d, 300+200*i, []webgpu.Usage{webgpu.Input, webgpu.Storage}[i%2], webgpu.Storage)
			if err != nil {
				t.Fatal(err)
			}
			defer r.Free()
			rigs = append(rigs, r)
		}
		for turn := range 6 {
			for i, r := range rigs {
				r.Fill()
				if err := d.Run(ctx, &r.Submission); err != nil {
					t.Fatal(err)
				}
				if err := r.Check(); err != nil {
					t.Errorf("submission %d of %d, turn %d: %v", i, count, turn, err)
				}
			}
		}
	}
}

// renewed submits the same commands many times. In between, it frees their buffers and groups and
// makes new ones, which may have the addresses of the old ones.
func renewed(t *testing.T, d webgpu.HostDevice) {
	const n = 256
	up, down := Must(d.NewBuffer(4*n, webgpu.Upload))(t), Must(d.NewBuffer(4*n, webgpu.Readback))(t)
	p := Must(d.NewPipeline(Shader))(t)
	again, _ := d.(webgpu.Repeater)
	submit := func(list []webgpu.HostCommand, remap webgpu.HostBuffer) {
		t.Helper()
		ticket := Must(d.Submit(list, []webgpu.HostBuffer{remap}))(t)
		if again != nil {
			again.Again(ticket)
		}
		if err := Wait(d, ticket); err != nil {
			t.Fatal(err)
		}
	}
	value := float32(0)
	for round := range 30 {
		x, y := Must(d.NewBuffer(4*n, webgpu.Storage))(t), Must(d.NewBuffer(4*n, webgpu.Storage))(t)
		g := Must(d.NewGroup(p, []webgpu.HostRange{{Buffer: x, Bytes: 4 * n}, {Buffer: y, Bytes: 4 * n}}))(t)
		for time := range 4 {
			value++
			in := make([]byte, 4*n)
			binary.LittleEndian.PutUint32(in[4*(n-1):], math.Float32bits(value))
			if err := put(d, up, in); err != nil {
				t.Fatal(err)
			}
			submit([]webgpu.HostCommand{{Do: webgpu.Copy, Src: up, Dst: x, Bytes: 4 * n}}, up)
			submit([]webgpu.HostCommand{
				{Do: webgpu.Dispatch, Pipeline: p, Group: g, Grid: [3]uint32{1, 1, 1}},
				{Do: webgpu.Copy, Src: y, Dst: down, Bytes: 4 * n},
			}, down)
			out := Must(get(d, down, 4*n))(t)
			if got := math.Float32frombits(binary.LittleEndian.Uint32(out[4*(n-1):])); got != value {
				t.Errorf("round %d, time %d: %v is %v", round, time, value, got)
			}
			down.Unmap()
		}
		g.Release()
		x.Release()
		y.Release()
	}
	up.Release()
	down.Release()
	p.Release()
}
