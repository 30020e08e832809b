package device

import (
	"encoding/binary"
	"io"
	"math"

	"github.com/rayo-go/rayo/internal/fmt"
	"github.com/rayo-go/rayo/op"
)

// ReadFloats reads n little-endian float32 numbers from r into memory of [Alloc]. encoding/binary,
// NumPy's tofile and most file formats write this format.
//
//	x, err := device.ReadFloats(f, 1000*784)
//
// If r has fewer numbers, the error is [io.ErrUnexpectedEOF], and if it has none, [io.EOF]. If n is
// negative or exceeds the address space, the error wraps [ErrShape].
func ReadFloats(r io.Reader, n int) ([]float32, error) {
	if n < 0 || n > math.MaxInt/16 {
		return nil, fmt.Errorf("cannot read %d floats: expected a number from 0 to %d: %w", n, math.MaxInt/16, op.ErrShape)
	}
	const most = 16 << 10 // numbers in one read
	buf := make([]byte, 4*min(n, most))
	var x []float32
	for at := 0; at < n; {
		k := min(n-at, most)
		if _, err := io.ReadFull(r, buf[:4*k]); err != nil {
			if err == io.EOF && at > 0 {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("reading failed after %d of %d floats: %w", at, n, err)
		}
		if x == nil { // allocated only when r has data, because n may be wrong
			if x = Alloc(n); x == nil {
				return nil, fmt.Errorf("no memory for %d floats: %w", n, op.ErrShape)
			}
		}
		for i := range k {
			x[at+i] = math.Float32frombits(binary.LittleEndian.Uint32(buf[4*i:]))
		}
		at += k
	}
	if x == nil {
		x = []float32{}
	}
	return x, nil
}
