// Command generation measures the time to generate kernels in PTX, from calls to text,
// and compares it with a peer: a program that prints lines with a kernel's name,
// nanoseconds and bytes. Both run several times in turn, and the best time of each
// counts, because other programs of the machine can only make them slower.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
)

// result is the time and the memory that one implementation needs for a kernel.
type result struct {
	ns    float64
	bytes int
}

func main() {
	rounds := flag.Int("rounds", 6, "how often each side runs")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: generation PEER, where PEER is the program to compare with")
	}
	ours, theirs := map[string]result{}, map[string]result{}
	for range *rounds {
		if err := peer(flag.Arg(0), theirs); err != nil {
			log.Fatal(err)
		}
		measure(ours)
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kernel\tpeer µs\tbytes\trayo µs\tbytes\tallocations\tfaster\t")
	row := func(name string, allocations float64) {
		a, b := theirs[name], ours[name]
		fmt.Fprintf(w, "%s\t%.3f\t%d\t%.3f\t%d\t%g\t%.1f×\t\n", name, a.ns/1e3, a.bytes, b.ns/1e3, b.bytes, allocations, a.ns/b.ns)
	}
	var sums [2]float64
	for _, s := range samples.All() {
		row(s.Name, testing.AllocsPerRun(100, build(s)))
		sums[0] += theirs[s.Name].ns
		sums[1] += ours[s.Name].ns
	}
	row("module_emit", 0)
	w.Flush()
	n := float64(len(samples.All())) * 1e9
	fmt.Printf("kernels a second: %.0f and %.0f, %.1f×\n", n/sums[0], n/sums[1], sums[0]/sums[1])
}

// peer runs the other implementation and updates the minima in best.
func peer(name string, best map[string]result) error {
	out, err := exec.Command(name).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var kernel string
		var r result
		if _, err := fmt.Sscan(lines.Text(), &kernel, &r.ns, &r.bytes); err != nil {
			return fmt.Errorf("%s writes %q: %w", name, lines.Text(), err)
		}
		keep(best, kernel, r)
	}
	return nil
}

func keep(best map[string]result, name string, r result) {
	if old, ok := best[name]; !ok || r.ns < old.ns {
		best[name] = r
	}
}

// text is the buffer for all texts. It is in the caches, as in a program that generates
// more than one kernel.
var text []byte

// build returns a function that generates a kernel.
func build(s samples.Sample) func() {
	m := ptx.NewModule(ptx.SM90)
	return func() {
		m.Reset()
		m.Kernel(s.Name, s.Build)
		var err error
		if text, err = m.AppendPTX(text[:0]); err != nil {
			log.Fatal(err)
		}
	}
}

// measure runs this side.
func measure(best map[string]result) {
	for _, s := range samples.All() {
		keep(best, s.Name, result{least(build(s)), len(text)})
	}
	// The text of a kernel that is built already and has no instructions.
	m := ptx.NewModule(ptx.SM70)
	m.Kernel("vector_add", func(k *ptx.Kernel) {
		for _, name := range []string{"a_ptr", "b_ptr", "c_ptr"} {
			ptx.GlobalParam[ptx.F32](k, name)
		}
		ptx.Param[ptx.U32](k, "n")
	})
	ns := least(func() { text, _ = m.AppendPTX(text[:0]) })
	keep(best, "module_emit", result{ns, len(text)})
}

// least returns the nanoseconds of a call, from the fastest of many short runs.
func least(call func()) float64 {
	best := 1e18
	calls := 1
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); {
		start := time.Now()
		for range calls {
			call()
		}
		t := float64(time.Since(start).Nanoseconds())
		if t < 200e3 {
			calls *= 2
			continue
		}
		best = min(best, t/float64(calls))
	}
	return best
}
