package testutil

import (
	"fmt"
	"unsafe"

	"github.com/rayo-go/rayo/internal/dl"
)

// cuda asks the driver whether there is a device.
func cuda() error {
	lib, err := dl.Open("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "nvcuda.dll")
	if err != nil {
		return err
	}
	f := dl.NewFrame()
	for _, name := range []string{"cuInit", "cuDeviceGetCount"} {
		if f.Fn, err = lib.Symbol(name); err != nil {
			return err
		}
		f.Call()
		if code := int32(f.Result); code != 0 {
			return fmt.Errorf("%s answers %d", name, code)
		}
		f.Args[0] = uintptr(unsafe.Pointer(&f.Out[0]))
	}
	if f.Out[0] == 0 {
		return fmt.Errorf("the driver sees no device")
	}
	return nil
}
