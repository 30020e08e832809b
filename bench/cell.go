package main

import (
	"fmt"
	"slices"
	"strings"
)

// A cell is one line of a table: an operation, its size and the number of
// threads. It is also the request that a server answers.
type cell struct {
	Op      string `json:"op"`
	N       int    `json:"n"`           // elements; columns of the product for matmul
	M       int    `json:"m,omitempty"` // matmul: rows of the product
	K       int    `json:"k,omitempty"` // matmul: columns of the first matrix
	Threads int    `json:"threads"`
}

const (
	mib     = 1 << 20
	rowSize = 1000 // elements in a row of softmax; a shorter input is one row
)

var (
	arrayOps   = []string{"relu", "tanh", "exp", "sigmoid", "gelu", "add", "dot", "sum", "softmax"}
	arraySizes = []int{100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000}
	products   = [][3]int{ // m, k, n
		{128, 128, 128}, {256, 256, 256}, {512, 512, 512}, {1000, 1000, 1000}, {1024, 1024, 1024}, {2048, 2048, 2048},
		{1, 4096, 4096}, {8, 4096, 4096}, {4096, 8, 4096},
	}
	threadCounts = []int{1, 2}

	// Cells of rayo only: the same work in one batch and in three calls,
	// and the overhead of a call, a recorded operation and a replayed plan.
	ownOps = []cell{
		{Op: "fused", N: 10_000_000, Threads: 1},
		{Op: "fused", N: 10_000_000, Threads: 2},
		{Op: "unfused", N: 10_000_000, Threads: 1},
		{Op: "unfused", N: 10_000_000, Threads: 2},
		{Op: "relu", N: 16, Threads: 1},
		{Op: "record", N: 16, Threads: 1},
		{Op: "replay", N: 16, Threads: 1},
		{Op: "compile", N: 100, Threads: 1},
	}

	// The limits of the machine, measured by loops that do nothing else.
	roofs = []cell{
		{Op: "roof-fma", N: 1 << 20, Threads: 1},
		{Op: "roof-fma", N: 1 << 20, Threads: 2},
		{Op: "roof-read", N: 4096 * 4096, Threads: 1},
		{Op: "roof-read", N: 4096 * 4096, Threads: 2},
		{Op: "roof-copy", N: 10_000_000, Threads: 1},
		{Op: "roof-copy", N: 10_000_000, Threads: 2},
	}
)

// cells returns the cells to measure. An empty list selects everything.
func cells(only []string, sizes []int) []cell {
	wanted := func(c cell, group string) bool {
		first, _, _ := strings.Cut(c.Op, " ") // of the name of a case with axes
		return (len(only) == 0 || slices.Contains(only, first) || slices.Contains(only, group)) &&
			(len(sizes) == 0 || slices.Contains(sizes, c.N) || c.M != 0 && slices.Contains(sizes, c.M) || group == "roofs")
	}
	var all []cell
	add := func(c cell, group string) {
		if wanted(c, group) {
			all = append(all, c)
		}
	}
	for _, c := range roofs {
		add(c, "roofs")
	}
	for _, op := range arrayOps {
		for _, n := range arraySizes {
			for _, t := range threadCounts {
				add(cell{Op: op, N: n, Threads: t}, "arrays")
			}
		}
	}
	for _, p := range products {
		for _, t := range threadCounts {
			add(cell{Op: "matmul", M: p[0], K: p[1], N: p[2], Threads: t}, "matmul")
		}
	}
	for _, c := range catalogueCells(measuredElsewhere()) {
		add(c, "catalogue")
	}
	for _, c := range axisCells(axisCases) {
		add(c, "axes")
	}
	for _, c := range axisCells(linalgCases) {
		add(c, "linalg")
	}
	for _, c := range ownOps {
		add(c, "own")
	}
	return all
}

// key names the cell in files and messages.
func (c cell) key() string { return fmt.Sprintf("%s/%s/t%d", c.Op, c.size(), c.Threads) }

func (c cell) size() string {
	if c.M != 0 {
		if c.M == c.K && c.K == c.N {
			return fmt.Sprintf("%d³", c.N)
		}
		return fmt.Sprintf("%d×%d×%d", c.M, c.K, c.N)
	}
	switch {
	case c.N >= mib && c.N%mib == 0:
		return fmt.Sprintf("%dMi", c.N/mib)
	case c.N >= 1_000_000:
		return fmt.Sprintf("%dM", c.N/1_000_000)
	case c.N >= 1000:
		return fmt.Sprintf("%dK", c.N/1000)
	}
	return fmt.Sprint(c.N)
}

// servers returns the implementations that measure the cell, rayo first.
func (c cell) servers() []string {
	switch {
	case strings.HasPrefix(c.Op, "roof-") || slices.Contains(ownOps, c):
		return []string{"rayo"}
	case c.M != 0:
		return []string{"rayo", "openblas", "mkl"}
	}
	if k := axisCaseOf(c); k != nil {
		names := []string{"rayo", "numpy", "torch"}
		return slices.DeleteFunc(names, func(name string) bool { return name != "rayo" && k.forms(name) == nil })
	}
	if some, ok := peersOf[c.Op]; ok {
		return append([]string{"rayo"}, some...)
	}
	return []string{"rayo", "numpy", "torch"}
}

// flops returns the number of additions and multiplications of a product.
func (c cell) flops() float64 { return 2 * float64(c.M) * float64(c.K) * float64(c.N) }

// bytes returns the minimum number of bytes that the operation reads and writes.
func (c cell) bytes() float64 {
	n := float64(c.N)
	switch c.Op {
	case "matmul":
		m, k := float64(c.M), float64(c.K)
		return 4 * (m*k + k*n + m*n)
	case "sum", "roof-read":
		return 4 * n
	case "add":
		return 12 * n
	}
	return 8 * n
}
