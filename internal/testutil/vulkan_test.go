package testutil

import (
	"os"
	"strings"
	"testing"
)

func TestVulkanDriver(t *testing.T) {
	for _, name := range []string{"lavapipe", "swiftshader"} {
		t.Run(name, func(t *testing.T) {
			file := Vulkan(t, name)
			if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "library_path") {
				t.Errorf("%s: %q, %v", file, text, err)
			}
			if got := os.Getenv("VK_DRIVER_FILES"); got != file {
				t.Errorf("VK_DRIVER_FILES is %q, want %q", got, file)
			}
		})
	}
	if file, err := VulkanDriver("abacus"); err == nil {
		t.Errorf("there is a driver %s of an abacus", file)
	}
}
