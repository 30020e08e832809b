//go:build js && !nowebgpu

package jshost

import (
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu/hosttest"
)

func TestHost(t *testing.T) { hosttest.Run(t, New, "browser") }
