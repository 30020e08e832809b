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
	if !strings.HasPrefix(b.String(), "375 of 397 right (94.5%)\n\nthe first one, read as ") || strings.Count(b.String(), "\n") != 21 {
		t.Errorf("got\n%s", &b)
	}
}
