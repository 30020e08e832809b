package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/cuda"
)

func TestOutput(t *testing.T) {
	want := "driver "
	if m, err := cuda.OpenMonitor(); errors.Is(err, cuda.ErrNoMonitor) {
		want = "nothing to monitor: no NVIDIA management library\n"
	} else if err == nil {
		m.Close()
	}
	var b bytes.Buffer
	if err := run(context.Background(), &b, 2, time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), want) {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}
