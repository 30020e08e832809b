package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rayo-go/rayo/internal/tinymodel"
)

// TestRun asks for a paragraph by its own words: nothing is nearer.
func TestRun(t *testing.T) {
	want := strings.Repeat("Rivers run to the sea. ", 4)
	folder := fstest.MapFS{"a.md": {Data: []byte("# Title\n\n" + strings.Repeat("0123456789", 9) + "\n\n" + want + "\n")}, "b/c.md": {Data: []byte(strings.Repeat("a+b=c ", 20))}, "d.txt": {Data: []byte(want)}}
	var b bytes.Buffer
	if err := run(t.Context(), &b, tinymodel.Path(t), folder, strings.TrimSpace(want)); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), "1.00  Rivers") {
		t.Error(b.String())
	}
	if err := run(t.Context(), &b, tinymodel.Path(t), fstest.MapFS{}, "x"); err == nil {
		t.Error("no files are no error")
	}
}
