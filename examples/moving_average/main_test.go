package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var in, out bytes.Buffer
	if err := signal(&in, 4*block); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), &out, &in); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4 {
		t.Fatalf("got\n%s", &out)
	}
	for k, line := range lines {
		var i int
		var was, is float64
		if _, err := fmt.Sscanf(line, "block %d: steps of %f became %f", &i, &was, &is); err != nil || i != k || is > was/2 {
			t.Errorf("%q: %v", line, err)
		}
	}
}

// TestCutStream has a block that is not whole be an error.
func TestCutStream(t *testing.T) {
	var in bytes.Buffer
	if err := signal(&in, block+7); err != nil {
		t.Fatal(err)
	}
	if err := run(context.Background(), io.Discard, &in); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}
