package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/rayo-go/rayo/internal/tinymodel"
)

// TestRun has a model of random weights fill in the form.
func TestRun(t *testing.T) {
	var b bytes.Buffer
	if err := run(t.Context(), &b, tinymodel.Path(t), "A."); err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`(?s)^.*, born \d+ in .*\n$`).MatchString(b.String()) {
		t.Errorf("%q", b.String())
	}
}
