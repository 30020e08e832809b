package op

import "github.com/rayo-go/rayo/internal/ir"

// defThreefry makes random bits.
var defThreefry = Operation{define: func() *definition {
	return elementwise(3, "threefry", "random bits: the exclusive or of the two words that Threefry-2x32 with 20 rounds computes from the counter (0, i) and the key (k0, k1)",
		threefry(), of{formula: "x0 ^ x1, where (x0, x1) = threefry2x32(k0, k1, 0, i)", inputs: []string{"k0", "k1", "i"}, types: words,
			special: "The bits are the same on every device, and equal those of JAX's random.bits with jax_threefry_partitionable."})
}}

// words is the rule that every operand is u32.
func words(_ *Attrs, in []DType) ([]DType, error) {
	return same(in, func(d DType) bool { return d == U32 })
}

// The constants of Threefry-2x32: Salmon et al., "Parallel random numbers: as easy
// as 1, 2, 3", 2011.
const (
	threefryRounds = 20
	threefryParity = 0x1BD11BDA
)

var threefryTurns = [8]int{13, 15, 26, 6, 17, 29, 16, 24}

// cipher holds the arithmetic on 32-bit words that Threefry uses. With it one function computes
// Threefry on numbers and on expressions.
type cipher[W any] struct {
	add, xor func(a, b W) W
	rotate   func(a W, n int) W // to the left
	word     func(v uint32) W
}

// threefry enciphers the counter (x, y) by the key (k0, k1).
func (c *cipher[W]) threefry(k0, k1, x, y W) (W, W) {
	key := [3]W{k0, k1, c.xor(c.word(threefryParity), c.xor(k0, k1))}
	x, y = c.add(x, key[0]), c.add(y, key[1])
	for r := range threefryRounds {
		x = c.add(x, y)
		y = c.xor(c.rotate(y, threefryTurns[r%len(threefryTurns)]), x)
		if r%4 == 3 {
			n := r/4 + 1
			x = c.add(x, key[n%3])
			y = c.add(c.add(y, key[(n+1)%3]), c.word(uint32(n)))
		}
	}
	return x, y
}

// ofWords computes with numbers, ofExprs with expressions.
var (
	ofWords = cipher[uint32]{
		add:    func(a, b uint32) uint32 { return a + b },
		xor:    func(a, b uint32) uint32 { return a ^ b },
		rotate: func(a uint32, n int) uint32 { return a<<n | a>>(32-n) },
		word:   func(v uint32) uint32 { return v },
	}
	ofExprs = cipher[Expr]{
		add: Expr.Add,
		xor: func(a, b Expr) Expr { return a.binary(ir.Xor, b) },
		rotate: func(a Expr, n int) Expr {
			return a.binary(ir.Shl, a.like(float64(n))).binary(ir.Or, a.binary(ir.Shr, a.like(float64(32-n))))
		},
		word: func(v uint32) Expr { return Expr{ir.NewConst(float64(v), ir.U32)} },
	}
)

// threefry is the expression of [Threefry].
func threefry() Expr {
	word := func(i int) Expr { return Expr{ir.NewArg(i, ir.U32)} }
	a, b := ofExprs.threefry(word(0), word(1), ofExprs.word(0), word(2))
	return a.binary(ir.Xor, b)
}

// RandomKey is the key of a stream of random numbers: two words, which a batch takes
// as an array of u32 of shape [2]. One key gives one stream. For other numbers, derive
// new keys with [RandomKey.Split] or [RandomKey.FoldIn].
type RandomKey [2]uint32

// Key returns the key of a seed: the upper and the lower word of the seed, as in JAX's
// random.key with 64-bit integers enabled.
func Key(seed uint64) RandomKey { return RandomKey{uint32(seed >> 32), uint32(seed)} }

// Split derives n keys from k, as JAX's random.split does. Do not use k itself after that.
// It returns no keys if n is below 1.
func (k RandomKey) Split(n int) []RandomKey {
	keys := make([]RandomKey, max(n, 0))
	for i := range keys {
		keys[i] = k.at(uint64(i))
	}
	return keys
}

// FoldIn derives a key from k and a number, such as the number of a step or a layer, as JAX's
// random.fold_in does.
func (k RandomKey) FoldIn(n uint32) RandomKey { return k.at(uint64(n)) }

// at enciphers counter i by k.
func (k RandomKey) at(i uint64) RandomKey {
	a, b := ofWords.threefry(k[0], k[1], uint32(i>>32), uint32(i))
	return RandomKey{a, b}
}
