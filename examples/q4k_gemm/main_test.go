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
	const want = `weights: 288 KiB, as float32 2048 KiB
error of the format:     7e-02 of the length
error of the arithmetic: below 1e-05
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
