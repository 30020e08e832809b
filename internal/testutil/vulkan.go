package testutil

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// VulkanDriver returns the description of a Vulkan driver that is software, as
// VK_DRIVER_FILES takes it: "lavapipe" of Mesa, or "swiftshader".
func VulkanDriver(name string) (file string, err error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("only Linux is known to have software drivers of Vulkan")
	}
	if !exists("/usr/lib/*/libvulkan.so.1", "/usr/lib64/libvulkan.so.1", "/usr/lib/libvulkan.so.1") {
		return "", errors.New("there is no libvulkan.so.1 (Debian package libvulkan1)")
	}
	var places []string
	var hint string
	switch name {
	case "lavapipe":
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}[runtime.GOARCH]
		places = []string{"/usr/share/vulkan/icd.d/lvp_icd." + arch + ".json", "/usr/share/vulkan/icd.d/lvp_icd.json"}
		hint = "Debian package mesa-vulkan-drivers"
	case "swiftshader":
		places = []string{"/usr/lib/chromium/vk_swiftshader_icd.json"}
		if dir, err := os.UserCacheDir(); err == nil {
			places = append(places, filepath.Join(dir, "rayo-ci", "swiftshader", "vk_swiftshader_icd.json"))
		}
		hint = "bash .ci/swiftshader.sh"
	default:
		return "", fmt.Errorf("no software driver is called %q", name)
	}
	for _, p := range places {
		if exists(p) {
			return p, nil
		}
	}
	return "", fmt.Errorf("there is no %s (%s)", name, hint)
}

func exists(patterns ...string) bool {
	for _, p := range patterns {
		if found, _ := filepath.Glob(p); len(found) > 0 {
			return true
		}
	}
	return false
}

// vulkan is the probe of a software driver.
func vulkan(name string) func() error {
	return func() error {
		_, err := VulkanDriver(name)
		return err
	}
}

// Vulkan asks for a software driver, "lavapipe" or "swiftshader", as [Need] does,
// and makes it the only one that instances of Vulkan find which this process
// creates until the end of the test. It returns the description of the driver.
func Vulkan(t testing.TB, name string) string {
	t.Helper()
	thing := name
	if name == "lavapipe" {
		thing = "vulkan"
	}
	Need(t, thing)
	file, err := VulkanDriver(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range VulkanEnv(file) {
		key, value, _ := strings.Cut(v, "=")
		t.Setenv(key, value)
	}
	return file
}

// VulkanEnv returns the variables with which Vulkan finds the drivers that files
// describe and no others.
func VulkanEnv(files string) []string {
	return []string{
		"VK_DRIVER_FILES=" + files,
		"VK_ICD_FILENAMES=" + files, // what older loaders call it
		"VK_ADD_DRIVER_FILES=",
		"VK_LOADER_DRIVERS_SELECT=",
		"VK_LOADER_DRIVERS_DISABLE=",
	}
}

// OnGPU reports whether RAYO_TEST_GPU asks for tests of WebGPU on the first GPU there
// is, and not on software.
func OnGPU() bool { return os.Getenv("RAYO_TEST_GPU") != "" }
