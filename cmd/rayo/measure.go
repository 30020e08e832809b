package main

import (
	"fmt"
	"slices"
	"time"
)

// median runs f once without measuring, then for about a third of a second, and returns the median
// time.
func median(a *app, f func() error) (time.Duration, error) {
	return medianFor(a, 300*time.Millisecond, f)
}

// medianFor returns the median of at least three samples that together take the given
// time. A sample has as many calls as take about a millisecond.
func medianFor(a *app, budget time.Duration, f func() error) (time.Duration, error) {
	calls := 1
	run := func() (time.Duration, error) {
		from := time.Now()
		for range calls {
			if err := f(); err != nil {
				return 0, err
			}
		}
		return time.Since(from), a.ctx.Err()
	}
	for {
		d, err := run()
		if err != nil {
			return 0, err
		}
		if d >= time.Millisecond || calls >= 1<<20 {
			break
		}
		calls *= 2
	}
	var samples []time.Duration
	for end := time.Now().Add(budget); len(samples) < 3 || time.Now().Before(end); {
		d, err := run()
		if err != nil {
			return 0, err
		}
		samples = append(samples, d)
	}
	slices.Sort(samples)
	return max(samples[len(samples)/2]/time.Duration(calls), 1), nil
}

// timeText returns a time with three digits and a unit.
func timeText(d time.Duration) string {
	units := []string{"ns", "µs", "ms", "s"}
	u := 0
	v := float64(d)
	for ; v >= 1000 && u < len(units)-1; u++ {
		v /= 1000
	}
	return digits(v) + " " + units[u]
}

func flopsText(flops float64, d time.Duration) string {
	return digits(flops/d.Seconds()/1e9) + " GFLOP/s"
}

func bandwidthText(bytes float64, d time.Duration) string {
	return digits(bytes/d.Seconds()/1e9) + " GB/s"
}

// digits returns a number with three digits.
func digits(v float64) string {
	switch {
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}
