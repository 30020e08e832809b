//go:build linux && !nowebgpu

package devicetest

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestWebGPUDrivers opens devices with a missing or broken Vulkan, each time in a new process. Open must return
// the CPU within a second with errors that give the reason, and must write nothing to the standard error.
func TestWebGPUDrivers(t *testing.T) {
	dir := t.TempDir()
	description := func(name, library string) string {
		file := filepath.Join(dir, name+".json")
		text := `{"file_format_version": "1.0.0", "ICD": {"library_path": "` + library + `", "api_version": "1.3.0"}}`
		if library == "" {
			text = "no description\n"
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return file
	}
	empty := filepath.Join(dir, "empty")
	if err := os.Mkdir(empty, 0o777); err != nil {
		t.Fatal(err)
	}
	libraries, _ := filepath.Glob("/usr/lib/*/libm.so.6")
	if len(libraries) == 0 {
		libraries = []string{"libm.so.6"}
	}
	const (
		either  = iota
		present // Vulkan's loader, which reads the description files of drivers
		hidden
	)
	// Names in the order of t.Run are part of the second process's command line.
	for _, c := range []struct {
		name, files string
		loader      int
	}{
		{"nonexistent", "/nonexistent", either},
		{"none", empty, present},
		{"missing library", description("missing", "/nonexistent/libvulkan_rayo.so"), present},
		{"not a driver", description("foreign", libraries[0]), present},
		{"not a description", description("garbage", ""), present},
		{"no loader", "/nonexistent", hidden},
	} {
		t.Run(c.name, func(t *testing.T) {
			var under []string
			switch c.loader {
			case present:
				testutil.Need(t, "vulkan")
			case hidden:
				under = testutil.Hide(t, loaders()...)
			}
			stderr, child := testutil.AgainUnder(t, under, append(testutil.VulkanEnv(c.files), "RAYO_DEVICE=")...)
			if !child {
				if stderr != "" {
					t.Errorf("on the standard error: %s", stderr)
				}
				return
			}
			start := time.Now()
			d, err := device.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			took := time.Since(start)
			if d.Info().Kind == device.WebGPU || took > time.Second {
				t.Errorf("%v opened after %v", d, took)
			}
			start = time.Now()
			_, err = device.Open(t.Context(), device.Require(device.WebGPU))
			if took := time.Since(start); !errors.Is(err, device.ErrNoDevice) || took > time.Second {
				t.Errorf("after %v: %v, want ErrNoDevice", took, err)
			}
			found := d.Info().Kind == device.CUDA // which comes first
			for _, r := range d.Refused() {
				if r.Kind == device.WebGPU {
					found = true
					// The text of Open begins with "no device" and does not repeat it.
					reason := strings.TrimSuffix(r.Err.Error(), ": "+device.ErrNoDevice.Error())
					if err != nil && (reason == "" || !strings.Contains(err.Error(), reason)) {
						t.Errorf("refused for %q, and %q when required", r.Err, err)
					}
				}
			}
			if !found {
				t.Error("nothing says why there is no WebGPU")
			}
			t.Log(err)
		})
	}
}

// loaders returns the paths of Vulkan's loader.
func loaders() (list []string) {
	for _, p := range []string{"/usr/lib/*/libvulkan.so.1", "/usr/lib64/libvulkan.so.1", "/usr/lib/libvulkan.so.1", "/lib/*/libvulkan.so.1"} {
		found, _ := filepath.Glob(p)
		for _, f := range found {
			if f, err := filepath.EvalSymlinks(f); err == nil && !slices.Contains(list, f) {
				list = append(list, f)
			}
		}
	}
	return list
}
