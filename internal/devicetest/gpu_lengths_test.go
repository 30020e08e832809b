//go:build !js

package devicetest

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// anyLengths measures operations on rows of lengths, and on arrays of sizes, that no table
// names, as shares of the speed of a copy, each beside PyTorch where RAYO_PEER says how
// to start that. RAYO_TUNE lists the measurements,
//
//	RAYO_TUNE="softmax f32 4711; layer_norm bf16 1000; exp 50000017; random f16 10; flat 3"
//
// where random stands for so many rows of each operation, of 128 to 32K elements of the
// types named, and flat for so many arrays of 32M to 96M, of each of flats.
func anyLengths(b *testing.B, dev *device.Device) {
	testutil.Need(b, "tuning")
	var list []cell
	add := func(name, typ string, cols int) {
		o := op.Lookup(name)
		for _, t := range []op.DType{op.F32, op.F16, op.BF16} {
			if t.String() == typ && o != nil && cols > 0 {
				list = append(list, rowCell(o, t, cols))
				return
			}
		}
		b.Fatalf("RAYO_TUNE has %s %s %d", name, typ, cols)
	}
	for _, line := range strings.Split(os.Getenv("RAYO_TUNE"), ";") {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		n, err := strconv.Atoi(f[len(f)-1])
		if err != nil {
			b.Fatal(err)
		}
		switch {
		case f[0] == "random":
			for _, name := range []string{"softmax", "layer_norm", "rms_norm"} {
				for _, t := range f[1 : len(f)-1] {
					for range n {
						add(name, t, int(128*math.Exp2(8*rand.Float64())))
					}
				}
			}
		case f[0] == "flat":
			for _, name := range slices.Sorted(maps.Keys(flats)) {
				for range n {
					list = append(list, flatCell(name, 32<<20+rand.IntN(64<<20)))
				}
			}
		case flats[strings.Join(f[:len(f)-1], " ")].operands > 0:
			list = append(list, flatCell(strings.Join(f[:len(f)-1], " "), n))
		case len(f) == 3:
			add(f[0], f[1], n)
		default:
			b.Fatalf("RAYO_TUNE has %s", line)
		}
	}
	peer := startPeer(b)
	if peer != nil {
		defer peer.stop()
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	speed := func(c cell) float64 { return c.bytes / secondsOf(b, dev, &c, rnd) }
	copied := speed(copyCell())
	for _, c := range list {
		is := speed(c)
		fmt.Printf("length\t%s\t%.0f%%", c.name, 100*is/copied)
		if peer != nil && c.peer != "" {
			theirs, err := peer.time(&c)
			if err != nil {
				b.Errorf("peer: %v", err)
			}
			fmt.Printf("\t%.2f", theirs/1e6*is/c.bytes)
		}
		fmt.Println()
	}
}
