package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
)

func TestRun(t *testing.T) {
	var b bytes.Buffer
	in := "ann: Hello\nbob: Good day\nann: Again\ncarl: Hi\nann: Once more\n"
	if err := run(t.Context(), strings.NewReader(in), &b, tinymodel.Path(t), llm.Sampling{MaxTokens: 5}); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(b.String()) {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "to "), ":")
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"ann", "ann", "ann", "bob", "carl"}) {
		t.Errorf("%q, want three answers to ann, one to bob and one to carl", b.String())
	}
	if err := run(t.Context(), strings.NewReader("nobody\n"), &b, tinymodel.Path(t), llm.Sampling{}); err == nil {
		t.Error("a line without a name is taken")
	}
}
