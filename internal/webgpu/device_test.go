package webgpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/fakehost"
)

var ctx = context.Background()

// kernels of the fake: add one to each byte of x, to y; set p to the first word of
// the block.
var kernels = map[string]fakehost.Kernel{
	"inc": func(grid [3]uint32, b [][]byte) {
		increment(b[1], b[0])
	},
	"set": func(grid [3]uint32, b [][]byte) {
		for i := 0; i < len(b[1]); i += 4 {
			copy(b[1][i:i+4], b[0][:4])
		}
	},
}

var (
	inc = &webgpu.Shader{Label: "inc", Text: "inc", Entry: "inc", Bindings: []webgpu.BindingKind{webgpu.ReadOnly, webgpu.ReadWrite}, Lanes: [3]uint32{64, 1, 1}}
	set = &webgpu.Shader{Label: "set", Text: "set", Entry: "set", Bindings: []webgpu.BindingKind{webgpu.Block, webgpu.ReadWrite}}
)

// remote makes fake open devices whose memory Go cannot address.
var remote bool

// fake opens the fake library. When the test ends, it checks that no rule was violated.
func fake(t testing.TB, h *fakehost.Host) (*webgpu.Device, *fakehost.Device) {
	t.Helper()
	h.Kernels, h.Remote = kernels, h.Remote || remote
	d, err := webgpu.Open(ctx, h, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := h.Devices()
	f := list[len(list)-1]
	t.Cleanup(func() {
		f.Hang(false)
		_ = d.Close()
		for _, v := range f.Violations() {
			t.Errorf("violation: %s", v)
		}
	})
	return d, f
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func random(n int) []byte {
	b := make([]byte, n)
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], rand.Uint64())
	_, _ = rand.NewChaCha8(seed).Read(b)
	return b
}

// increment sets each byte of dst to one more than that of src: eight at a time, as
// the race detector looks at every access.
func increment(dst, src []byte) {
	const low, high = 0x7f7f7f7f7f7f7f7f, 0x8080808080808080
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		v := binary.LittleEndian.Uint64(src[i:])
		binary.LittleEndian.PutUint64(dst[i:], (v&low+0x0101010101010101)^v&high)
	}
	for ; i < len(dst); i++ {
		dst[i] = src[i] + 1
	}
}

// trip is a round trip that adds one to each of n bytes.
func trip(d *webgpu.Device, n int) error { return tripOf(d, n, webgpu.Storage, webgpu.Storage) }

// TestAgain requires that the host prepares to repeat a submission only while a goroutine waits for
// it. The fake checks that all used objects still exist.
func TestAgain(t *testing.T) {
	d, f := fake(t, &fakehost.Host{})
	b := must(d.NewBuffer(64, webgpu.Storage))(t)
	s := &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, 64), Buffer: b}}}
	if err := d.Run(ctx, s); err != nil {
		t.Fatal(err)
	}
	if n := f.Agains(); n != 1 {
		t.Errorf("asked %d times by one who waits", n)
	}
	if err := must(d.Submit(ctx, s, nil))(t).Wait(ctx); err != nil {
		t.Fatal(err)
	}
	b.Free()
	if err := d.Run(ctx, &webgpu.Submission{}); err != nil {
		t.Fatal(err)
	}
	if n := f.Agains(); n != 1 {
		t.Errorf("asked %d times by one who waits, one who does not, and for nothing", n)
	}
}

func TestCommands(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	x := must(d.NewBuffer(32, webgpu.Storage))(t)
	u := must(d.NewBuffer(256+4, webgpu.Uniform))(t)
	p := must(d.Compile(ctx, set))(t)
	g := must(d.Bind(p, []webgpu.Range{{Buffer: u, Off: 256, Bytes: 4}, {Buffer: x, Bytes: 16}}))(t)
	out := make([]byte, 30)
	var stamps []uint64
	must(0, d.Run(ctx, &webgpu.Submission{
		Uploads: []webgpu.Transfer{{Host: []byte{1, 2, 3, 4}, Buffer: u, Off: 256}},
		Commands: []webgpu.Command{
			{Dst: x, Bytes: 32},
			{Group: g, Grid: [3]uint32{1, 1, 1}, Stamp: true},
			{Src: x, Dst: x, From: 0, To: 8, Bytes: 12}, // overlapping, within a buffer
			{Group: g, Grid: [3]uint32{1, 0, 1}},
			{Stamp: true},
			{Dst: x, To: 4, Bytes: 4},
		},
		Downloads: []webgpu.Transfer{{Host: out, Buffer: x}},
		Stamps:    &stamps,
	}))(t)
	want := []byte{1, 2, 3, 4, 0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	if !bytes.Equal(out, want) {
		t.Errorf("%v, not %v", out, want)
	}
	if len(stamps) != 3 || stamps[1]-stamps[0] != 1000 || stamps[2]-stamps[1] != 1000 {
		t.Errorf("stamps %v", stamps)
	}
}

func TestConcurrent(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	var all sync.WaitGroup
	for g := range 64 {
		all.Go(func() {
			for i := range 30 {
				n := (g*37 + i*1001) % 70000
				if err := tripOf(d, n, webgpu.Input, webgpu.Output); err != nil {
					t.Errorf("%d bytes: %v", n, err)
					return
				}
			}
		})
	}
	all.Wait()
	if s := d.Stats(); s.Compiled != 1 || s.Buffers != 0 {
		t.Errorf("%+v", s)
	}
}

// TestAtomic requires that submissions of several chunks that share a buffer run one after the other.
func TestAtomic(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	n := 40 << 20
	if testing.Short() { // three chunks suffice
		n = 17 << 20
	}
	x := must(d.NewBuffer(int64(n), webgpu.Storage))(t)
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			in, out := bytes.Repeat([]byte{byte(g)}, n), make([]byte, n)
			for range 3 {
				if err := d.Run(ctx, &webgpu.Submission{Uploads: []webgpu.Transfer{{Host: in, Buffer: x}}, Downloads: []webgpu.Transfer{{Host: out, Buffer: x}}}); err != nil {
					t.Error(err)
				}
				if !bytes.Equal(in, out) {
					t.Error("another submission came between")
				}
			}
		})
	}
	all.Wait()
}

// TestOrder requires that fences complete in order, and callbacks before them.
func TestOrder(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{Delay: 50 * time.Microsecond})
	x := must(d.NewBuffer(4, webgpu.Storage))(t)
	var fences []*webgpu.Fence
	outs := make([][4]byte, 200)
	for i := range outs {
		var told bool
		in := [4]byte{byte(i)}
		f := must(d.Submit(ctx, &webgpu.Submission{
			Uploads:   []webgpu.Transfer{{Host: in[:], Buffer: x}},
			Downloads: []webgpu.Transfer{{Host: outs[i][:], Buffer: x}},
		}, func(err error) { told = err == nil }))(t)
		fences = append(fences, f)
		go func() {
			<-f.Done()
			if !told {
				t.Error("the fence is done before the callback")
			}
		}()
	}
	for i, f := range fences {
		must(0, f.Wait(ctx))(t)
		if outs[i][0] != byte(i) {
			t.Errorf("submission %d has the result of %d", i, outs[i][0])
		}
	}
}

// TestFlat requires that memory and the number of objects of the host stay constant over many batches.
func TestFlat(t *testing.T) {
	d, f := fake(t, &fakehost.Host{})
	n := 20_000
	if testing.Short() {
		n = 2000
	}
	var before int64
	for i := range n {
		if err := trip(d, 1+i%9000); err != nil {
			t.Fatal(err)
		}
		if i == n/2 {
			_, before, _ = f.Alive()
		}
	}
	if _, after, others := f.Alive(); after > before+1<<16 || others > 1100 {
		t.Errorf("%d bytes became %d, with %d pipelines and groups", before, after, others)
	}
}

// TestSingleFlight compiles one text in many goroutines, and many texts.
func TestSingleFlight(t *testing.T) {
	// The test learns when the compiler begins, and decides when it ends.
	began, end := make(chan struct{}, 1000), make(chan struct{})
	d, f := fake(t, &fakehost.Host{Fail: func(call string) error {
		if call == "NewPipeline" {
			began <- struct{}{}
			<-end
		}
		return nil
	}})
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { must(d.Compile(ctx, inc))(t).Free() })
	}
	<-began
	end <- struct{}{}
	all.Wait()
	if s := d.Stats(); s.Compiled != 1 || len(began) != 0 {
		t.Errorf("compiled %d times, and began %d times more", s.Compiled, len(began))
	}
	// After a cancelled call, the compiler continues for later calls.
	given, giveUp := context.WithCancel(ctx)
	go func() {
		<-began
		giveUp()
	}()
	s := *inc
	s.Text = "another"
	if _, err := d.Compile(given, &s); !errors.Is(err, context.Canceled) {
		t.Errorf("Compile: %v", err)
	}
	close(end)
	must(d.Compile(ctx, &s))(t).Free()
	if s := d.Stats(); s.Compiled != 2 {
		t.Errorf("compiled %d times", s.Compiled)
	}
	for i := range 400 {
		all.Go(func() {
			s := *inc
			s.Text = fmt.Sprint("text ", i)
			must(d.Compile(ctx, &s))(t).Free()
		})
	}
	all.Wait()
	if _, _, others := f.Alive(); others > 300 {
		t.Errorf("%d pipelines are kept", others)
	}
}
