package engine

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/op"
)

// TestTemporariesThatLiveTogetherDoNotOverlap plans random programs and runs
// them over a pretended arena in which every byte knows its owner.
func TestTemporariesThatLiveTogetherDoNotOverlap(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := &driver.Program{}
		p.Slots = append(p.Slots, driver.Slot{Ext: 0, Bytes: 64})
		for range 2 + r.IntN(30) {
			n := 1 + r.IntN(2000)
			p.Slots = append(p.Slots, driver.Slot{Ext: -1, Bytes: int64(4 * n)})
			out := driver.Operand{Slot: len(p.Slots) - 1, Type: op.F32, N: n}
			f := &driver.Fused{}
			for range 1 + r.IntN(3) {
				in := r.IntN(len(p.Slots) - 1)
				o := driver.Operand{Slot: in, Type: op.F32, N: int(p.Slots[in].Bytes / 4)}
				if o.N != n {
					o.Spread = op.Periodic
				}
				f.In = append(f.In, o)
			}
			p.Steps = append(p.Steps, driver.Step{Post: f, Out: []driver.Operand{out}})
		}
		unshared := placeTemporaries(p)
		if p.Arena > unshared {
			t.Fatalf("seed %d: arena %d is larger than the %d without sharing", seed, p.Arena, unshared)
		}
		owner := make([]int, p.Arena/4)
		for i, s := range p.Steps {
			for _, in := range s.Post.In {
				slot := &p.Slots[in.Slot]
				for w := slot.Off / 4; slot.Ext < 0 && w < (slot.Off+slot.Bytes)/4; w++ {
					if owner[w] != in.Slot {
						t.Fatalf("seed %d step %d: slot %d was overwritten by %d before its last use", seed, i, in.Slot, owner[w])
					}
				}
			}
			out := &p.Slots[s.Out[0].Slot]
			if out.Off%arenaAlign != 0 || out.Off+out.Bytes > p.Arena {
				t.Fatalf("seed %d: slot at %d of %d bytes in an arena of %d", seed, out.Off, out.Bytes, p.Arena)
			}
			for w := out.Off / 4; w < (out.Off+out.Bytes)/4; w++ {
				owner[w] = s.Out[0].Slot
			}
		}
	}
}

func TestChainRunsInPlace(t *testing.T) {
	p := &driver.Program{Slots: []driver.Slot{{Ext: 0, Bytes: 4000}}}
	for i := range 20 {
		p.Slots = append(p.Slots, driver.Slot{Ext: -1, Bytes: 4000})
		p.Steps = append(p.Steps, driver.Step{
			Post: &driver.Fused{In: []driver.Operand{{Slot: i, Type: op.F32, N: 1000}}},
			Out:  []driver.Operand{{Slot: i + 1, Type: op.F32, N: 1000}},
		})
	}
	placeTemporaries(p)
	if p.Arena != 4096 {
		t.Errorf("a chain of 20 takes %d bytes, want one buffer", p.Arena)
	}
}
