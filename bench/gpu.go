package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// gpuWays are the APIs that have a column, by the names of their benchmarks.
var gpuWays = []string{"CUDA", "WebGPU"}

// gpuCell is the output of one benchmark of gpu.sh: numbers by their units.
type gpuCell map[string]float64

// gpuRun is the output of gpu.sh bench.
type gpuRun struct {
	names []string                      // of cells on the device, in their order
	cells map[string]map[string]gpuCell // by way and name; round trips have names with two slashes
}

var (
	gpuLine  = regexp.MustCompile(`^Benchmark(CUDA|WebGPU)(Resident)?/(\S+?)(?:-\d+)?\s+\d+\s+(.*)`)
	gpuValue = regexp.MustCompile(`([\d.e+]+) (\S+)`)
)

// parseGPU reads the output of gpu.sh bench.
func parseGPU(from io.Reader) (*gpuRun, error) {
	r := &gpuRun{cells: map[string]map[string]gpuCell{}}
	for _, w := range gpuWays {
		r.cells[w] = map[string]gpuCell{}
	}
	s := bufio.NewScanner(from)
	seen := map[string]bool{}
	for s.Scan() {
		m := gpuLine.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		c := gpuCell{}
		for _, v := range gpuValue.FindAllStringSubmatch(m[4], -1) {
			x, err := strconv.ParseFloat(v[1], 64)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", s.Text(), err)
			}
			c[v[2]] = x
		}
		r.cells[m[1]][m[3]] = c
		if m[2] != "" && !seen[m[3]] {
			seen[m[3]] = true
			r.names = append(r.names, m[3])
		}
	}
	if len(r.names) == 0 && s.Err() == nil {
		return nil, fmt.Errorf("the file has no line of a GPU benchmark: pass the output of gpu.sh bench")
	}
	return r, s.Err()
}

func (r *gpuRun) sections() []section {
	return []section{{"gpu", r.deviceTable()}, {"gpu-trips", r.tripsTable()}}
}

// documentGPU rewrites the sections of a document from a file with the output of gpu.sh bench.
func documentGPU(log, document string) error {
	f, err := os.Open(log)
	if err != nil {
		return err
	}
	defer f.Close()
	r, err := parseGPU(f)
	if err != nil {
		return fmt.Errorf("%s: %w", log, err)
	}
	return rewrite([]string{document}, r.sections())
}

// deviceTable has the operations over arrays that stay on the device.
func (r *gpuRun) deviceTable() string {
	var b strings.Builder
	b.WriteString("| on the device | CUDA | ÷ PyTorch | Vulkan | ÷ PyTorch |\n|---|--:|--:|--:|--:|\n")
	for _, name := range r.names {
		fmt.Fprintf(&b, "| %s ", gpuLabel(name))
		for _, w := range gpuWays {
			c := r.cells[w][name]
			ratio := ""
			if x, ok := c["peer/ours"]; ok {
				ratio = factor(x)
			}
			fmt.Fprintf(&b, "| %s | %s ", c.rate(), ratio)
		}
		b.WriteString("|\n")
	}
	return b.String()
}

// gpuLabel is the name of a cell in the table; it omits float32.
func gpuLabel(name string) string {
	words := map[string]string{"f32": "", "f16": "float16", "bf16": "bfloat16", "tf32": "TF32", "matmul_q": "weights in"}
	var list []string
	for _, p := range strings.Split(name, "/") {
		if w, ok := words[p]; ok {
			p = w
		}
		if p != "" {
			list = append(list, strings.ReplaceAll(p, "_", " "))
		}
	}
	return strings.Join(list, " ")
}

// rate returns the speed of a cell.
func (c gpuCell) rate() string {
	if x, ok := c["TFLOP/s"]; ok {
		return digits(x) + " TFLOP/s"
	}
	x, ok := c["GB/s"]
	switch {
	case !ok:
		return ""
	case x >= 1000:
		return digits(x/1000) + " TB/s"
	}
	return digits(x) + " GB/s"
}

// digits returns a number with three digits, or with all digits before the point if there are more.
func digits(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// gpuTrips are the round trips of the table, by the names of their benchmarks.
var gpuTrips = []struct{ name, label string }{
	{"oneshot/relu/4", "relu of 4 elements"},
	{"oneshot/relu/1024", "1,024"},
	{"oneshot/relu/65536", "65,536"},
	{"oneshot/relu/1048576", "1M"},
	{"twenty/kept=false", "20 softmaxes of 4×256 in one batch"},
	{"twenty/kept=true", "the same as a kept plan"},
}

// tripsTable lists the times of calls from slices to slices.
func (r *gpuRun) tripsTable() string {
	var b strings.Builder
	b.WriteString("| slices in, slices out, wall clock | CUDA | Vulkan |\n|---|--:|--:|\n")
	for _, t := range gpuTrips {
		fmt.Fprintf(&b, "| %s ", t.label)
		for _, w := range gpuWays {
			took := ""
			if ns, ok := r.cells[w][t.name]["ns/op"]; ok {
				took = duration(ns)
			}
			fmt.Fprintf(&b, "| %s ", took)
		}
		b.WriteString("|\n")
	}
	return b.String()
}
