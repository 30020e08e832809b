package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != kept+2 {
		t.Fatalf("got\n%s", &b)
	}
	before := 100.0
	for k, line := range lines[:kept] {
		var i int
		var share float64
		if _, err := fmt.Sscanf(line, "component %d: %f%%", &i, &share); err != nil || i != k+1 || share > before || share <= 0 {
			t.Errorf("%q: %v", line, err)
		}
		before = share
	}
	for i, format := range []string{"variance of the pixels %f, of all components %f", "lost by images of 10 components %f, variance of the others %f"} {
		var x, y float64
		if _, err := fmt.Sscanf(lines[kept+i], format, &x, &y); err != nil || math.Abs(x-y) > 1e-4*x || x <= 0 {
			t.Errorf("%q: %v", lines[kept+i], err)
		}
	}
}
