package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
)

// A section is a generated part of a page, between the lines
// <!-- bench:NAME --> and <!-- /bench:NAME -->.
type section struct {
	name string
	text string
}

func (s *section) begin() string { return "<!-- bench:" + s.name + " -->\n" }
func (s *section) end() string   { return "<!-- /bench:" + s.name + " -->" }

func (r *results) sections() []section {
	s := []section{
		{"machine", r.machineText()},
		{"bars", r.barsTable()},
		{"losses", r.lossesText()},
	}
	for _, t := range threadCounts {
		s = append(s, section{fmt.Sprintf("arrays-%d", t), r.arraysTable(t)})
	}
	for _, t := range threadCounts {
		s = append(s, section{fmt.Sprintf("matmul-%d", t), r.matmulTable(t)})
	}
	s = append(s, section{"catalogue", r.catalogueTable()}, section{"axes", r.axesTable(axisCases)}, section{"linalg", r.axesTable(linalgCases)})
	return append(s, section{"own", r.ownTable()}, section{"roofs", r.roofsTable()}, section{"forms", r.formsTable()})
}

// print writes every section that has a result.
func (r *results) print(w io.Writer) {
	for _, s := range r.sections() {
		if s.text != "" {
			fmt.Fprintf(w, "\n-- %s\n%s", s.name, s.text)
		}
	}
}

// document rewrites the sections of BENCHMARKS.md and of measurements/cpu.md, and the plots.
func (r *results) document(docs string) error {
	pages := []string{filepath.Join(docs, "BENCHMARKS.md"), filepath.Join(docs, "measurements", "cpu.md")}
	if err := rewrite(pages, r.sections()); err != nil {
		return err
	}
	return r.plots(filepath.Join(docs, "bench"))
}

// rewrite replaces each section in the file that has its markers.
func rewrite(files []string, sections []section) error {
	texts := make([]string, len(files))
	for i, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		texts[i] = string(data)
	}
	for _, s := range sections {
		i := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, s.begin()) })
		if i < 0 {
			return fmt.Errorf("section %s has no markers in %s", s.name, strings.Join(files, ", "))
		}
		before, rest, _ := strings.Cut(texts[i], s.begin())
		_, after, ok := strings.Cut(rest, s.end())
		if !ok {
			return fmt.Errorf("%s: section %s has no end marker", files[i], s.name)
		}
		texts[i] = before + s.begin() + "\n" + s.text + "\n" + s.end() + after
	}
	for i, file := range files {
		if err := os.WriteFile(file, []byte(texts[i]), 0o666); err != nil {
			return err
		}
	}
	return nil
}

func (r *results) machineText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "- Machine: %s\n- Date: %s, commit %s\n- Command: `%s`\n", r.Machine, r.Date, r.Commit, r.Command)
	var names []string
	for n := range r.Versions {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		fmt.Fprintf(&b, "- %s: %s\n", n, r.Versions[n])
	}
	return b.String()
}

// duration returns nanoseconds with a unit and three digits.
func duration(ns float64) string {
	switch {
	case ns < 999.5:
		return fmt.Sprintf("%.3g ns", ns)
	case ns < 999.5e3:
		return fmt.Sprintf("%.3g µs", ns/1e3)
	}
	return fmt.Sprintf("%.3g ms", ns/1e6)
}

// factor returns the text of a ratio. A loss is bold.
func factor(v float64) string {
	s := fmt.Sprintf("%.2f", v)
	if v >= 99.5 {
		s = fmt.Sprintf("%.0f", v)
	}
	if v < 1 {
		s = "**" + s + "**"
	}
	return s
}

func factors(median, q25 float64, ok bool) string {
	if !ok {
		return "– | –"
	}
	return factor(median) + " | " + factor(q25)
}

// beside returns the columns of the peers in a line of a table: the time, and the ratios of the medians and of the first quartiles.
func (r *results) beside(c cell, peers ...string) string {
	var columns []string
	for _, p := range peers {
		median, q25, ok := r.ratio(c, p)
		columns = append(columns, timeOf(r.of(c, p)), factors(median, q25, ok))
	}
	return strings.Join(columns, " | ")
}

func timeOf(t *times) string {
	if t == nil {
		return "–"
	}
	return duration(t.median())
}

func (r *results) arraysTable(threads int) string {
	var b strings.Builder
	for _, op := range arrayOps {
		for _, n := range arraySizes {
			c := cell{Op: op, N: n, Threads: threads}
			rayo := r.of(c, "rayo")
			if rayo == nil {
				continue
			}
			if b.Len() == 0 {
				b.WriteString("| operation | n | rayo | GB/s | NumPy | ÷ rayo | q25 | PyTorch | ÷ rayo | q25 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %.3g | %s |\n", op, c.size(), timeOf(rayo), c.bytes()/rayo.median(), r.beside(c, "numpy", "torch"))
		}
	}
	return b.String()
}

func (r *results) matmulTable(threads int) string {
	var b strings.Builder
	for _, p := range products {
		c := cell{Op: "matmul", M: p[0], K: p[1], N: p[2], Threads: threads}
		rayo := r.of(c, "rayo")
		if rayo == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| m×k×n | rayo | GFLOP/s | of peak | GB/s | OpenBLAS | ÷ rayo | q25 | MKL | ÷ rayo | q25 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n")
		}
		peak := "–"
		if p := r.peak(threads); p > 0 {
			peak = fmt.Sprintf("%.0f%%", 100*c.flops()/rayo.median()/p)
		}
		fmt.Fprintf(&b, "| %s | %s | %.3g | %s | %.3g | %s |\n", c.size(), timeOf(rayo), c.flops()/rayo.median(), peak, c.bytes()/rayo.median(), r.beside(c, "openblas", "mkl"))
	}
	return b.String()
}

// peak returns the measured GFLOP/s of fused multiply-adds, or 0.
func (r *results) peak(threads int) float64 {
	c := cell{Op: "roof-fma", N: roofs[0].N, Threads: threads}
	if t := r.of(c, "rayo"); t != nil {
		return float64(c.N) * fmaFlops / t.q25()
	}
	return 0
}

// bandwidth returns the measured GB/s of roof-read or roof-copy, or 0.
func (r *results) bandwidth(op string, threads int) float64 {
	for _, c := range roofs {
		if c.Op == op && c.Threads == threads {
			if t := r.of(c, "rayo"); t != nil {
				return c.bytes() / t.q25()
			}
		}
	}
	return 0
}

func (r *results) roofsTable() string {
	var b strings.Builder
	for _, c := range roofs {
		t := r.of(c, "rayo")
		if t == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| limit | threads | measured | by |\n|---|--:|--:|---|\n")
		}
		what, value := "fused multiply-add", fmt.Sprintf("%.0f GFLOP/s", r.peak(c.Threads))
		switch c.Op {
		case "roof-read":
			what = fmt.Sprintf("read of %.0f MB", c.bytes()/1e6)
		case "roof-copy":
			what = fmt.Sprintf("copy of %.0f MB", c.bytes()/2e6)
		}
		if c.Op != "roof-fma" {
			value = fmt.Sprintf("%.1f GB/s", r.bandwidth(c.Op, c.Threads))
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", what, c.Threads, value, t.Form)
	}
	return b.String()
}

var ownNames = map[string]string{
	"fused":   "relu → scale → add over 10M, one batch",
	"unfused": "the same in three calls",
	"relu":    "relu of 16 elements, one call",
	"record":  "recording one operation",
	"replay":  "replaying a plan of 20 operations on 16 elements that do not fuse",
	"compile": "compiling a graph of 100 operations",
}

func (r *results) ownTable() string {
	var b strings.Builder
	for _, c := range ownOps {
		t := r.of(c, "rayo")
		if t == nil {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("| what | threads | median | q25 |\n|---|--:|--:|--:|\n")
		}
		fmt.Fprintf(&b, "| %s | %d | %s | %s |\n", ownNames[c.Op], c.Threads, duration(t.median()), duration(t.q25()))
	}
	return b.String()
}

// formsTable returns a table that shows how each operation was written for each system.
func (r *results) formsTable() string {
	forms := map[[2]string]map[string]bool{}
	for _, l := range r.Cells {
		for server, t := range l.By {
			if server == "rayo" {
				continue
			}
			k := [2]string{l.Cell.Op, server}
			if forms[k] == nil {
				forms[k] = map[string]bool{}
			}
			forms[k][t.Form] = true
		}
	}
	if len(forms) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| operation | system | written as |\n|---|---|---|\n")
	for _, op := range formsOf() {
		for _, server := range []string{"numpy", "torch", "openblas", "mkl"} {
			var names []string
			for f := range forms[[2]string{op, server}] {
				names = append(names, "`"+f+"`")
			}
			if len(names) > 0 {
				sort.Strings(names)
				fmt.Fprintf(&b, "| %s | %s | %s |\n", op, systemName[server], strings.Join(names, " or "))
			}
		}
	}
	return b.String()
}

// formsOf are the operations in the order of the tables.
func formsOf() []string {
	names := measuredElsewhere()
	for _, k := range slices.Concat(axisCases, linalgCases) {
		names = append(names, k.name)
	}
	for _, c := range catalogueCells(names) {
		if c.Threads == threadCounts[0] {
			names = append(names, c.Op)
		}
	}
	return names
}

var systemName = map[string]string{"rayo": "rayo", "numpy": "NumPy", "torch": "PyTorch", "openblas": "OpenBLAS", "mkl": "MKL"}
