//go:build !js

package devicetest

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"testing"
)

// goal is how fast cells shall be on an H200.
type goal struct {
	cells  string  // a pattern of their names
	copy   float64 // the share of the speed of a copy, or 0
	peer   float64 // PyTorch's time over ours, or 0
	mean   float64 // the geometric mean of that over the cells, or 0
	micros float64 // the most microseconds, or 0
}

var cudaGoals = []goal{
	{cells: `^(relu|tanh|exp|gelu|add|chain of 44)/6\d+M?/`, copy: 0.95},
	{cells: `^(sum|dot|max)/64M/`, copy: 0.9, peer: 1},
	{cells: `^(softmax|layer_norm|rms_norm)/(\d{3,4}|[12]\d{4}|3[0-2]\d{3})/`, copy: 0.9, peer: 1},
	{cells: `^(softmax|layer_norm|rms_norm)/65536/`, copy: 0.8, peer: 1},
	{cells: `^(softmax|layer_norm|rms_norm)/50000/`, peer: 1},
	{cells: `^matmul/.*/f32$`, peer: 0.9, mean: 1},
	{cells: `^matmul/(4096x4096x4096|8192x8192x8192)/(f16|bf16)$`, peer: 0.9},
	{cells: `^matmul/(2048x2048x2048|1000x.*|4097x.*|5000x.*|777x.*)/(f16|bf16)$`, peer: 0.8},
	{cells: `^matmul/(4096x4096x4096|8192x8192x8192)/f32/tf32$`, peer: 0.9},
	{cells: `^matmul/(1000x.*|777x.*)/f32/tf32$`, peer: 0.8},
	{cells: `^attention/`, peer: 0.8},
	{cells: `^matmul_q/(q4_k|q6_k|q8_0)/1x`, copy: 0.85},
	{cells: `^matmul/1000x1000x1000/f32$`, micros: 100},
	{cells: `^(relu|sum)/1M/`, micros: 10},
}

var vulkanGoals = []goal{
	{cells: `^(relu|tanh|exp|gelu|add|chain of 44|mixed chain of 52)/6\d+M?/`, copy: 0.95},
	{cells: `^(sum|dot|max)/64M/`, copy: 0.85},
	{cells: `^(softmax|layer_norm|rms_norm)/(\d{3,4}|1[0-6]\d{3})/`, copy: 0.85},
	{cells: `^(softmax|layer_norm|rms_norm)/([2-6]\d{4})/`, copy: 0.65},
	{cells: `^matmul/(2048x2048x2048|4096x4096x4096|8192x8192x8192)/f32$`, peer: 0.8},
	{cells: `^matmul/(1000x|4095x|777x|8192x64x|3001x|511x).*/f32$`, peer: 0.6},
}

// printGoals prints a line for each goal of each cell, its fields apart by tabs: met or
// missed, the cell, the quantity, the measured value, and the goal. Goals relative to a
// peer are left out where there was no peer.
func printGoals(goals []goal, all []measured) {
	speed := 0.0 // of a copy
	for _, m := range all {
		if m.name == "copy/64M/f32" {
			speed = m.bytes / m.seconds
		}
	}
	line := func(ok bool, cell, what string, is, shall float64) {
		word := map[bool]string{true: "met", false: "missed"}[ok]
		fmt.Printf("goal\t%s\t%s\t%s\t%.3g\t%g\n", word, cell, what, is, shall)
	}
	for _, g := range goals {
		pattern := regexp.MustCompile(g.cells)
		sum, n := 0.0, 0
		for _, m := range all {
			if !pattern.MatchString(m.name) || m.seconds <= 0 {
				continue
			}
			if share := m.bytes / m.seconds / speed; g.copy > 0 && speed > 0 {
				line(share >= g.copy, m.name, "share of copy", share, g.copy)
			}
			if ratio := m.peers / m.seconds; m.peers > 0 {
				if g.peer > 0 {
					line(ratio >= g.peer, m.name, "PyTorch's time / ours", ratio, g.peer)
				}
				sum, n = sum+math.Log(ratio), n+1
			}
			if µs := m.seconds * 1e6; g.micros > 0 {
				line(µs <= g.micros, m.name, "µs", µs, g.micros)
			}
		}
		if mean := math.Exp(sum / float64(n)); g.mean > 0 && n > 0 {
			line(mean >= g.mean, g.cells, "geometric mean", mean, g.mean)
		}
	}
}

// TestGoals shows that each goal is one of some cell.
func TestGoals(t *testing.T) {
	names := []string{"matmul_q/q4_k/1x8192x65536"}
	for _, c := range cells() {
		names = append(names, c.name)
	}
	for _, g := range slices.Concat(vulkanGoals, cudaGoals) {
		if !slices.ContainsFunc(names, regexp.MustCompile(g.cells).MatchString) {
			t.Errorf("no cell is called %s", g.cells)
		}
	}
}
