package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	const want = "2 heads, 96 queries and keys: right to 1e-05\n"
	if !strings.HasPrefix(b.String(), want) || !strings.Contains(b.String(), "\non ") {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
