//go:build linux

package gguf

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
)

// TestTruncated truncates an open file. Every method that reads the missing part must return an error.
func TestTruncated(t *testing.T) {
	m := &Metadata{}
	infos := []TensorInfo{{"a", block.I8, []int64{1 << 20}}, {"b", block.I8, []int64{1 << 20}}}
	data := map[string][]byte{"a": bytes.Repeat([]byte{1}, 1<<20), "b": bytes.Repeat([]byte{2}, 1<<20)}
	ways := [][]Option{nil}
	if runtime.GOARCH == "amd64" { // elsewhere tests run in qemu, which hides the address of a bus error
		ways = append(ways, []Option{Mapped()})
	}
	for _, opts := range ways {
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, write(t, m, infos, data), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path, opts...)
		if err != nil {
			t.Fatal(err)
		}
		same(t, f, m, infos, data)
		a, b := f.Tensor("a"), f.Tensor("b")
		sum := func(b []byte) error {
			n := 0
			for _, v := range b {
				n += int(v)
			}
			if n != len(b)*int(b[0]) {
				t.Errorf("sum %d", n)
			}
			return nil
		}
		if err := b.View(sum); err != nil {
			t.Error(err)
		}
		if err := os.Truncate(path, 1<<20+64<<10); err != nil {
			t.Fatal(err)
		}
		_, read := b.ReadAt(make([]byte, 1<<20), 0)
		for what, err := range map[string]error{
			"ReadAt":     read,
			"Dequantize": b.Dequantize(make([]float32, 1<<20), 0),
			"Check":      b.Check(),
			"View":       b.View(sum),
		} {
			var e *FormatError
			if what == "Check" && err == nil {
				continue // integers have nothing to check
			}
			if !errors.Is(err, ErrTruncated) || !errors.As(err, &e) || e.File != path {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := a.View(sum); err != nil {
			t.Errorf("what is still there: %v", err)
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Error("another panic in View was swallowed")
				}
			}()
			_ = a.View(func([]byte) error { panic("mine") })
		}()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if _, err := a.Bytes(); !errors.Is(err, ErrClosed) {
			t.Errorf("a view after Close: %v", err)
		}
	}
}
