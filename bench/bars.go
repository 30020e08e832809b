package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A bar is a performance target and its measured value.
type bar struct {
	promise, measured string
	met               bool
}

func (r *results) barsTable() string {
	bars := r.bars()
	if len(bars) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| promise | measured | met |\n|---|---|---|\n")
	for _, x := range bars {
		met := "**no**"
		if x.met {
			met = "yes"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", x.promise, x.measured, met)
	}
	return b.String()
}

// bars returns every target for which the results have measurements.
func (r *results) bars() []bar {
	var bars []bar
	for _, t := range threadCounts {
		bars = append(bars, r.numpyBars(t)...)
		bars = append(bars, r.torchBar(t)...)
	}
	bars = append(bars, r.seedBars()...)
	for _, t := range threadCounts {
		bars = append(bars, r.matmulBars(t)...)
	}
	return append(bars, r.ownBars()...)
}

func plural(t int) string {
	if t == 1 {
		return "1 thread"
	}
	return fmt.Sprintf("%d threads", t)
}

func arrayCells(threads int) []cell {
	var cs []cell
	for _, op := range arrayOps {
		for _, n := range arraySizes {
			cs = append(cs, cell{Op: op, N: n, Threads: threads})
		}
	}
	return cs
}

func (r *results) numpyBars(threads int) []bar {
	var ratios []float64
	lost := 0
	for _, c := range arrayCells(threads) {
		if m, _, ok := r.ratio(c, "numpy"); ok {
			ratios = append(ratios, m)
			if m < 1 {
				lost++
			}
		}
	}
	if len(ratios) == 0 {
		return nil
	}
	g := geomean(ratios)
	return []bar{
		{fmt.Sprintf("not slower than NumPy in any cell, %s", plural(threads)), fmt.Sprintf("slower in %d of %d; worst %.2f×", lost, len(ratios), slices.Min(ratios)), lost == 0},
		{fmt.Sprintf("2× as fast as NumPy in geometric mean, %s", plural(threads)), fmt.Sprintf("%.2f×", g), g >= 2},
	}
}

func (r *results) torchBar(threads int) []bar {
	won, all := 0, 0
	var ratios []float64
	for _, c := range arrayCells(threads) {
		m, _, ok := r.ratio(c, "torch")
		if !ok {
			continue
		}
		all++
		ratios = append(ratios, m)
		if m >= 1 || m >= 0.97 && r.bothAtRoof(c) {
			won++
		}
	}
	if all == 0 {
		return nil
	}
	return []bar{{
		fmt.Sprintf("not slower than PyTorch in 90%% of the cells, %s; 0.97× counts where both exceed 90%% of the bandwidth", plural(threads)),
		fmt.Sprintf("%d of %d; worst %.2f×, geometric mean %.2f×", won, all, slices.Min(ratios), geomean(ratios)),
		float64(won) >= 0.9*float64(all),
	}}
}

// bothAtRoof reports whether rayo and PyTorch both reach more than 90% of the memory
// bandwidth. This is possible only for arrays that do not fit into a cache.
func (r *results) bothAtRoof(c cell) bool {
	op := "roof-copy"
	if c.Op == "sum" || c.Op == "dot" {
		op = "roof-read"
	}
	roof := r.bandwidth(op, c.Threads)
	return roof > 0 && c.N >= 10_000_000 && c.bytes()/r.of(c, "rayo").median() > 0.9*roof && c.bytes()/r.of(c, "torch").median() > 0.9*roof
}

func (r *results) seedBars() []bar {
	var bars []bar
	if m, _, ok := r.ratio(cell{Op: "tanh", N: 100_000, Threads: 1}, "numpy"); ok {
		bars = append(bars, bar{"tanh of 100K takes no longer than NumPy", fmt.Sprintf("%.2f×", m), m >= 1})
	}
	if m, _, ok := r.ratio(cell{Op: "relu", N: 1_000_000, Threads: 1}, "numpy"); ok {
		bars = append(bars, bar{"relu of 1M takes at most half of NumPy's time", fmt.Sprintf("%.2f×", m), m >= 2})
	}
	return bars
}

func (r *results) matmulBars(threads int) []bar {
	var bars []bar
	worst, worstAt, n := math.Inf(1), "", 0
	low, lowAt := math.Inf(1), ""
	for _, p := range products {
		c := cell{Op: "matmul", M: p[0], K: p[1], N: p[2], Threads: threads}
		ob, _, ok := r.ratio(c, "openblas")
		mk, _, ok2 := r.ratio(c, "mkl")
		if !ok || !ok2 {
			continue
		}
		n++
		if m := min(ob, mk); m < worst {
			worst, worstAt = m, c.size()
		}
		if peak := r.peak(1); threads == 1 && p[0] == p[1] && p[0] >= 512 && peak > 0 {
			if share := c.flops() / r.of(c, "rayo").median() / peak; share < low {
				low, lowAt = share, c.size()
			}
		}
	}
	if n == 0 {
		return nil
	}
	bars = append(bars, bar{fmt.Sprintf("matmul as fast as the best of OpenBLAS and MKL, %s", plural(threads)), fmt.Sprintf("worst %.2f×, at %s", worst, worstAt), worst >= 1})
	if !math.IsInf(low, 1) {
		bars = append(bars, bar{"square products of 512 and more reach 90% of the FMA peak, 1 thread", fmt.Sprintf("least %.0f%%, at %s", 100*low, lowAt), low >= 0.9})
	}
	for _, m := range []int{1, 8} {
		c := cell{Op: "matmul", M: m, K: 4096, N: 4096, Threads: threads}
		roof := r.bandwidth("roof-read", threads)
		if t := r.of(c, "rayo"); t != nil && roof > 0 {
			share := c.bytes() / t.median() / roof
			bars = append(bars, bar{fmt.Sprintf("%s reaches 90%% of the read bandwidth, %s", c.size(), plural(threads)), fmt.Sprintf("%.0f%%", 100*share), share >= 0.9})
		}
	}
	return bars
}

func (r *results) ownBars() []bar {
	var bars []bar
	limit := func(c cell, promise string, ns float64) {
		if t := r.of(c, "rayo"); t != nil {
			bars = append(bars, bar{promise, duration(t.median()), t.median() <= ns})
		}
	}
	limit(cell{Op: "matmul", M: 1000, K: 1000, N: 1000, Threads: 2}, "product of 1000³ under 10 ms, 2 threads", 10e6)
	for _, op := range arrayOps {
		bound, promise := 1e6, op+" of 1M under 1 ms, 1 thread"
		if op == "sum" || op == "dot" {
			bound, promise = 2e6, op+" of 1M under 2 ms, 1 thread"
		}
		limit(cell{Op: op, N: 1_000_000, Threads: 1}, promise, bound)
	}
	for _, t := range threadCounts {
		fused, unfused := r.of(cell{Op: "fused", N: 10_000_000, Threads: t}, "rayo"), r.of(cell{Op: "unfused", N: 10_000_000, Threads: t}, "rayo")
		if fused != nil && unfused != nil {
			gain := unfused.median() / fused.median()
			bars = append(bars, bar{fmt.Sprintf("relu → scale → add over 10M in one batch 1.5× as fast as three calls, %s", plural(t)), fmt.Sprintf("%.2f×", gain), gain >= 1.5})
		}
	}
	limit(cell{Op: "relu", N: 16, Threads: 1}, "relu of 16 elements in 300 ns", 300)
	limit(cell{Op: "record", N: 16, Threads: 1}, "recording an operation in 100 ns", 100)
	limit(cell{Op: "replay", N: 16, Threads: 1}, "replaying a plan of 20 small operations in 3 µs", 3000)
	limit(cell{Op: "compile", N: 100, Threads: 1}, "compiling a graph of 100 operations in 1 ms", 1e6)
	return bars
}

// lossesText lists every cell where a peer was faster, the worst first.
func (r *results) lossesText() string {
	type loss struct {
		c      cell
		server string
		m, q   float64
	}
	var losses []loss
	for _, l := range r.Cells {
		for _, server := range l.Cell.servers()[1:] {
			if m, q, ok := r.ratio(l.Cell, server); ok && m < 1 {
				losses = append(losses, loss{l.Cell, server, m, q})
			}
		}
	}
	if len(r.Cells) == 0 {
		return ""
	}
	if len(losses) == 0 {
		return "In none of the cells measured was a peer faster.\n"
	}
	slices.SortFunc(losses, func(a, b loss) int {
		switch {
		case a.m < b.m:
			return -1
		case a.m > b.m:
			return 1
		}
		return strings.Compare(a.c.key(), b.c.key())
	})
	var b strings.Builder
	b.WriteString("| operation | size | threads | faster | its time ÷ rayo | q25 |\n|---|--:|--:|---|--:|--:|\n")
	for _, l := range losses {
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %.2f | %.2f |\n", l.c.Op, l.c.size(), l.c.Threads, systemName[l.server], l.m, l.q)
	}
	return b.String()
}
