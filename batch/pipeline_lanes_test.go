package batch_test

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// A fragments reader delivers data in pieces of random sizes. After some of them it calls end.
type fragments struct {
	data []byte
	left int // pieces before end, if end is not nil
	end  func() error
}

func (f *fragments) Read(to []byte) (int, error) {
	if f.end != nil && f.left == 0 {
		return 0, f.end()
	}
	f.left--
	n := copy(to[:min(len(to), 1+rand.IntN(3000))], f.data)
	if f.data = f.data[n:]; len(f.data) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// TestPipelineReaderOrder checks that results of a reader come in the order of its rows, whichever goroutine computes them.
func TestPipelineReaderOrder(t *testing.T) {
	noGoroutines(t)
	x := ramp(200_003)
	for _, rows := range []int{0, 1000, 4096} {
		p := pipeline[float32, float32](t, openCPU(t), reluOf, batch.PipelineOpts{Rows: rows})
		var got []float32
		for y, err := range p.RunReader(context.Background(), &fragments{data: native(x)}) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, y...)
		}
		if !slices.Equal(got, relus(x)) {
			t.Errorf("chunks of %d rows: results differ, or have another order", rows)
		}
	}
}

// TestPipelineReaderEnds checks readers that fail, panic, or end their goroutine, after any number of reads.
func TestPipelineReaderEnds(t *testing.T) {
	noGoroutines(t)
	broken := errors.New("broken")
	x := native(ramp(50_000))
	p := pipeline[float32, float32](t, openCPU(t), reluOf, batch.PipelineOpts{Rows: 700})
	run := func(end func() error, left int) (panicked any, last error) {
		defer func() { panicked = recover() }()
		for _, err := range p.RunReader(context.Background(), &fragments{x, left, end}) {
			last = err
		}
		return nil, last
	}
	for left := range 12 {
		if v, err := run(func() error { return broken }, left); !errors.Is(err, broken) || v != nil {
			t.Errorf("error after %d reads: %v, panic %v", left, err, v)
		}
		if v, _ := run(func() error { panic(broken) }, left); v != broken {
			t.Errorf("panic after %d reads: %v", left, v)
		}
		if v, err := run(func() error { runtime.Goexit(); return nil }, left); err == nil || v != nil {
			t.Errorf("Goexit after %d reads: %v, panic %v", left, err, v)
		}
	}
}

// TestPipelineReaderStores checks that the chunks of a reader run in order if they change a buffer.
func TestPipelineReaderStores(t *testing.T) {
	dev := openCPU(t)
	last, err := device.Upload(t.Context(), dev, []float32{0})
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	p := pipeline[float32, float32](t, dev, func(b *batch.Batch, x batch.Value) batch.Value {
		now := b.Add(b.Scale(b.Use(last), 0.5), b.Sum(x))
		b.Store(last, 0, now)
		return now
	}, batch.PipelineOpts{Rows: 64})
	x, want := ramp(64*500), []float32(nil)
	for i := 0; i < len(x); i += 64 {
		sum, before := float32(0), float32(0)
		for _, v := range x[i : i+64] {
			sum += v
		}
		if i > 0 {
			before = want[len(want)-1]
		}
		want = append(want, before*0.5+sum)
	}
	var got []float32
	for y, err := range p.RunReader(context.Background(), &fragments{data: native(x)}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, y...)
	}
	if !slices.Equal(got, want) {
		t.Error("results differ from those of chunks in order")
	}
}

// TestPipelineReaderLeft checks that a loop that is left ends, and waits only for the read that is under way, not for the rest of a chunk.
func TestPipelineReaderLeft(t *testing.T) {
	noGoroutines(t)
	for _, procs := range []int{1, 4} { // without and with lanes
		for _, whole := range []bool{false, true} {
			func() {
				defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
				p := pipeline[float32, float32](t, openCPU(t), reluOf, batch.PipelineOpts{Rows: 700})
				src := &leftReader{whole: whole, left: make(chan struct{})}
				for _, err := range p.RunReader(context.Background(), src) {
					if err != nil {
						t.Fatal(err)
					}
					close(src.left)
					break
				}
				if src.reads > 3 {
					t.Errorf("GOMAXPROCS=%d, whole chunks %v: %d reads, want at most one after the loop was left", procs, whole, src.reads)
				}
			}()
		}
	}
}

// A leftReader is an endless stream. Its first Read fills a chunk. The others end after the loop was left, with a number or with a chunk.
type leftReader struct {
	whole bool
	left  chan struct{}
	reads int
}

func (r *leftReader) Read(to []byte) (int, error) {
	if r.reads++; r.reads == 1 {
		return len(to), nil
	}
	<-r.left
	time.Sleep(10 * time.Millisecond) // until nothing but this Read is under way
	if r.whole {
		return len(to), nil
	}
	return 4, nil
}

// TestPipelineFile checks that a regular file is read from its position to its end, also while it grows, that its position
// is then at the end, and that a file that becomes shorter meanwhile gives an error.
func TestPipelineFile(t *testing.T) {
	noGoroutines(t)
	x := ramp(300_007)
	name := filepath.Join(t.TempDir(), "data")
	open := func() *os.File {
		if err := os.WriteFile(name, native(x), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		if _, err := f.Seek(4*11, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for _, change := range []int64{0, 40_000, -1_000_000} {
		for _, rows := range []int{0, 1000} {
			p, f, got := pipeline[float32, float32](t, openCPU(t), reluOf, batch.PipelineOpts{Rows: rows}), open(), []float32(nil)
			var fault error
			for y, err := range p.RunReader(context.Background(), f) {
				if fault = err; err != nil {
					break
				}
				if len(got) == 0 && change != 0 {
					if err := f.Truncate(int64(4*len(x)) + change); err != nil {
						t.Fatal(err)
					}
				}
				got = append(got, y...)
			}
			want := relus(x)[11:]
			if change > 0 {
				want = append(want, make([]float32, change/4)...)
			}
			if change < 0 {
				if whole := len(got) == len(want); !errors.Is(fault, io.ErrUnexpectedEOF) && !whole && fault != nil {
					t.Errorf("shorter file: error %v", fault)
				}
				if len(got) > len(want) || !slices.Equal(got[:min(len(got), 20_000)], want[:min(len(got), 20_000)]) {
					t.Error("shorter file: results before its new end differ")
				}
				continue
			}
			if fault != nil || !slices.Equal(got, want) {
				t.Errorf("change of %d bytes, chunks of %d rows: %d of %d results, or other ones; error %v", change, rows, len(got), len(want), fault)
			}
			if at, err := f.Seek(0, io.SeekCurrent); err != nil || at != int64(4*len(x))+change {
				t.Errorf("the position is %d after the end, error %v", at, err)
			}
		}
	}
}

// zeroed delivers other bytes than the file that it embeds.
type zeroed struct{ *os.File }

func (z zeroed) Read(to []byte) (int, error) {
	n, err := z.File.Read(to)
	clear(to[:n])
	return n, err
}

// TestPipelineEmbeddedFile checks that a reader that embeds a file is read by its own method, and that a run that
// ends early leaves the file after the bytes that it took.
func TestPipelineEmbeddedFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(name, native(ramp(100_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p := pipeline[float32, float32](t, openCPU(t), sumOfRelu, batch.PipelineOpts{Rows: 1000})
	for range p.RunReader(context.Background(), f) {
		break
	}
	at, err := f.Seek(0, io.SeekCurrent)
	if err != nil || at == 0 || at%4000 != 0 {
		t.Errorf("after the first of many chunks the position is %d, error %v", at, err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	for y, err := range p.RunReader(context.Background(), zeroed{f}) {
		if err != nil || y[0] != 0 {
			t.Fatal(y, err)
		}
	}
}

// TestPipelineStatedSize checks that a file that has fewer bytes than the system says is read to its end.
func TestPipelineStatedSize(t *testing.T) {
	const name = "/sys/kernel/mm/transparent_hugepage/enabled"
	want, err := os.ReadFile(name)
	if err != nil {
		t.Logf("the system has no such file: %v", err)
		return
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, rows := pipeline[uint8, int32](t, openCPU(t), func(b *batch.Batch, x batch.Value) batch.Value { return b.Cast(x, op.I32) }, batch.PipelineOpts{Rows: 64}), 0
	for y, err := range p.RunReader(context.Background(), f) {
		if err != nil {
			t.Fatal(err)
		}
		rows += len(y)
	}
	if rows != len(want) {
		t.Errorf("%d bytes, want %d", rows, len(want))
	}
}
