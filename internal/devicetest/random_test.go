package devicetest

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// TestRandom compares random numbers with those of JAX.
func TestRandom(t *testing.T) { random(t, cpu(0)) }

// TestRandomPortable is TestRandom of the portable kernels.
func TestRandomPortable(t *testing.T) { random(t, openPortable) }

// random compares random numbers with those of JAX in op/testdata/random.json. Bits, uniform numbers and truth values
// must be equal, and normal numbers within a few units in the last place. It also checks that one plan serves
// several seeds.
func random(t *testing.T, open Open) {
	raw, err := os.ReadFile("../../op/testdata/random.json")
	if err != nil {
		t.Fatal(err)
	}
	var g struct {
		Cases []struct {
			Shape                 []int
			Key                   []uint32
			Bits, Uniform, Normal []uint32
			Bernoulli             []uint32
		}
	}
	if err := json.Unmarshal(raw, &g); err != nil || len(g.Cases) == 0 {
		t.Fatal(len(g.Cases), err)
	}
	dev := start(t, open)
	for _, c := range g.Cases {
		b := batch.New(dev)
		key := batch.Upload(b, make([]uint32, 2))
		n := len(c.Bits)
		values := []batch.Value{b.RandomBits(key, c.Shape...), b.Uniform(key, c.Shape...), b.Normal(key, c.Shape...), b.Cast(b.Bernoulli(key, 0.3, c.Shape...), op.U32)}
		plan, err := b.Compile(t.Context(), values...)
		if err != nil {
			t.Fatal(err)
		}
		for _, seed := range [][]uint32{{7, 9}, c.Key} {
			bits, truth, uniform, normal := make([]uint32, n), make([]uint32, n), make([]float32, n), make([]float32, n)
			if err := plan.Run(t.Context(), batch.BindInput(key, seed), batch.BindOutput(values[0], bits), batch.BindOutput(values[1], uniform), batch.BindOutput(values[2], normal), batch.BindOutput(values[3], truth)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(seed, c.Key) {
				if slices.Equal(bits, c.Bits) {
					t.Errorf("key %v: the bits of key %v", seed, c.Key)
				}
				continue
			}
			for i := range n {
				want := float64(math.Float32frombits(c.Normal[i]))
				near := math.Abs(float64(normal[i])-want) <= 12*0x1p-23*math.Abs(want)
				if bits[i] != c.Bits[i] || math.Float32bits(uniform[i]) != c.Uniform[i] || truth[i] != c.Bernoulli[i] || !near {
					t.Fatalf("key %v, %v, element %d: %x %v %v %v, not %x %v %v %v", seed, c.Shape, i, bits[i], uniform[i], normal[i], truth[i],
						c.Bits[i], math.Float32frombits(c.Uniform[i]), want, c.Bernoulli[i])
				}
			}
		}
		if err := plan.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
