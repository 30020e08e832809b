package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var right, all int
	if _, err := fmt.Sscanf(lines[len(lines)-1], "%d of %d images", &right, &all); err != nil || len(lines) != groups+1 || all != 397 || right < 220 {
		t.Errorf("got\n%s", &b)
	}
}
