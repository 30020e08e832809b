//go:build !nowebgpu && !js

package devicetest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
)

// firstIn is the environment variable that tells a process to open a device and to print the time that it took.
const firstIn = "RAYO_BENCH_FIRST"

// BenchmarkWebGPUFirst measures the time from Open to the first result, each time in a new process. If
// RAYO_VULKAN_START names the program compiled from bench/peers/vulkan.c, that program runs in turn. The metric
// beyond is the difference of the two times: the part of rayo, without the part of the driver.
func BenchmarkWebGPUFirst(b *testing.B) {
	open := webGPU(b, "lavapipe")
	if os.Getenv(firstIn) != "" {
		start := time.Now()
		dev := open(b)
		defer dev.Close()
		y := device.Alloc(4)
		if err := dev.Relu(context.Background(), y, []float32{-1, 2, -3, 4}); err != nil {
			b.Fatal(err)
		}
		took := time.Since(start)
		if !slices.Equal(y, []float32{0, 2, 0, 4}) {
			b.Fatal(y)
		}
		_, _ = os.Stdout.WriteString("first " + strconv.FormatFloat(took.Seconds()*1e3, 'f', 1, 64) + "\n")
		return
	}
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var ours, starts, beyond []float64
	for b.Loop() {
		c := exec.Command(self, "-test.run", "^$", "-test.bench", "^BenchmarkWebGPUFirst$", "-test.benchtime", "1x")
		c.Env = append(os.Environ(), firstIn+"=1")
		ms := printed(b, c, "first ")
		ours = append(ours, ms[0])
		if start := os.Getenv("RAYO_VULKAN_START"); start != "" {
			driver := 0.0
			for _, v := range printed(b, exec.Command(start), "") {
				driver += v
			}
			starts, beyond = append(starts, driver), append(beyond, ms[0]-driver)
		}
	}
	b.ReportMetric(0, "ns/op")
	for name, of := range map[string][]float64{"first": ours, "driver": starts, "beyond": beyond} {
		if len(of) > 0 {
			slices.Sort(of)
			b.ReportMetric(of[len(of)/2], name+"-ms")
			b.ReportMetric(of[len(of)-1], name+"-most-ms")
		}
	}
}

// printed runs a program and returns the numbers after prefix in the first line of output
// that begins with prefix.
func printed(b *testing.B, c *exec.Cmd, prefix string) (all []float64) {
	b.Helper()
	out, err := c.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		rest, ok := strings.CutPrefix(line, prefix)
		if !ok || err != nil {
			continue
		}
		for _, f := range strings.Fields(rest) {
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				b.Fatalf("%s", out)
			}
			all = append(all, v)
		}
		return all
	}
	b.Fatalf("%v: %s", err, out)
	return nil
}
