package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
)

func TestRun(t *testing.T) {
	var b bytes.Buffer
	if err := run(t.Context(), strings.NewReader("Hello\nAgain\n"), &b, tinymodel.Path(t), llm.Sampling{MaxTokens: 5}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Split(b.String(), "\n"); len(lines) != 3 || len(lines[0]) > 5 || len(lines[1]) > 5 {
		t.Errorf("%q, want two answers of at most 5 characters", b.String())
	}
}
