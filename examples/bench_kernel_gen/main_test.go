package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/ptx/samples"
)

func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(&b, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, s := range samples.All() {
		if !strings.Contains(b.String(), s.Name+"  ") {
			t.Errorf("%s is missing in\n%s", s.Name, &b)
		}
	}
	if !strings.Contains(b.String(), "kernels a second") {
		t.Errorf("no rate in\n%s", &b)
	}
}
