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
	for _, want := range []string{
		"executed [2 4 0 8]\n",
		"square+add+sqrt ",
		"replayed [3 3 3 3]\nreplayed [5 5 5 5]\nreplayed [40.112343",
		"stored   [44 44 44 44]\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
}
