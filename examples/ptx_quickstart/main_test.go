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
	for _, part := range []string{".entry saxpy(", "\tfma.rn.f32 %f3, %f0, %f1, %f2;\n", "saxpy [1 3 5 7] ... 199\n", "reverse has a race at ptx_quickstart/main.go:", ", with ptx_quickstart/main.go:"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("%q is missing in\n%s", part, &b)
		}
	}
}
