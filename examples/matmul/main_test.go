package main

import (
	"bytes"
	"context"
	"regexp"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^product      \[4 -1 10 -1\]
linear layer \[0 0 5 0\]
512×512×512: loops in Go .*s, .*:\d+ .*s, \d+ GFLOP/s; they differ by at most (0|[1-9]e-(0[5-9]|\d\d))
$`)
	if !want.Match(b.Bytes()) {
		t.Errorf("got\n%s", &b)
	}
}
