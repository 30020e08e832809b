package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
)

// TestBenchInterrupted checks that an interrupted benchmark shows the completed measurements.
func TestBenchInterrupted(t *testing.T) {
	dev, err := device.Open(t.Context(), device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, c := range []benchCmd{{Quick: true}, {Quick: true, JSON: true}} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var cells []cell
		for _, cl := range cellsOf(device.CPU, true) {
			if regexp.MustCompile("^relu 10K$").MatchString(cl.op + " " + cl.size) {
				cells = append(cells, cl)
			}
		}
		cells = append(cells, cells[0], cells[0])
		cells[1].prepare = func(ctx context.Context, d *device.Device) (work, error) {
			cancel()
			return cells[0].prepare(ctx, d)
		}
		var out, errs bytes.Buffer
		a := &app{ctx: ctx, out: &out, err: &errs}
		r, err := c.measure(a, dev, cells)
		if err = c.show(a, r, err); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if c.JSON {
			var back benchReport
			if err := json.Unmarshal(out.Bytes(), &back); err != nil || len(back.Results) != 1 || back.Missing != 2 {
				t.Errorf("%v\n%s", err, out.String())
			}
		} else if s := out.String(); !regexp.MustCompile(`relu +10K`).MatchString(s) || !strings.Contains(s, "2 more were not measured") {
			t.Errorf("%s", s)
		}
		if errs.Len() > 0 {
			t.Errorf("%q", errs.String())
		}
	}
}

// TestInterruptedExit checks the exit status of a command that SIGINT ends: it is that of a program killed by SIGINT.
func TestInterruptedExit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"bench", "--quick", "--only=^relu 10K$"}, &out, &errs); code != 130 || errs.String() != "rayo: interrupted\n" {
		t.Errorf("code %d, %q", code, errs.String())
	}
}
