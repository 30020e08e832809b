// Command bench_kernel_gen measures how long it takes to write kernels: from
// calls of Go to the text that the driver gets.
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/samples"
)

func main() {
	if err := run(os.Stdout, 50*time.Millisecond); err != nil {
		log.Fatal(err)
	}
}

// run measures each sample for so long.
func run(out io.Writer, long time.Duration) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "kernel\tinstructions\tbytes\tµs\tns an instruction\tallocations\t")
	total, kernels := time.Duration(0), 0
	for _, s := range samples.All() {
		// A module that is used again keeps its memory, and so does the text.
		m := ptx.NewModule(ptx.SM90)
		var text []byte
		n := 0
		build := func() {
			m.Reset()
			n = m.Kernel(s.Name, s.Build).Instructions()
			text, _ = m.AppendPTX(text[:0])
		}
		build()
		if err := m.Err(); err != nil {
			return err
		}
		took := best(long, build)
		fmt.Fprintf(w, "%s\t%d\t%d\t%.2f\t%.1f\t%g\t\n", s.Name, n, len(text), float64(took)/1e3, float64(took)/float64(n), testing.AllocsPerRun(10, build))
		total += took
		kernels++
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%.0f kernels a second, on one core\n", float64(kernels)/total.Seconds())
	return err
}

// best returns the time of one call: the least of many runs of some.
func best(long time.Duration, call func()) time.Duration {
	least := time.Duration(1<<63 - 1)
	for end := time.Now().Add(long); time.Now().Before(end); {
		const calls = 20
		start := time.Now()
		for range calls {
			call()
		}
		least = min(least, time.Since(start)/calls)
	}
	return least
}
