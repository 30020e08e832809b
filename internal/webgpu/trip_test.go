package webgpu_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/fakehost"
)

// tripOf is a round trip over buffers of the given usages.
func tripOf(d *webgpu.Device, n int, from, to webgpu.Usage) error {
	x, err := d.NewBuffer(int64(n), from)
	if err != nil {
		return err
	}
	defer x.Free()
	y, err := d.NewBuffer(int64(n), to)
	if err != nil {
		return err
	}
	defer y.Free()
	p, err := d.Compile(ctx, inc)
	if err != nil {
		return err
	}
	defer p.Free()
	g, err := d.Bind(p, []webgpu.Range{{Buffer: x, Bytes: int64(n)}, {Buffer: y, Bytes: int64(n)}})
	if err != nil {
		return err
	}
	defer g.Free()
	in := random(n)
	room := bytes.Repeat([]byte{0xEE}, n+16)
	out := room[8 : 8+n]
	s := &webgpu.Submission{
		Uploads:   []webgpu.Transfer{{Host: in, Buffer: x}},
		Commands:  []webgpu.Command{{Group: g, Grid: [3]uint32{1, 1, 1}}},
		Downloads: []webgpu.Transfer{{Host: out, Buffer: y}},
	}
	if err := d.Run(ctx, s); err != nil {
		return err
	}
	want := make([]byte, n)
	increment(want, in)
	if !bytes.Equal(out, want) {
		for i := range out {
			if out[i] != want[i] {
				return fmt.Errorf("byte %d of %d is %d, not %d", i, n, out[i], want[i])
			}
		}
	}
	for i := range 8 {
		if room[i] != 0xEE || room[len(room)-1-i] != 0xEE {
			return fmt.Errorf("written beyond %d bytes", n)
		}
	}
	return nil
}

func TestTrip(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	sizes := []int{0, 1, 2, 3, 4, 5, 255, 256, 257, 4095, 4097, 65537, 1<<20 - 1, 8<<20 - 4, 8 << 20, 8<<20 + 1}
	if !testing.Short() {
		sizes = append(sizes, 40<<20, 128<<20)
	}
	for _, n := range sizes {
		before := d.Stats()
		if err := trip(d, n); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		if s := d.Stats(); n <= 8<<20 && s.Submits != before.Submits+1 {
			t.Errorf("%d bytes took %d submissions", n, s.Submits-before.Submits)
		}
	}
	if s := d.Stats(); s.Compiled != 1 || s.Buffers != 0 || s.BufferBytes != 0 {
		t.Errorf("%+v", s)
	}
}

// TestParts copies many parts of several buffers at odd lengths, more than the stages of one
// submission hold.
func TestParts(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	for _, sizes := range [][]int{{1, 2, 3}, {8<<20 - 3, 5, 8 << 20, 1}, {0, 7, 0}, {100 << 20, 3, 120 << 20}, {}} {
		if testing.Short() && len(sizes) > 0 && sizes[0] > 8<<20 { // four chunks suffice
			sizes = []int{17 << 20, 3, 25 << 20}
		}
		s := &webgpu.Submission{}
		var in [][]byte
		for _, n := range sizes {
			b := must(d.NewBuffer(int64(n)+8, webgpu.Storage))(t)
			defer b.Free()
			in = append(in, random(n))
			s.Uploads = append(s.Uploads, webgpu.Transfer{Host: in[len(in)-1], Buffer: b, Off: 4})
			s.Downloads = append(s.Downloads, webgpu.Transfer{Host: make([]byte, n), Buffer: b, Off: 4})
		}
		f := must(d.Submit(ctx, s, nil))(t)
		if err := f.Wait(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range in {
			if !bytes.Equal(in[i], s.Downloads[i].Host) {
				t.Errorf("%v: part %d is another", sizes, i)
			}
		}
	}
}

// TestNear uses operands and results that need no stage.
func TestNear(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	rounds, often := 3, 10
	if testing.Short() {
		rounds, often = 2, 30
	}
	for _, n := range []int{0, 1, 2, 3, 4, 5, 16, 63, 64 << 10, 300<<10 + 1, 8<<20 - 3, 8<<20 + 1} {
		for range rounds {
			if err := tripOf(d, n, webgpu.Input, webgpu.Output); err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			if err := tripOf(d, n, webgpu.Output, webgpu.Input); err != nil {
				t.Errorf("%d bytes the other way: %v", n, err)
			}
		}
	}
	if s := d.Stats(); s.Submits != uint64(2*rounds)*(11+3) {
		t.Errorf("%d submissions", s.Submits)
	}
	// All goroutines share buffers. Some wait, some do not, and some cancel, while other submissions
	// have several chunks.
	const n, large = 1000, 9 << 20
	x := must(d.NewBuffer(n, webgpu.Input))(t)
	y := must(d.NewBuffer(n, webgpu.Output))(t)
	z := must(d.NewBuffer(large, webgpu.Storage))(t)
	p := must(d.Compile(ctx, inc))(t)
	g := must(d.Bind(p, []webgpu.Range{{Buffer: x, Bytes: n}, {Buffer: y, Bytes: n}}))(t)
	var all sync.WaitGroup
	for k := range 8 {
		all.Go(func() {
			for i := range 100 {
				in, out := random(n), make([]byte, n)
				s := &webgpu.Submission{
					Uploads:   []webgpu.Transfer{{Host: in[:500], Buffer: x}, {Host: in[500:], Buffer: x, Off: 500}},
					Commands:  []webgpu.Command{{Group: g, Grid: [3]uint32{1, 1, 1}}},
					Downloads: []webgpu.Transfer{{Host: out, Buffer: y}},
				}
				var err error
				switch {
				case k == 0 && i%often == 0:
					s.Uploads = append(s.Uploads, webgpu.Transfer{Host: make([]byte, large), Buffer: z})
					s.Downloads = append(s.Downloads, webgpu.Transfer{Host: make([]byte, large), Buffer: z})
					err = d.Run(ctx, s)
				case k == 1:
					var f *webgpu.Fence
					if f, err = d.Submit(ctx, s, nil); err == nil {
						err = f.Wait(ctx)
					}
				case k == 2:
					short, cancel := context.WithTimeout(ctx, time.Duration(i)*time.Microsecond)
					err = d.Run(short, s)
					cancel()
					if errors.Is(err, context.DeadlineExceeded) {
						continue
					}
				default:
					err = d.Run(ctx, s)
				}
				if err != nil {
					t.Error(err)
					return
				}
				for j := range in {
					if out[j] != in[j]+1 {
						t.Errorf("byte %d is %d, not %d", j, out[j], in[j]+1)
						return
					}
				}
			}
		})
	}
	all.Wait()
}
