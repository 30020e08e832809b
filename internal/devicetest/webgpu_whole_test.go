//go:build cgo && !nowebgpu && (linux || darwin || windows) && (amd64 || arm64) && !android && !ios

package devicetest

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
)

// TestWebGPU runs all tests by wgpu-native on Mesa's lavapipe or, if RAYO_TEST_GPU is set, on the first GPU.
// TestWebGPUSample tests the other pairs of library and driver.
func TestWebGPU(t *testing.T) {
	seed := testutil.Seed(t)
	some := sampled(seed)
	if onGPU {
		runAll(t, webGPU(t, "lavapipe"), 1, seed, some)
		return
	}
	// Compiling takes lavapipe most of the time, on one thread for each device.
	thin := thinned{seed: seed, of: map[family]*choice{}, tally: map[string][2]int{}}
	if testing.Short() {
		some = firstAndSome(seed, 1, 12)
	}
	runAll(t, webGPU(t, "lavapipe"), 2, seed, func(c *Case) bool { return some(c) && thin.keep(c) })
	thin.report(t)
}

// thinned chooses a sample of the kernels of products, convolutions and attention, because
// lavapipe takes a second or two to compile each of them. Each run takes another sample.
// It chooses kernels and not cases, as further cases of a compiled kernel cost little: it
// keeps one of every few consecutive kernels of a family, with all their sizes.
type thinned struct {
	seed  uint64
	of    map[family]*choice
	tally map[string][2]int // cases of an operation and types: kept, seen
}

// family identifies a group of kernels. A sample keeps at least one of each group. bf16 uses the kernels of float32.
type family struct {
	o       *op.Operation
	d       op.DType
	blocks  op.DType // of quantised matrices
	variant bool     // cases of attention with separate kernels
}

// choice is the choice made in a family.
type choice struct {
	*generator
	kept map[string]bool
	left int // number of remaining kernels in the current group; kernel number take of the group is kept
	take int
}

// keep reports whether a case is computed.
func (th *thinned) keep(c *Case) bool {
	of, f, key := 3, family{o: c.Op, d: c.In[0].Type}, ""
	if f.d == op.BF16 {
		f.d = op.F32
	}
	switch c.Op {
	case op.MatMul:
		o, _ := c.Options.(op.MatMulOpts)
		o.TF32 = false // by the same kernels
		key = fmt.Sprint(optionText(o), len(c.In))
	case op.MatMulQ:
		o, _ := c.Options.(op.MatMulQOpts)
		of, f.d, f.blocks = 6, c.In[0].Type, c.In[1].Type
		key = fmt.Sprint(optionText(o), len(c.In))
	case op.Attention:
		key = fmt.Sprint(c.In[0].Shape, c.In[1].Shape)
		if o, _ := c.Options.(op.AttentionOpts); len(c.In) > op.AttentionMask || o.Window != 0 || o.Softcap != 0 || o.FromStart {
			// There are many separate kernels: keep some of each size.
			of, f.variant, key = 9, true, fmt.Sprint(c.In[0].Shape, optionText(o), len(c.In))
		}
	case op.Conv2D:
		o, _ := c.Options.(op.Conv2DOpts)
		key = fmt.Sprint(optionText(o), c.In[0].Shape, c.In[1].Shape, len(c.In))
	default:
		return true
	}
	if testing.Short() {
		of *= 2
	}
	x := th.of[f]
	if x == nil {
		seed := th.seed + uint64(c.Op.ID())<<16 + uint64(f.d)<<8 + uint64(f.blocks)
		x = &choice{generator: newGenerator(seed), kept: map[string]bool{}}
		th.of[f] = x
		x.left = min(of, 3) // there are as many of each family
		if f.blocks != op.InvalidType && !native(f.blocks) {
			x.left = 1 // or one or two
		}
		x.take = x.IntN(x.left) + 1
		if testing.Short() { // a random number of the first types
			x.take = x.left
			if f.blocks != op.InvalidType && x.IntN(3) > 0 {
				x.take = 0 // there are three types of activations for all blocks
			}
		}
	}
	kept, known := x.kept[key]
	if !known {
		if x.left == 0 {
			x.left = of
			x.take = x.IntN(of) + 1
		}
		kept = x.left == x.take
		x.left--
		x.kept[key] = kept
	}
	name := fmt.Sprintf("%v of %v", c.Op, c.In[0].Type)
	if f.blocks != op.InvalidType {
		name += fmt.Sprintf(" and %v", f.blocks)
	}
	n := th.tally[name]
	n[1]++
	if kept {
		n[0]++
	}
	th.tally[name] = n
	return kept
}

// report logs the chosen cases.
func (th *thinned) report(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(th.tally)) {
		n := th.tally[name]
		t.Logf("%s: a sample of %d cases of %d", name, n[0], n[1])
		if n[0] == 0 && !testing.Short() {
			t.Errorf("%s: nothing was computed", name)
		}
	}
}
