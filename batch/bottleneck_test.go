package batch

import (
	"strings"
	"testing"
	"time"
)

// TestBounds checks that a limit is reported as the bound of a step only if the step is close to it.
func TestBounds(t *testing.T) {
	p := &Profile{Bandwidth: 1e9, Flops: 1e10}
	for _, c := range []struct {
		bytes int64 // of a limit of 1000000 bytes in the time of the step
		flops float64
		bound Bound
		says  string
	}{
		{900000, 0, Memory, "bound by memory and near the limit"},
		{600000, 1e6, Memory, "bound by memory at 60% of the limit"},
		{170000, 3e5, Unknown, "17% of the limit of memory and 3% of that of arithmetic in 1ms, so neither bounds it\n"},
		{1000, 9e6, Compute, "bound by arithmetic and near the limit"},
		{1000, 4e6, Unknown, "0% of the limit of memory and 40% of that of arithmetic"},
		{1000, 2e5, Overhead, "0% of the limit of memory and 2% of that of arithmetic in 1ms, so neither bounds it: it is too small"},
	} {
		s := StepProfile{Name: "relu", Time: Times{P50: time.Millisecond}, Bytes: c.bytes, Flops: c.flops, Share: 1}
		s.classify(p)
		p.Steps = []StepProfile{s}
		if got := p.Bottlenecks(); s.Bound != c.bound || !strings.Contains(got, c.says) {
			t.Errorf("%d bytes, %v operations: %s, %q", c.bytes, c.flops, s.Bound, got)
		}
	}
}
