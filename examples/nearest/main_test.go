package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(context.Background(), &b, []string{"coffee", "river", "Winter", "anger"}); err != nil {
		t.Fatal(err)
	}
	const want = `coffee tea 0.95 coconut 0.94 avocado 0.93 rose 0.93 radish 0.93 vine 0.91
river creek 0.91 canyon 0.77 hudson 0.75 stream 0.75 pond 0.67 anaconda 0.67
winter summer 0.97 autumn 0.84 holiday 0.76 season 0.71 weekend 0.71 vacation 0.70
anger wrath 0.96 fury 0.96 rage 0.92 frenzy 0.92 embarrassment 0.89 indignation 0.87
`
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

func TestUnknownWord(t *testing.T) {
	if err := run(context.Background(), new(bytes.Buffer), []string{"xyzzy"}); err == nil || !strings.Contains(err.Error(), "xyzzy") {
		t.Errorf("got %v", err)
	}
}
