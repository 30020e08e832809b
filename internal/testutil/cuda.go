package testutil

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// cuda looks for the files of an NVIDIA driver: its device on Linux, its library
// elsewhere. It does not load the library, because every test would then link the code
// that loads libraries.
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
