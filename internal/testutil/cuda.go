package testutil

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// cuda looks for what a driver of NVIDIA puts into the file system: its device on
// Linux, its library elsewhere. To load that library would link every test to
// what loads libraries.
func cuda() error {
	places := []string{"/dev/nvidiactl", "/usr/lib/wsl/lib/libcuda.so.1"}
	if runtime.GOOS == "windows" {
		places = []string{filepath.Join(os.Getenv("SystemRoot"), "System32", "nvcuda.dll")}
	}
	for _, p := range places {
		if _, err := os.Stat(p); err == nil {
			return nil
		}
	}
	return errors.New("there is no NVIDIA driver")
}

// cuda2 looks for a second device, where Linux tells.
func cuda2() error {
	if err := cuda(); err != nil || runtime.GOOS != "linux" {
		return err
	}
	_, err := os.Stat("/dev/nvidia1")
	return err
}
