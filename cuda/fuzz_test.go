package cuda

import (
	"errors"
	"testing"
)

// FuzzLoad gives arbitrary bytes to the loader, which must return a module or
// ErrBadImage, and never read beyond the end.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(reluText))
	f.Add(fakeCubin(reluText))
	f.Add([]byte("\x7fELF"))
	f.Add([]byte(".version 99.9\n.target sm_90a"))
	f.Add([]byte("// \x00"))
	k := newFake()
	d, err := k.driver().open(0, WithCubinCache(""))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Close() })
	f.Fuzz(func(t *testing.T, image []byte) {
		// Give the slice no spare capacity: the memory after it may belong to others.
		image = append(make([]byte, 0, len(image)), image...)
		m, err := d.Load(image)
		if err != nil {
			if !errors.Is(err, ErrBadImage) {
				t.Error(err)
			}
			return
		}
		defer m.Close()
		if fn, err := m.Function("relu"); err == nil && fn.Name() != "relu" {
			t.Error("another function")
		}
	})
}

// FuzzCubin changes and truncates a cubin. If the check accepts it, all of its parts must lie within the file.
func FuzzCubin(f *testing.F) {
	f.Add(fakeCubin("text"))
	f.Add(fakeCubin("")[:64])
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := checkCubin(b); err != nil && !errors.Is(err, ErrBadImage) {
			t.Error(err)
		}
		_ = textVersion(b)
		_ = ownTarget(directive(b, ".target"))
	})
}
