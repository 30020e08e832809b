package main

import (
	"bytes"
	"context"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	const want = `8 heads of 64, 256 queries and keys: the two agree
scores by parts: 2048 KiB; keys and values: 1024 KiB
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
