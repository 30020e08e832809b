package roofline

import (
	"context"
	"errors"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/testutil"
)

func TestMeasureFindsEveryLimit(t *testing.T) {
	testutil.Need(t, "long") // 128 MiB
	for _, threads := range []int{0, 2} {
		r, err := Measure(context.Background(), threads)
		if err != nil {
			t.Fatal(err)
		}
		// Below these a loop does not do what it says, or nothing at all.
		if r.Threads != max(threads, 1) || r.Read < 1e7 || r.Copy < 1e7 || r.FMA < 1e7 || r.FMA > 1e15 {
			t.Errorf("%d threads: %+v", threads, r)
		}
	}
}

func TestMeasureStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Measure(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCopiesCopy(t *testing.T) {
	for _, n := range []int{0, stride, 3 * stride} {
		for i, f := range machine().copy {
			src := make([]float32, n)
			all := make([]float32, n+8+stride) // dst starts on a line
			dst := align(all)[:n]
			for j := range src {
				src[j] = float32(j + 1)
			}
			f(dst, src)
			for j := range dst {
				if dst[j] != src[j] {
					t.Fatalf("copy %d of %d: element %d is %v", i, n, j, dst[j])
				}
			}
			if next := dst[:n+1][n]; next != 0 {
				t.Fatalf("copy %d of %d: wrote beyond its end", i, n)
			}
		}
	}
}

func TestReadsStayInside(t *testing.T) {
	for _, f := range machine().read {
		f(nil)
		f(make([]float32, stride))
	}
}

func TestPartsCoverEverything(t *testing.T) {
	x := make([]float32, 10*stride)
	for threads := 1; threads < 13; threads++ {
		n := 0
		for i := range threads {
			p := part(x, i, threads)
			if len(p)%stride != 0 {
				t.Fatalf("part %d of %d has %d elements", i, threads, len(p))
			}
			n += len(p)
		}
		if n != len(x) {
			t.Errorf("%d threads cover %d of %d", threads, n, len(x))
		}
	}
}

// align returns x from its first element on that lies on 32 bytes.
func align(x []float32) []float32 {
	for uintptr(unsafe.Pointer(&x[0]))%32 != 0 {
		x = x[1:]
	}
	return x
}
