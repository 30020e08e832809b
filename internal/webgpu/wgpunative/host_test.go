//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package wgpunative

import (
	"context"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

var ctx = context.Background()

// driver is the driver for tests that need only one.
const driver = "lavapipe"

func TestHost(t *testing.T) { hosttest.Run(t, New, driver, "swiftshader") }

func TestNoDriver(t *testing.T) { hosttest.NoDriver(t, New) }

func TestQuiet(t *testing.T) { hosttest.Quiet(t, New, driver) }
