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
	const want = `x / (abs(x) + 1) = [-0.75 -0.5 0 0.5 0.75]
huber [0 0.5 1.5 0 2.5] mean 0.9
softsign of a product [0.5 -0.5 0.8 0.9]
mistake: operation "broken": the result of the function is not a valid number: unsupported
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
