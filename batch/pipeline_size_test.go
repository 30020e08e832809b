package batch

import (
	"testing"
	"time"

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
	} {
		p := &flow{opts: PipelineOpts{Memory: c.memory}, row: op.F32.Size(), perRow: 0}
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
