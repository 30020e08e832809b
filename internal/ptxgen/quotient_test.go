package ptxgen

import (
	"math/rand/v2"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
	"github.com/rayo-go/rayo/ptx"
)

// TestQuotients divides numbers by constants: small ones, those next to powers of two, and random ones. The
// numbers include those next to multiples of each constant.
func TestQuotients(t *testing.T) {
	rnd := rand.New(rand.NewPCG(testutil.Seed(t), 4))
	divisors := []uint32{0, 1<<32 - 1, 641, 6700417}
	for n := range uint32(24) {
		divisors = append(divisors, n+1, rnd.Uint32()>>rnd.IntN(31))
	}
	for s := 5; s < 32; s += 3 {
		divisors = append(divisors, 1<<s-1, 1<<s, 1<<s+1)
	}
	const lanes = 64
	p, err := kernel.New("quotients", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(lanes, 1, 1)
		x, q, r := kernel.Input[kernel.U32](b, "x"), kernel.Output[kernel.U32](b, "q"), kernel.Output[kernel.U32](b, "r")
		for k, n := range divisors {
			i := b.LocalX().Add(kernel.U(uint32(k * lanes)))
			q.Set(i, x.At(i).Div(kernel.U(n)))
			r.Set(i, x.At(i).Mod(kernel.U(n)))
		}
	}).Program()
	if err != nil {
		t.Fatal(err)
	}
	x := wordArray(lanes * len(divisors))
	for i := range x {
		n := divisors[i/lanes]
		x[i] = n*(rnd.Uint32()>>rnd.IntN(31)) + uint32(rnd.IntN(3)) - 1
		if i%lanes < 4 {
			x[i] = []uint32{0, n - 1, 1<<32 - 1, 1 << 31}[i%lanes]
		}
	}
	_, got, _ := emulate(t, ptx.SM80, Options{}, p, [3]uint32{1, 1, 1}, [][]uint32{x, wordArray(len(x)), wordArray(len(x))}, nil)
	for i, v := range x {
		n := divisors[i/lanes]
		q, r := v, uint32(0)
		if n > 0 {
			q, r = v/n, v%n
		}
		if got[1][i] != q || got[2][i] != r {
			t.Errorf("%d / %d is %d, remainder %d", v, n, got[1][i], got[2][i])
		}
	}
}
