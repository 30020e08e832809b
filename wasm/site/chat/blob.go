//go:build js

package main

import (
	"context"
	"fmt"
	"io"
	"syscall/js"

	"github.com/rayo-go/rayo/wasm/bridge"
)

// blob reads a Blob, which the browser keeps on disk. Only a part of it is in memory at a time.
type blob struct {
	ctx      context.Context
	v        js.Value
	progress js.Value // a function that is called with the number of bytes that were read
	read     int64
}

// maxPart is the largest number of bytes that are copied at once.
const maxPart = 8 << 20

func (b *blob) ReadAt(p []byte, off int64) (int, error) {
	n := 0
	for n < len(p) {
		size := min(len(p)-n, maxPart)
		from := float64(off) + float64(n)
		buffer, err := bridge.Await(b.ctx, b.v.Call("slice", from, from+float64(size)).Call("arrayBuffer"))
		if err != nil {
			return n, fmt.Errorf("reading the model at byte %.0f: %w", from, err)
		}
		got := js.CopyBytesToGo(p[n:n+size], js.Global().Get("Uint8Array").New(buffer))
		n += got
		b.read += int64(got)
		b.progress.Invoke(float64(b.read))
		if got < size {
			return n, io.EOF
		}
	}
	return n, nil
}
