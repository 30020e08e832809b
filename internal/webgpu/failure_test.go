package webgpu_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/fakehost"
)

// TestRefused makes calls to which libraries would respond by an abort, a hang or a wrong result.
func TestRefused(t *testing.T) {
	d, f := fake(t, &fakehost.Host{})
	other, _ := fake(t, &fakehost.Host{})
	x := must(d.NewBuffer(1000, webgpu.Storage))(t)
	y := must(d.NewBuffer(1000, webgpu.Storage))(t)
	u := must(d.NewBuffer(1000, webgpu.Uniform))(t)
	big := must(d.NewBuffer(200<<20, webgpu.Storage))(t)
	foreign := must(other.NewBuffer(1000, webgpu.Storage))(t)
	freed := must(d.NewBuffer(1000, webgpu.Storage))(t)
	freed.Free()
	freed.Free()
	p := must(d.Compile(ctx, inc))(t)
	ps := must(d.Compile(ctx, set))(t)
	g := must(d.Bind(p, []webgpu.Range{{Buffer: x, Bytes: 8}, {Buffer: y, Bytes: 8}}))(t)
	gone := must(d.Bind(p, []webgpu.Range{{Buffer: x, Bytes: 12}, {Buffer: y, Bytes: 12}}))(t)
	gone.Free()
	freedP := must(d.Compile(ctx, inc))(t)
	freedP.Free()
	buffer := func(n int64, u webgpu.Usage) error { _, err := d.NewBuffer(n, u); return err }
	bind := func(p *webgpu.Pipeline, r ...webgpu.Range) error { _, err := d.Bind(p, r); return err }
	compile := func(change func(s *webgpu.Shader)) error {
		s := *inc
		change(&s)
		_, err := d.Compile(ctx, &s)
		return err
	}
	run := func(s webgpu.Submission) error { return d.Run(ctx, &s) }
	command := func(c webgpu.Command) error { return run(webgpu.Submission{Commands: []webgpu.Command{c}}) }
	up := func(n int, b *webgpu.Buffer, off int64) error {
		return run(webgpu.Submission{Uploads: []webgpu.Transfer{{Host: make([]byte, n), Buffer: b, Off: off}}})
	}
	down := func(n int, b *webgpu.Buffer, off int64) error {
		return run(webgpu.Submission{Downloads: []webgpu.Transfer{{Host: make([]byte, n), Buffer: b, Off: off}}})
	}
	for name, c := range map[string]struct{ got, want error }{
		"negative size":               {buffer(-1, webgpu.Storage), webgpu.ErrInvalid},
		"size over the limit":         {buffer(1<<30+4, webgpu.Storage), webgpu.ErrLimit},
		"size of 4 TiB":               {buffer(4<<40, webgpu.Storage), webgpu.ErrLimit},
		"size near overflow":          {buffer(1<<63-1, webgpu.Storage), webgpu.ErrLimit},
		"upload usage":                {buffer(4, webgpu.Upload), webgpu.ErrInvalid},
		"lanes on an axis":            {compile(func(s *webgpu.Shader) { s.Lanes = [3]uint32{1, 1, 65} }), webgpu.ErrLimit},
		"lanes":                       {compile(func(s *webgpu.Shader) { s.Lanes = [3]uint32{16, 17, 1} }), webgpu.ErrLimit},
		"lanes near overflow":         {compile(func(s *webgpu.Shader) { s.Lanes = [3]uint32{1 << 31, 1 << 31, 4} }), webgpu.ErrLimit},
		"shared bytes":                {compile(func(s *webgpu.Shader) { s.Shared = 16<<10 + 1 }), webgpu.ErrLimit},
		"bindings":                    {compile(func(s *webgpu.Shader) { s.Bindings = make([]webgpu.BindingKind, 9) }), webgpu.ErrLimit},
		"kind of binding":             {compile(func(s *webgpu.Shader) { s.Bindings = []webgpu.BindingKind{3} }), webgpu.ErrInvalid},
		"long text":                   {compile(func(s *webgpu.Shader) { s.Text = string(make([]byte, 5<<20)) }), webgpu.ErrLimit},
		"no pipeline":                 {bind(nil), webgpu.ErrInvalid},
		"freed pipeline":              {bind(freedP, webgpu.Range{Buffer: x}, webgpu.Range{Buffer: y}), webgpu.ErrClosed},
		"too few ranges":              {bind(p, webgpu.Range{Buffer: x}), webgpu.ErrInvalid},
		"no buffer":                   {bind(p, webgpu.Range{Buffer: x}, webgpu.Range{}), webgpu.ErrInvalid},
		"freed buffer":                {bind(p, webgpu.Range{Buffer: x}, webgpu.Range{Buffer: freed}), webgpu.ErrClosed},
		"foreign buffer":              {bind(p, webgpu.Range{Buffer: x}, webgpu.Range{Buffer: foreign}), webgpu.ErrForeign},
		"written and read":            {bind(p, webgpu.Range{Buffer: x, Bytes: 4}, webgpu.Range{Buffer: x, Off: 256, Bytes: 4}), webgpu.ErrInvalid},
		"offset between alignments":   {bind(p, webgpu.Range{Buffer: x, Off: 4, Bytes: 4}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"negative offset":             {bind(p, webgpu.Range{Buffer: x, Off: -256, Bytes: 4}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"range past the end":          {bind(p, webgpu.Range{Buffer: x, Off: 768, Bytes: 236}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"range near overflow":         {bind(p, webgpu.Range{Buffer: x, Off: 256, Bytes: 1<<63 - 1}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"offset near overflow":        {bind(p, webgpu.Range{Buffer: x, Off: 1<<63 - 256, Bytes: 4}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"range over the limit":        {bind(p, webgpu.Range{Buffer: big, Bytes: 128<<20 + 4}, webgpu.Range{Buffer: y}), webgpu.ErrLimit},
		"storage for a block":         {bind(ps, webgpu.Range{Buffer: x}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"a block for storage":         {bind(p, webgpu.Range{Buffer: u}, webgpu.Range{Buffer: y}), webgpu.ErrInvalid},
		"grid":                        {command(webgpu.Command{Group: g, Grid: [3]uint32{1, 65536, 1}}), webgpu.ErrLimit},
		"freed group":                 {command(webgpu.Command{Group: gone, Grid: [3]uint32{1, 1, 1}}), webgpu.ErrClosed},
		"copy of 3 bytes":             {command(webgpu.Command{Src: x, Dst: y, Bytes: 3}), webgpu.ErrInvalid},
		"copy past the source":        {command(webgpu.Command{Src: x, From: 8, Dst: big, Bytes: 996}), webgpu.ErrInvalid},
		"copy past the destination":   {command(webgpu.Command{Src: big, Dst: y, To: 8, Bytes: 996}), webgpu.ErrInvalid},
		"copy from between alignment": {command(webgpu.Command{Src: x, From: 2, Dst: y, Bytes: 4}), webgpu.ErrInvalid},
		"copy near overflow":          {command(webgpu.Command{Src: x, From: 1<<63 - 4, Dst: y, Bytes: 1<<63 - 4}), webgpu.ErrInvalid},
		"copy to nowhere":             {command(webgpu.Command{Src: x, Bytes: 4}), webgpu.ErrInvalid},
		"copy to what is freed":       {command(webgpu.Command{Src: x, Dst: freed, Bytes: 4}), webgpu.ErrClosed},
		"clear past the end":          {command(webgpu.Command{Dst: x, To: 4, Bytes: 1000}), webgpu.ErrInvalid},
		"upload past the end":         {up(1000, x, 4), webgpu.ErrInvalid},
		"upload at 2":                 {up(4, x, 2), webgpu.ErrInvalid},
		"upload to what is freed":     {up(4, freed, 0), webgpu.ErrClosed},
		"upload to another device":    {up(4, foreign, 0), webgpu.ErrForeign},
		"download past the end":       {down(1000, x, 4), webgpu.ErrInvalid},
		"download before it":          {down(4, x, -4), webgpu.ErrInvalid},
		"download from nothing":       {down(4, nil, 0), webgpu.ErrInvalid},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, not %v", name, c.got, c.want)
		}
	}
	var e *webgpu.CompileError
	if err := compile(func(s *webgpu.Shader) { s.Entry = "nothing" }); !errors.As(err, &e) {
		t.Errorf("a mistake in the text: %v", err)
	}
	for name, err := range map[string]error{
		"all of a buffer":    bind(p, webgpu.Range{Buffer: x, Bytes: 1000}, webgpu.Range{Buffer: y, Off: 768, Bytes: 232}),
		"nothing":            command(webgpu.Command{}),
		"odd copy to an end": command(webgpu.Command{Src: big, Dst: must(d.NewBuffer(6, webgpu.Storage))(t), Bytes: 6}),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := trip(d, 1000); err != nil {
		t.Errorf("after all that: %v", err)
	}
	must(0, d.Close())(t)
	if !f.Closed() {
		t.Error("the host's device is open")
	}
	if err := buffer(4, webgpu.Storage); !errors.Is(err, webgpu.ErrClosed) {
		t.Errorf("NewBuffer after Close: %v", err)
	}
	if err := run(webgpu.Submission{}); !errors.Is(err, webgpu.ErrClosed) {
		t.Errorf("Run after Close: %v", err)
	}
	if err := compile(func(*webgpu.Shader) {}); !errors.Is(err, webgpu.ErrClosed) {
		t.Errorf("Compile after Close: %v", err)
	}
	x.Free()
	g.Free()
	p.Free()
	if err := d.Close(); err != nil {
		t.Errorf("Close after Close: %v", err)
	}
}

// TestEachCallFails makes each call of the host fail once, and requires that later calls work.
func TestEachCallFails(t *testing.T) {
	broken := errors.New("broken")
	for _, call := range []string{"Open", "NewBuffer", "NewPipeline", "NewGroup", "Submit"} {
		for skip := range 5 {
			if testing.Short() && rand.IntN(3) > 0 {
				continue
			}
			var left atomic.Int32
			left.Store(1 << 30)
			h := &fakehost.Host{Kernels: kernels, Fail: func(c string) error {
				if c == call && left.Add(-1) == 0 {
					return broken
				}
				return nil
			}}
			if call == "Open" {
				left.Store(1)
				if _, err := webgpu.Open(ctx, h, 0); !errors.Is(err, broken) {
					t.Errorf("Open: %v", err)
				}
				continue
			}
			d, _ := fake(t, h)
			left.Store(int32(skip) + 1)
			for range 2 {
				if err := trip(d, 9<<20); err != nil && !errors.Is(err, broken) {
					t.Errorf("%s %d: %v", call, skip, err)
				}
				if err := tripOf(d, 1000, webgpu.Input, webgpu.Output); err != nil && !errors.Is(err, broken) {
					t.Errorf("%s %d: %v", call, skip, err)
				}
			}
			left.Store(1 << 30)
			if err := trip(d, 9<<20); err != nil {
				t.Errorf("%s %d, afterwards: %v", call, skip, err)
			}
			for range 2 {
				if err := tripOf(d, 1000, webgpu.Input, webgpu.Output); err != nil {
					t.Errorf("%s %d, afterwards: %v", call, skip, err)
				}
			}
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{Memory: 64 << 20})
	b := must(d.NewBuffer(40<<20, webgpu.Storage))(t)
	if _, err := d.NewBuffer(40<<20, webgpu.Storage); !errors.Is(err, webgpu.ErrOutOfMemory) {
		t.Errorf("%v", err)
	}
	b.Free()
	// Cached memory is freed for another size.
	must(d.NewBuffer(50<<20, webgpu.Storage))(t)
	if err := trip(d, 1000); err != nil {
		t.Error(err)
	}
}

func TestCancelled(t *testing.T) {
	d, f := fake(t, &fakehost.Host{})
	x := must(d.NewBuffer(1<<20, webgpu.Storage))(t)
	f.Hang(true)
	out := make([]byte, 1<<20)
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	s := &webgpu.Submission{Commands: []webgpu.Command{{Dst: x, Bytes: 1 << 20}}, Downloads: []webgpu.Transfer{{Host: out, Buffer: x}}}
	if err := d.Run(short, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Run: %v", err)
	}
	fence := must(d.Submit(ctx, s, nil))(t)
	if err := fence.Wait(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Wait: %v", err)
	}
	for i := range out {
		out[i] = 7 // the memory belongs to the caller again
	}
	x.Free() // while it is used
	f.Hang(false)
	if err := fence.Wait(ctx); err != nil {
		t.Errorf("Wait: %v", err)
	}
	if !bytes.Equal(out, make([]byte, 1<<20)) {
		t.Error("the results are not those of the second submission")
	}
	if err := d.Run(short, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v", err)
	}
	if err := trip(d, 100); err != nil {
		t.Error(err)
	}
}

// TestHung uses a GPU that completes nothing.
func TestHung(t *testing.T) {
	webgpu.Patience = 50 * time.Millisecond
	defer func() { webgpu.Patience = 10 * time.Second }()
	d, f := fake(t, &fakehost.Host{})
	x := must(d.NewBuffer(1000, webgpu.Storage))(t)
	f.Hang(true)
	s := &webgpu.Submission{Downloads: []webgpu.Transfer{{Host: make([]byte, 1000), Buffer: x}}}
	var told atomic.Int32
	fence := must(d.Submit(ctx, s, func(err error) {
		if errors.Is(err, webgpu.ErrDeviceLost) {
			told.Add(1)
		}
	}))(t)
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := d.Run(short, s); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Run: %v", err)
	}
	select {
	case <-d.Lost():
	case <-time.After(time.Minute):
		t.Fatal("the device is not lost")
	}
	if err := fence.Wait(ctx); !errors.Is(err, webgpu.ErrDeviceLost) || told.Load() != 1 {
		t.Errorf("Wait: %v, told %d times", err, told.Load())
	}
	if err := d.Run(ctx, s); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("Run: %v", err)
	}
	if _, err := d.NewBuffer(4, webgpu.Storage); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("NewBuffer: %v", err)
	}
	x.Free()
	if err := d.Close(); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("Close: %v", err)
	}
	if f.Closed() {
		t.Error("Close closed the host's device")
	}
}

func TestCloseHung(t *testing.T) {
	webgpu.Patience = 50 * time.Millisecond
	defer func() { webgpu.Patience = 10 * time.Second }()
	d, f := fake(t, &fakehost.Host{})
	x := must(d.NewBuffer(1000, webgpu.Storage))(t)
	f.Hang(true)
	fence := must(d.Submit(ctx, &webgpu.Submission{Downloads: []webgpu.Transfer{{Host: make([]byte, 1000), Buffer: x}}}, nil))(t)
	if err := d.Close(); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("Close: %v", err)
	}
	if err := fence.Wait(ctx); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("Wait: %v", err)
	}
}

func TestLost(t *testing.T) {
	h := &fakehost.Host{}
	d, f := fake(t, h)
	x := must(d.NewBuffer(1000, webgpu.Storage))(t)
	f.Hang(true)
	s := &webgpu.Submission{Downloads: []webgpu.Transfer{{Host: make([]byte, 1000), Buffer: x}}}
	fence := must(d.Submit(ctx, s, nil))(t)
	f.Lose()
	if err := fence.Wait(ctx); !errors.Is(err, webgpu.ErrDeviceLost) {
		t.Errorf("Wait: %v", err)
	}
	<-d.Lost()
	x.Free()
	if err := d.Close(); err != nil || !f.Closed() {
		t.Errorf("Close: %v", err)
	}
	// Another device works.
	d, _ = fake(t, h)
	if err := trip(d, 1000); err != nil {
		t.Error(err)
	}
}

// TestClosing closes the device while many goroutines use it.
func TestClosing(t *testing.T) {
	for range 20 {
		d, _ := fake(t, &fakehost.Host{Delay: 100 * time.Microsecond})
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for {
					if err := trip(d, 5000); err != nil {
						if !errors.Is(err, webgpu.ErrClosed) {
							t.Errorf("%v", err)
						}
						return
					}
				}
			})
		}
		time.Sleep(3 * time.Millisecond)
		must(0, d.Close())(t)
		all.Wait()
	}
}
