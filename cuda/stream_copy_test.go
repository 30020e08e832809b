package cuda

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestStreamCopies copies between addresses of every alignment and checks that bytes around the target do not change.
func TestStreamCopies(t *testing.T) {
	src, dst := make([]byte, 20_000), make([]byte, 20_000)
	for i := range src {
		src[i] = byte(rand.Uint32())
	}
	for name, f := range map[string]func(dst, src []byte){"out": copyOut, "in": copyIn} {
		for range 400 {
			n := rand.IntN(12_000)
			if rand.IntN(3) == 0 {
				n = streamLeast + rand.IntN(130)
			}
			from, to := rand.IntN(80), 64+rand.IntN(80)
			for i := range dst {
				dst[i] = 0xa5
			}
			f(dst[to:to+n], src[from:from+n])
			if !bytes.Equal(dst[to:to+n], src[from:from+n]) {
				t.Fatalf("%s: %d bytes from %d to %d: not copied", name, n, from, to)
			}
			for i, v := range dst {
				if (i < to || i >= to+n) && v != 0xa5 {
					t.Fatalf("%s: %d bytes to %d: byte %d was written", name, n, to, i)
				}
			}
		}
	}
}
