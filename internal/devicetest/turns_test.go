package devicetest

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/rayo-go/rayo/kernel"
)

// TestTurns compares upper bounds of loop iterations, computed before a launch, with the iterations of the launch. Each
// execution of a loop counts one more iteration than its body runs.
func TestTurns(t *testing.T) {
	type params struct{ N, M uint32 }
	u := kernel.U
	const unknown = math.MaxUint32
	for _, c := range []struct {
		name          string
		n, m          uint32
		most, sampled uint64
		build         func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32))
	}{
		{"none", 7, 0, 0, 0, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) { body(n) }},
		{"one", 7, 0, 8, 8, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), n, body)
		}},
		{"no turn", 7, 9, 1, 1, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(m, n, body)
		}},
		{"two", 7, 5, 14, 14, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), n, body)
			b.For(u(0), m, body)
		}},
		{"nested", 7, 5, 8 + 7*6, 8 + 7*6, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), n, func(i kernel.U32) { b.For(u(0), m, body) })
		}},
		{"lanes", 1000, 0, 17, 17, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.ForStep(b.Lane(), n, u(64), body)
		}},
		{"blocks", 1000, 0, 10 + 1 + 10*(100+1), 10 + 1 + 10*(100+1), func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.ForStep(u(0), n, u(100), func(from kernel.U32) { b.For(from, from.Add(u(100)).Min(n), body) })
		}},
		{"rest", 1000, 0, 10 + 1 + 10*(100+1), 10 + 1 + 10*(100+1), func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.ForStep(u(0), n, u(100), func(from kernel.U32) { b.For(u(0), u(100).Min(n.Sub(from)), body) })
		}},
		{"both branches", 7, 5, 14, 14, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.If(b.Lane().Lt(u(3)), func() { b.For(u(0), n, body) }).Else(func() { b.For(u(0), m, body) })
		}},
		{"the branch that is taken", 7, 5, 8, 8, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.If(m.Lt(n), func() { b.For(u(0), n, body) }).Else(func() { b.For(u(0), m, body) })
		}},
		{"length", 0, 0, 301, 301, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), x.Len(), body)
		}},
		{"memory", 7, 0, unknown, unknown, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), x.At(n), body)
		}},
		{"remainder of memory", 7, 0, 7, 7, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.For(u(0), x.At(n).Mod(n), body)
		}},
		{"while", 7, 0, unknown, unknown, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			b.While(func() kernel.Bool { return x.At(n).Lt(n) }, func() { body(n) })
		}},
		{"parts of workgroups", 100_000, 64, 25_001, 26, func(b *kernel.Builder, n, m kernel.U32, x kernel.Buffer[kernel.U32], body func(kernel.U32)) {
			from := b.Group().Mul(u(100)) // of 1000 workgroups
			b.ForStep(from.Shr(u(2)).Add(b.Lane().Mul(u(0))), from.Add(u(100)).Shr(u(2)), u(1), body)
		}},
	} {
		k := kernel.New("turns", func(b *kernel.Builder, p *params) {
			b.LocalSize(64, 1, 1)
			x := kernel.Input[kernel.U32](b, "x")
			y := kernel.Output[kernel.U32](b, "y")
			c.build(b, b.U32(&p.N), b.U32(&p.M), x, func(i kernel.U32) { y.Set(b.Lane(), i) })
			y.Set(b.Lane(), u(1))
		})
		prog, err := k.Program()
		if err != nil {
			t.Fatal(err)
		}
		block := binary.NativeEndian.AppendUint32(binary.NativeEndian.AppendUint32(nil, c.n), c.m)
		l := launch{Grid: [3]uint32{1000, 1, 1}, Params: block, Lengths: []uint32{300, 64}}
		if most, sampled := l.iterations(prog), l.sampledIterations(prog); most != c.most || sampled != c.sampled {
			t.Errorf("%s: %d turns, %d in samples, not %d and %d", c.name, most, sampled, c.most, c.sampled)
		}
	}
}
