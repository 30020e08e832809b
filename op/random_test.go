package op

import (
	"slices"
	"testing"
)

// TestThreefryKnownAnswers compares with the vectors of Random123.
func TestThreefryKnownAnswers(t *testing.T) {
	const all = 1<<32 - 1
	for _, c := range [][6]uint32{
		{0, 0, 0, 0, 0x6b200159, 0x99ba4efe},
		{all, all, all, all, 0x1cb996fc, 0xbb002be7},
		{0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3, 0xc4923a9c, 0x483df7a0},
	} {
		if x, y := ofWords.threefry(c[0], c[1], c[2], c[3]); x != c[4] || y != c[5] {
			t.Errorf("key %x, counter %x: %x %x", c[:2], c[2:4], x, y)
		}
	}
}

// TestRandomKeys compares with jax.random.
func TestRandomKeys(t *testing.T) {
	var g struct {
		Cases []struct {
			Seed    int64
			Key     []uint32
			Split   []uint32
			Fold_in [][]uint32
		}
	}
	readGolden(t, "random.json", &g)
	for _, c := range g.Cases {
		k := RandomKey(c.Key)
		if s := Key(uint64(uint32(c.Seed))); s != k {
			t.Errorf("seed %d: key %v, not %v", c.Seed, s, k)
		}
		var split []uint32
		for _, s := range k.Split(3) {
			split = append(split, s[:]...)
		}
		if !slices.Equal(split, c.Split) {
			t.Errorf("seed %d: split into %v, not %v", c.Seed, split, c.Split)
		}
		for i, n := range []uint32{0, 1, 12345, 1<<32 - 1} {
			if f := k.FoldIn(n); !slices.Equal(f[:], c.Fold_in[i]) {
				t.Errorf("seed %d: fold_in(%d) is %v, not %v", c.Seed, n, f, c.Fold_in[i])
			}
		}
	}
	if len(g.Cases) < 6 {
		t.Errorf("%d cases", len(g.Cases))
	}
	if k := Key(1<<40 | 7); k != (RandomKey{1 << 8, 7}) || k.Split(-1) == nil || len(k.Split(-1)) > 0 {
		t.Errorf("key %v, split into %v", k, k.Split(-1))
	}
}
