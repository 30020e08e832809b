//go:build !js

package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestNumbers: the speeds in README.md equal the measurements in BENCHMARKS.md.
func TestNumbers(t *testing.T) {
	page, err := os.ReadFile("BENCHMARKS.md")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	number := func(pattern string) float64 {
		m := regexp.MustCompile(`(?m)^\| ` + pattern).FindSubmatch(page)
		if m == nil {
			t.Fatalf("no line has %s", pattern)
		}
		v, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var numpy, pytorch, blas []string
	for _, threads := range []string{"1 thread", "2 threads"} {
		numpy = append(numpy, fmt.Sprintf("%.1f (%.2f)", number("2× as fast as NumPy in geometric mean, "+threads+` \| ([\d.]+)×`),
			number("not slower than NumPy in any cell, "+threads+` .*; worst ([\d.]+)×`)))
		torch := "not slower than PyTorch in 90% of the cells, " + threads
		pytorch = append(pytorch, fmt.Sprintf("%.1f (%.2f)", number(torch+`;.*geometric mean ([\d.]+)×`), number(torch+`;.*of \d+; worst ([\d.]+)×`)))
		blas = append(blas, fmt.Sprintf("%.2f", number("matmul as fast as the best of OpenBLAS and MKL, "+threads+` \| worst ([\d.]+)×`)))
	}
	for _, row := range [][]string{numpy, pytorch, blas} {
		if want := "| " + strings.Join(row, " | ") + " |"; !strings.Contains(string(readme), want) {
			t.Errorf("README.md does not have %s", want)
		}
	}
}
