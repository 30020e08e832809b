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
	const want = `padding 0: right; 4992 passes of shared memory, 3840 of them bank conflicts
padding 8: right; 1344 passes of shared memory, 192 of them bank conflicts
`
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
