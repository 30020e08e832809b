package batch

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// The choice is tested with the rates of simulated devices. Each chunk takes a fixed time and one
// for each row.
func TestSizing(t *testing.T) {
	for name, c := range map[string]struct {
		rate   func(rows, depth int) float64 // rows a second
		memory int64
		want   choice
	}{
		"ever faster":  {func(rows, depth int) float64 { return float64(rows) }, 1 << 30, choice{8 << 20, usual}},
		"all the same": {func(rows, depth int) float64 { return 1e8 }, 1 << 30, choice{128 << 10, usual}},
		"cache": {func(rows, depth int) float64 {
			if rows > 800_000 {
				return 1e8
			}
			return 1e8 * (1 + float64(rows)/1e5)
		}, 1 << 30, choice{512 << 10, usual}},
		"depth":  {func(rows, depth int) float64 { return 1e6 * float64(depth) }, 1 << 30, choice{128 << 10, deeper}},
		"budget": {func(rows, depth int) float64 { return float64(rows) * float64(depth) }, 4 << 20, choice{128 << 10, usual}},
		"tight":  {func(rows, depth int) float64 { return float64(rows) * float64(depth) }, 66_000, choice{8 << 10, fewest}},
		"remote": {func(rows, depth int) float64 { return float64(rows) / (1 + float64(rows)/1e6) }, 1 << 30, choice{8 << 20, usual}},
		"remote, small chunks": {func(rows, depth int) float64 {
			if rows > 600_000 {
				return 1e6
			}
			return 2e6
		}, 1 << 30, choice{512 << 10, usual}},
	} {
		p := &flow{opts: PipelineOpts{Memory: c.memory}, row: op.F32.Size(), remote: strings.HasPrefix(name, "remote")}
		if name == "budget" {
			p.perRow = 4
		}
		s := p.sizing()
		now := time.Unix(0, 0)
		for i := 0; !s.settled; i++ {
			if i > 100_000 {
				t.Fatalf("%s: not settled", name)
			}
			next, trial := s.next()
			if cost := p.cost(next.rows) * int64(next.depth); cost > c.memory {
				t.Fatalf("%s: %+v takes %d of %d bytes", name, next, cost, c.memory)
			}
			now = now.Add(time.Duration(float64(next.rows) / c.rate(next.rows, next.depth) * 1e9))
			s.done(trial, next.rows, now)
		}
		if got, _ := s.next(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestSizingContinues checks that short runs together try all sizes, and that a run tries another choice if
// the device refuses one.
func TestSizingContinues(t *testing.T) {
	p := &flow{opts: PipelineOpts{Memory: 1 << 30}, row: op.F32.Size()}
	now, runs := time.Unix(0, 0), 0
	for ; !p.sizing().settled; runs++ {
		if runs > 20 {
			t.Fatal("20 runs did not settle the choice")
		}
		now = now.Add(time.Hour) // between the runs
		for range 2 * (deeper + trialChunks) {
			c, trial := p.trials.next()
			now = now.Add(time.Duration(float64(c.rows) / (1e6 + float64(c.rows)) * float64(time.Second))) // the throughput grows with the rows
			p.trials.done(trial, c.rows, now)
		}
	}
	if c, _ := p.trials.next(); runs < 2 || c.rows != lastChunk/4 {
		t.Errorf("%d runs chose %+v, want several, and %d rows", runs, c, lastChunk/4)
	}
	p.trials = nil
	s := p.sizing()
	for range len(p.sizes()) - 1 {
		before, trial := s.next()
		if !s.refuse(trial) {
			t.Error("no choice remains after a refusal of the first trials")
		}
		if now, _ := s.next(); now == before {
			t.Errorf("%+v was refused and is tried again", now)
		}
	}
	if _, last := s.next(); s.refuse(last) {
		t.Error("a choice remains after all were refused")
	}
	p.trials = nil
	s = p.sizing()
	s.rate, s.best = 1, choice{7, 2}
	_, first := s.next()
	p.sizing() // another run begins
	if !s.refuse(first) {
		t.Error("no choice remains after a refusal of an earlier trial")
	}
	_, again := s.next()
	for range 2 { // as two runs
		if !s.refuse(again) {
			t.Error("no choice remains after two runs refused the same trial")
		}
	}
	if c, settled := s.next(); c != s.best || s.refuse(settled) {
		t.Errorf("%+v was chosen, want %+v, which cannot be refused", c, s.best)
	}
}

// TestPipelineTurns checks that only chunks without effects run in turns, which may exchange two of them, and only on
// several processors.
func TestPipelineTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // without effect in pages
	several := runtime.GOMAXPROCS(0) > 1
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	buf, err := device.Upload(t.Context(), dev, []float32{0})
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Close()
	for name, stores := range map[string]bool{"stores": true, "no effects": false} {
		p, err := NewPipeline[float32, float32](dev, func(b *Batch, x Value) Value {
			if stores {
				b.Store(buf, 0, b.Sum(x))
			}
			return b.Add(b.Sum(x), b.Use(buf))
		}, PipelineOpts{})
		if err != nil {
			t.Fatal(err)
		}
		if p.flow.inTurns != (several && !stores) {
			t.Errorf("%s: in turns is %v", name, p.flow.inTurns)
		}
		p.Close()
	}
}
