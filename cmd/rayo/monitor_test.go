package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/cuda"
)

func TestMonitorShowsReadings(t *testing.T) {
	samples := []cuda.Sample{
		{Name: "Fake H0", PCI: "0000:1b:00.0", Utilization: 50, MemoryUsed: 12 << 30, MemoryTotal: 48 << 30, Power: 123.44, PowerLimit: 700,
			Clock: 1980, ClockMax: cuda.Unknown, Temperature: 41, PCIeReceived: 2.5e9, PCIeSent: cuda.Unknown, Slowed: []string{"power limit"}},
		{Index: 1, Name: "Fake H1", Utilization: cuda.Unknown, MemoryUsed: cuda.Unknown, MemoryTotal: cuda.Unknown, Power: cuda.Unknown,
			PowerLimit: cuda.Unknown, Clock: cuda.Unknown, Temperature: cuda.Unknown, PCIeReceived: cuda.Unknown},
	}
	read := func() ([]cuda.Sample, error) { return samples, nil }
	var out bytes.Buffer
	a := &app{ctx: context.Background(), out: &out, err: &out}
	if err := (&monitorCmd{Once: true}).watch(a, "580.1", read, true); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"driver 580.1", "Fake H0", "0000:1b:00.0", "50 %", "12.0 of 48.0 GiB", "123.4 of 700.0 W", "1980 MHz", "41 °C", "2500 MB/s in, unknown out",
		"power limit", strings.Repeat("█", 15) + strings.Repeat("·", 15), "Fake H1", "unknown"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
	if strings.Contains(out.String(), "\x1b") || strings.Contains(out.String(), "NaN") {
		t.Errorf("--once writes\n%q", out.String())
	}

	out.Reset()
	if err := (&monitorCmd{Once: true, JSON: true}).watch(a, "580.1", read, false); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Driver  string
		Devices []map[string]any
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || got.Driver != "580.1" || len(got.Devices) != 2 ||
		got.Devices[0]["power_watts"] != 123.44 || got.Devices[1]["power_watts"] != nil {
		t.Errorf("JSON: %v\n%s", err, out.String())
	}
}

func TestMonitorEnds(t *testing.T) {
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	readings := 0
	read := func() ([]cuda.Sample, error) {
		if readings++; readings == 2 {
			cancel()
		}
		return nil, nil
	}
	if err := (&monitorCmd{Interval: time.Nanosecond}).watch(&app{ctx: ctx, out: &out, err: &out}, "", read, false); !errors.Is(err, context.Canceled) || readings != 2 {
		t.Errorf("after %d readings: %v", readings, err)
	}
	wrong := errors.New("gone")
	if err := (&monitorCmd{}).watch(&app{ctx: context.Background(), out: &out, err: &out}, "", func() ([]cuda.Sample, error) { return nil, wrong }, false); err != wrong {
		t.Errorf("a reading that fails: %v", err)
	}
	code, _, stderr := rayo(t, "monitor", "--once")
	if _, err := cuda.OpenMonitor(); err != nil && (code != exitFail || !strings.Contains(stderr, "management library")) {
		t.Errorf("without the library: exit %d, %q", code, stderr)
	}
}
