//go:build !js

package device_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
)

// TestWithLogger checks that Open logs the device that it opened, and that a nil logger logs nothing.
func TestWithLogger(t *testing.T) {
	for _, enabled := range []bool{true, false} {
		var out bytes.Buffer
		var log *slog.Logger
		if enabled {
			log = slog.New(slog.NewTextHandler(&out, nil))
		}
		dev, err := device.Open(ctx, device.Require(device.CPU), device.WithLogger(log))
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		if got := out.String(); strings.Contains(got, "device opened") != enabled || enabled && !strings.Contains(got, dev.String()) {
			t.Errorf("logger %t: %q", enabled, got)
		}
	}
}
