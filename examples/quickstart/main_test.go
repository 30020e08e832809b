package main

import (
	"bytes"
	"context"
	"testing"
)

func TestOutput(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu") // the last line names the device
	var b bytes.Buffer
	if err := run(context.Background(), &b); err != nil {
		t.Fatal(err)
	}
	const want = `relu    [1 2 0 4]
dot     21
softmax [0.090 0.245 0.665 0.333 0.333 0.333]
tanh    [0.762 0.964 -0.995 0.999]
mistake add [4]x[2] on cpu:0: the result has 4 elements; all slices must have the same length: shape mismatch
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
