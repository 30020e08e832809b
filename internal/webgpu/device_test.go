package webgpu_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
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

// remote makes fake open devices whose memory Go cannot reach.
var remote bool

// fake opens the fake, and looks at the end for what must not have been done.
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

// trip is a round trip: n bytes, each one more.
func trip(d *webgpu.Device, n int) error { return tripOf(d, n, webgpu.Storage, webgpu.Storage) }

// tripOf is a round trip over buffers of those usages.
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

// TestParts carries many parts of several buffers at odd lengths, beyond the
// stages that one submission may have.
func TestParts(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	for _, sizes := range [][]int{{1, 2, 3}, {8<<20 - 3, 5, 8 << 20, 1}, {0, 7, 0}, {100 << 20, 3, 120 << 20}, {}} {
		if testing.Short() && len(sizes) > 0 && sizes[0] > 8<<20 { // four chunks are as good as many
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

// TestNear has operands and results that pass through no stage.
func TestNear(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	for _, n := range []int{0, 1, 2, 3, 4, 5, 16, 63, 64 << 10, 300<<10 + 1, 8<<20 - 3, 8<<20 + 1} {
		for range 3 {
			if err := tripOf(d, n, webgpu.Input, webgpu.Output); err != nil {
				t.Errorf("%d bytes: %v", n, err)
			}
			if err := tripOf(d, n, webgpu.Output, webgpu.Input); err != nil {
				t.Errorf("%d bytes the other way: %v", n, err)
			}
		}
	}
	if s := d.Stats(); s.Submits != 6*(11+3) {
		t.Errorf("%d submissions", s.Submits)
	}
	// One set of buffers for everybody, waited for, not waited for and given up,
	// beside what takes several submissions.
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
				case k == 0 && i%10 == 0:
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

// TestAgain has the host get ready for what may come again while somebody waits, and at
// no other time. The fake looks whether all that is used is still there.
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

// TestRefused has what libraries answer with an abort, a hang or nonsense.
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

// TestEachCallFails has every call of the host fail once, and then all goes on.
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
	// What was kept is given up for another size.
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
		out[i] = 7 // they are the caller's
	}
	x.Free() // in flight
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

// TestHung has a GPU that never answers.
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
	// Another one works.
	d, _ = fake(t, h)
	if err := trip(d, 1000); err != nil {
		t.Error(err)
	}
}

// TestClosing closes while everybody is at work.
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

// TestAtomic has submissions of several chunks share a buffer, one after the other.
func TestAtomic(t *testing.T) {
	d, _ := fake(t, &fakehost.Host{})
	const n = 40 << 20
	x := must(d.NewBuffer(n, webgpu.Storage))(t)
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

// TestOrder has fences complete in order, and callbacks before them.
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

// TestFlat has memory stay where it is over many batches, and the host's objects
// with it.
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
	// The compiler tells when it begins, and ends when it is told to.
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
	// One who gives up leaves the compiler to who comes later.
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
