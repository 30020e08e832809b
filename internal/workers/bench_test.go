package workers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// crunch is work that splits evenly: each part is a chain of dependent
// multiplications, so that its time does not depend on memory.
type crunch struct {
	turns int // iterations of one part
	sink  [64][16]float64
}

func (c *crunch) Part(i int) {
	x := 1.5
	for range c.turns {
		x = x*0.999 + 0.001
	}
	c.sink[i%64][0] = x
}

// turnsFor returns the number of iterations that take d on this machine.
func turnsFor(d time.Duration) int {
	c := &crunch{turns: 100_000}
	best := time.Hour
	for range 20 {
		t := time.Now()
		c.Part(0)
		best = min(best, time.Since(t))
	}
	return int(float64(c.turns) * float64(d) / float64(best))
}

func quantiles(d []time.Duration) (p10, p50, p90 time.Duration) {
	slices.Sort(d)
	return d[len(d)/10], d[len(d)/2], d[len(d)*9/10]
}

// BenchmarkSplit measures work of several sizes, done after several pauses,
// serially and split as Worth advises: percentiles of the split time in µs,
// and the ratio of serial to split time at the median and in the mean.
func BenchmarkSplit(b *testing.B) { split(b) }

// BenchmarkSplitLoaded is BenchmarkSplit beside a process that keeps one
// processor busy.
func BenchmarkSplitLoaded(b *testing.B) {
	if os.Getenv("WORKERS_SPIN") != "" {
		for parent := os.Getppid(); os.Getppid() == parent; {
		}
		return
	}
	hog := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkSplitLoaded$")
	hog.Env = append(os.Environ(), "WORKERS_SPIN=1", "GOMAXPROCS=1")
	if err := hog.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() {
		hog.Process.Kill()
		hog.Wait()
	}()
	time.Sleep(100 * time.Millisecond)
	split(b)
}

func split(b *testing.B) {
	p := New(0)
	defer p.Close()
	if p.Threads() == 1 {
		testutil.Missing(b, "cores", errors.New("there is one thread"))
	}
	perMicro := turnsFor(time.Millisecond) / 1000
	for _, pause := range []time.Duration{0, 30 * time.Microsecond, time.Millisecond} {
		for _, micros := range []int{3, 5, 10, 20, 50, 100, 200, 1000} {
			b.Run(fmt.Sprintf("pause=%v/work=%dµs", pause, micros), func(b *testing.B) {
				whole := &crunch{turns: perMicro * micros}
				parts := 4 * p.Threads()
				part := &crunch{turns: whole.turns / parts}
				var serial, split []time.Duration
				var sumSerial, sumSplit time.Duration
				splits := 0
				once := func(i int) {
					if pause >= time.Millisecond {
						time.Sleep(pause)
					} else {
						for t := time.Now(); time.Since(t) < pause; {
						}
					}
					t := time.Now()
					// Measure in blocks, because programs have phases with and without pauses.
					if i/200%2 == 0 {
						whole.Part(0)
						d := time.Since(t)
						serial = append(serial, d)
						sumSerial += d
						return
					}
					if p.Worth(float64(micros) * 1000) {
						p.Do(parts, part)
						splits++
					} else {
						whole.Part(0)
					}
					d := time.Since(t)
					split = append(split, d)
					sumSplit += d
				}
				for i := 0; i < 400 || i < b.N; i++ {
					once(i)
				}
				_, s50, _ := quantiles(serial)
				p10, p50, p90 := quantiles(split)
				b.ReportMetric(float64(p10)/1e3, "p10-µs")
				b.ReportMetric(float64(p50)/1e3, "p50-µs")
				b.ReportMetric(float64(p90)/1e3, "p90-µs")
				b.ReportMetric(float64(s50)/float64(p50), "p50-ratio")
				b.ReportMetric(float64(sumSerial)/float64(len(serial))*float64(len(split))/float64(sumSplit), "mean-ratio")
				b.ReportMetric(float64(splits)/float64(len(split)), "splits")
			})
		}
	}
	b.Logf("GOMAXPROCS %d, hot %d ns, cold %d ns, wake %d ns, stall %d ns", runtime.GOMAXPROCS(0),
		p.hotNS.get(), p.coldNS.get(), p.wakeNS.get(), p.stallNS.get())
}
