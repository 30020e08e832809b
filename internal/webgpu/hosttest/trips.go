package hosttest

import (
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
)

func trips(t *testing.T, d *webgpu.Device) {
	for _, n := range []int{1, 2, 3, 63, 64, 65, 1000, 1 << 20, 2 << 20, 2<<20 + 1, 9<<20 + 3, int(d.Adapter().Binding / 4)} {
		if testing.Short() && n > 3<<20 {
			continue
		}
		before := d.Stats().Submits
		if err := Relu(d, n); err != nil {
			t.Errorf("%d elements: %v", n, err)
		}
		if after := d.Stats().Submits; n <= 2<<20 && after != before+4 {
			t.Errorf("%d elements took %d submissions", n, after-before)
		}
	}
}

// copies copies more bytes than a binding can have to the device and back, without a kernel.
func copies(t *testing.T, d *webgpu.Device) {
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

func concurrent(t *testing.T, d *webgpu.Device) {
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 10 {
				if err := Relu(d, 1+(g*37+i*1001)%20000); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
}

// stamps reads timestamps, if the device has clocks. Software drivers have them.
func stamps(t *testing.T, d *webgpu.Device) {
	a := d.Adapter()
	if a.Type == webgpu.Software && !a.Clocks {
		t.Error("software has clocks")
	}
	r, err := NewRig(d, 1<<20, webgpu.Storage, webgpu.Storage)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Free()
	r.Fill()
	stamps := []uint64{7}
	s := r.Submission
	s.Commands = []webgpu.Command{s.Commands[0], {Dst: r.Y, Bytes: 4, Stamp: true}, s.Commands[0]}
	s.Commands[0].Stamp = true
	s.Commands[2].Stamp = true
	s.Stamps = &stamps
	if err := d.Run(ctx, &s); err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
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
