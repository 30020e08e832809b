package main

import (
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/op"
)

func TestQuantile(t *testing.T) {
	v := []float64{4, 1, 3, 2}
	for _, c := range []struct{ q, want float64 }{{0, 1}, {0.25, 1.75}, {0.5, 2.5}, {1, 4}} {
		if got := quantile(v, c.q); got != c.want {
			t.Errorf("quantile %g of %v is %g, want %g", c.q, v, got, c.want)
		}
	}
}

func TestGeomean(t *testing.T) {
	if got := geomean([]float64{0.5, 8}); math.Abs(got-2) > 1e-12 {
		t.Errorf("geometric mean of 0.5 and 8 is %g", got)
	}
}

// TestVerify checks that verify rejects wrong results: all zeros, and one wrong element.
func TestVerify(t *testing.T) {
	for _, c := range cells([]string{"arrays", "matmul"}, []int{1000, 128, 8}) {
		want, _ := reference(c)
		if err := verify(c, want); err != nil {
			t.Errorf("%s: the reference itself: %v", c.key(), err)
		}
		for i := range want {
			wrong := append([]float64{}, want...)
			wrong[i] += 0.01 * (math.Abs(want[i]) + 1)
			if c.Op == "dot" || c.Op == "sum" {
				wrong[i] = 2*want[i] + 1
			}
			if verify(c, wrong) == nil {
				t.Errorf("%s: verify accepts element %d = %g, expected %g", c.key(), i, wrong[i], want[i])
			}
		}
	}
}

// invented returns results for every cell of a full run.
func invented() *results {
	r := &results{Machine: "a machine", Versions: map[string]string{"Go": "1"}, Cells: map[string]*line{}}
	for _, c := range cells(nil, nil) {
		r.clear(c)
		for i, server := range c.servers() {
			ns := c.bytes() / 10
			if c.M != 0 {
				ns = c.flops() / 100
			}
			r.add(c, server, reply{Ns: []float64{ns * (1 + 0.5*float64(i)), ns * (1.1 + 0.5*float64(i))}, Form: "f(x)"})
		}
	}
	return r
}

func TestDocument(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	docs := t.TempDir()
	if err := os.Mkdir(filepath.Join(docs, "measurements"), 0o777); err != nil {
		t.Fatal(err)
	}
	pages := []string{"BENCHMARKS.md", "measurements/cpu.md"}
	for _, name := range pages {
		page, err := os.ReadFile(filepath.Join(root, "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(docs, name), page, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	written := func() (all string) {
		for _, name := range pages {
			text, err := os.ReadFile(filepath.Join(docs, name))
			if err != nil {
				t.Fatal(err)
			}
			all += string(text)
		}
		return all
	}
	r := invented()
	slow := cell{Op: "tanh", N: 1000, Threads: 1}
	r.Cells[slow.key()].By["numpy"].Ns = []float64{1} // a loss that must show
	if err := r.document(docs); err != nil {
		t.Fatal(err)
	}
	first := written()
	if !strings.Contains(first, "| tanh | 1K | 1 | NumPy |") {
		t.Error("the list of losses lacks the only loss")
	}
	for _, name := range []string{"arrays-1.svg", "arrays-2.svg", "matmul.svg"} {
		if s, err := os.Stat(filepath.Join(docs, "bench", name)); err != nil || s.Size() < 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := r.document(docs); err != nil {
		t.Fatal(err)
	}
	if written() != first {
		t.Error("writing the same results twice gives two documents")
	}
}

// TestDocumentGPU makes the tables of a GPU from lines of gpu.sh.
func TestDocumentGPU(t *testing.T) {
	root, err := findRoot()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log, file := filepath.Join(dir, "log"), filepath.Join(dir, "gpu.md")
	page, err := os.ReadFile(filepath.Join(root, "docs", "measurements", "gpu.md"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, page, 0o666); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]string{
		"PASS\ngoal\tmet\trelu\n": nil,
		`BenchmarkCUDA/oneshot/relu/4-16         	   30753	     12430 ns/op
BenchmarkCUDAResident/relu/64M/f32-16         	       1	      4121 GB/s	       135.1 peer-µs	         0.9500 peer/ours	       130.3 µs
BenchmarkCUDAResident/matmul/1000x1000x1000/f32/tf32-16   	       1	       104.3 TFLOP/s	        19.17 µs
BenchmarkWebGPUResident/relu/64M/f32   	       1	      398.2 GB/s	       134.6 µs
BenchmarkWebGPU/twenty/kept=true 	    3370	    128584 ns/op
`: {"| relu of 4 elements | 12.4 µs |  |", "| relu 64M | 4.12 TB/s | **0.95** | 398 GB/s |  |",
			"| matmul 1000x1000x1000 TF32 | 104 TFLOP/s |  |  |  |", "| the same as a kept plan |  | 129 µs |"},
	} {
		if err := os.WriteFile(log, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := documentGPU(log, file); (err != nil) != (want == nil) {
			t.Errorf("%q: %v", text, err)
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(got), w+"\n") {
				t.Errorf("no line is %s", w)
			}
		}
	}
}

// TestEveryOperationIsCompared checks that each operation of the catalogue has a cell.
func TestEveryOperationIsCompared(t *testing.T) {
	have := map[string]bool{}
	for _, c := range cells(nil, nil) {
		have[c.Op] = true
	}
	for _, o := range op.Catalogue() {
		if !have[o.Name()] {
			t.Errorf("no cell of %v", o)
		}
	}
}

// TestServe sends requests to rayo's server as the driver does.
func TestServe(t *testing.T) {
	in, ask := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(in, out); out.Close() }()
	e, d := json.NewEncoder(ask), json.NewDecoder(answers)
	asked := cells([]string{"relu", "tanh", "softmax", "sum", "matmul", "own"}, []int{16, 100, 128})
	for _, c := range cells([]string{"catalogue"}, nil) {
		if c.Threads == threadCounts[0] {
			asked = append(asked, c)
		}
	}
	for _, c := range cells([]string{"axes", "linalg"}, nil) {
		if c.Threads == threadCounts[0] && !strings.Contains(c.Op, "1000") && !strings.Contains(c.Op, "4096") {
			asked = append(asked, c)
		}
	}
	for _, c := range asked {
		if err := e.Encode(request{cell: c, Samples: 2, Ms: 0.1}); err != nil {
			t.Fatal(err)
		}
		var a reply
		if err := d.Decode(&a); err != nil {
			t.Fatalf("%s: %v; the server: %v", c.key(), err, <-ended)
		}
		if a.Error != "" || len(a.Ns) != 2 || !(a.Ns[0] > 0) {
			t.Errorf("%s: %+v", c.key(), a)
		} else if err := verify(c, a.Check); err != nil {
			t.Error(err)
		}
	}
	ask.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestAgree checks that a result that differs from another system's is rejected, except in sign where signs depend on the algorithm.
func TestAgree(t *testing.T) {
	signed, unsigned, exact := &axisCase{name: "sum"}, &axisCase{name: "qr", unsigned: true}, &axisCase{name: "argsort", exact: true}
	for _, c := range []struct {
		k         *axisCase
		got, want []float64
		ok        bool
	}{
		{signed, []float64{1, 2, 3}, []float64{1, 2.0001, 3}, true},
		{signed, []float64{1, 2, 3}, []float64{1, 2.01, 3}, false},
		{signed, []float64{1, 2, 3}, []float64{1, -2, 3}, false},
		{unsigned, []float64{1, 2, 3}, []float64{1, -2, 3}, true},
		{signed, []float64{1, math.NaN(), 3}, []float64{1, 2, 3}, false},
		{signed, []float64{1, 2}, []float64{1, 2, 3}, false},
		{exact, []float64{1, 500001}, []float64{1, 500000}, false},
		{exact, []float64{1, 500000}, []float64{1, 500000}, true},
	} {
		if err := c.k.agree(c.got, c.want); (err == nil) != c.ok {
			t.Errorf("%v and %v: %v", c.got, c.want, err)
		}
	}
}
