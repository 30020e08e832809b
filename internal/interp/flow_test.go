package interp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// author writes random structured programs over U32 variables and values. A lane uses only its own
// element of the buffer, so the order of the lanes does not matter.
type author struct {
	*asm
	r     *rand.Rand
	vars  []uint32
	scope [][]ir.Value // values by open block
	buf   uint32
	lane  ir.Value
	loops int
	left  int // instructions still to write
}

func (a *author) value() ir.Value {
	if a.r.IntN(3) == 0 {
		return a.keep(a.get(a.vars[a.r.IntN(len(a.vars))]))
	}
	for {
		s := a.scope[a.r.IntN(len(a.scope))]
		if len(s) > 0 {
			return s[a.r.IntN(len(s))]
		}
	}
}

func (a *author) keep(v ir.Value) ir.Value {
	top := len(a.scope) - 1
	a.scope[top] = append(a.scope[top], v)
	return v
}

func (a *author) condition() ir.Value {
	x := a.op(ir.And, a.value(), a.u(uint32(1+a.r.IntN(7))))
	return a.cmp([]ir.Code{ir.Lt, ir.Eq, ir.Ne, ir.Le}[a.r.IntN(4)], x, a.u(uint32(a.r.IntN(5))))
}

func (a *author) block(depth int) {
	a.scope = append(a.scope, nil)
	vars := len(a.vars)
	defer func() { a.scope, a.vars = a.scope[:len(a.scope)-1], a.vars[:vars] }()
	for range 1 + a.r.IntN(6) {
		if a.left--; a.left < 0 {
			return
		}
		switch n := a.r.IntN(15); {
		case n == 14:
			// A variable of the block.
			v := a.variable("inner", ir.U32, 1)
			a.set(v, a.value())
			a.vars = append(a.vars, v)
		case n < 3:
			c := []ir.Code{ir.Add, ir.Sub, ir.Mul, ir.Xor, ir.Min, ir.Shr, ir.IMod}[a.r.IntN(7)]
			a.keep(a.op(c, a.value(), a.value()))
		case n < 6:
			a.set(a.vars[a.r.IntN(len(a.vars))], a.value())
		case n == 6:
			a.store(a.buf, a.lane, a.value())
		case n == 7:
			a.keep(a.load(a.buf, a.lane))
		case n == 8:
			a.keep(a.op(ir.Select, a.condition(), a.value(), a.value()))
		case n < 11 && depth > 0:
			a.ifThen(a.condition())
			a.block(depth - 1)
			if a.r.IntN(2) == 0 {
				a.otherwise()
				a.block(depth - 1)
			}
			a.end()
		case n == 11 && depth > 0:
			limit := a.op(ir.And, a.value(), a.u(7))
			i := a.forRange(a.u(uint32(a.r.IntN(3))), limit, a.u(uint32(1+a.r.IntN(2))), ir.Bounded)
			a.loops++
			a.scope = append(a.scope, []ir.Value{i})
			a.block(depth - 1)
			a.scope = a.scope[:len(a.scope)-1]
			a.loops--
			a.end()
		case n == 12 && depth > 0:
			// A loop that counts its iterations, so that it ends.
			turns := a.variable("turns", ir.U32, 1)
			a.set(turns, a.u(0))
			a.loop(0)
			a.loops++
			a.set(turns, a.op(ir.Add, a.get(turns), a.u(1)))
			a.ifThen(a.cmp(ir.Lt, a.u(uint32(a.r.IntN(6))), a.get(turns)))
			a.exit(ir.Break)
			a.end()
			a.block(depth - 1)
			a.loops--
			a.end()
		case n == 13 && (a.loops > 0 || a.r.IntN(8) == 0):
			// Not always the last of its block.
			a.ifThen(a.condition())
			switch k := a.r.IntN(5); {
			case a.loops == 0 || k == 0 && a.r.IntN(3) == 0:
				a.exit(ir.Return)
			case k < 3:
				a.exit(ir.Break)
			default:
				a.exit(ir.Continue)
			}
			if a.r.IntN(3) == 0 {
				a.otherwise()
				a.block(depth - 1)
			}
			a.end()
		}
	}
}

func write(seed uint64, local uint32) *asm {
	r := rand.New(rand.NewPCG(seed, 1))
	a := &author{asm: newAsm("random", local, 1, 1), r: r, left: 60}
	a.buf = a.buffer("out", ir.U32, 1, ir.ReadWrite)
	a.lane = a.global()
	a.scope = [][]ir.Value{{a.lane, a.u(1), a.u(5), a.builtIn(ir.BuiltInGroupX), a.op(ir.Mul, a.lane, a.u(2654435761))}}
	for i := range 4 {
		v := a.variable(fmt.Sprintf("v%d", i), ir.U32, 1)
		a.vars = append(a.vars, v)
		a.set(v, a.scope[0][r.IntN(5)])
	}
	for a.left > 0 {
		a.block(4)
	}
	// The end of every way.
	sum := a.get(a.vars[0])
	for _, v := range a.vars[1:] {
		sum = a.op(ir.Add, a.op(ir.Mul, sum, a.u(31)), a.get(v))
	}
	a.store(a.buf, a.lane, a.op(ir.Xor, sum, a.load(a.buf, a.lane)))
	return a.asm
}

// agree runs a random program in lockstep and under the checker, lane by lane
// and in subgroups, which share neither masks nor registers.
func agree(t *testing.T, seed uint64) {
	local := []uint32{1, 7, 64, 100}[seed%4]
	a := write(seed, local)
	k, err := Compile(&a.p, Limits{})
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	groups := []uint32{1, 2, 3, 65}[seed/4%4]
	if local > 1 {
		groups = min(groups, 3)
	}
	n := int(local * groups)
	fast := make([]uint32, n)
	for i := range fast {
		fast[i] = uint32(i) * 77
	}
	slow := slices.Clone(fast)
	grid := [3]uint32{groups, 1, 1}
	if err := k.Run(context.Background(), Launch{Grid: grid, Buffers: [][]byte{bytesOf(fast)}}); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	fs, err := k.Check(context.Background(), Launch{Grid: grid, Buffers: [][]byte{bytesOf(slow)}},
		Checks{Subgroups: []int{1, 16}, Lockstep: 1, Deterministic: true})
	if err != nil || len(fs) > 0 {
		t.Fatalf("seed %d: %v %v", seed, err, fs)
	}
	if !slices.Equal(fast, slow) {
		t.Fatalf("seed %d, %d lanes:\nrun   %v\ncheck %v", seed, local, fast, slow)
	}
}

func TestRandomFlow(t *testing.T) {
	first := rand.Uint64() >> 1
	n := uint64(300)
	if testing.Short() {
		n = 60
	}
	for i := range n {
		agree(t, first+i)
	}
}

func FuzzFlow(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(agree)
}

// flowCases are programs with control flow, and the same in Go.
var flowCases = []struct {
	name  string
	build func(a *asm, y uint32, i ir.Value)
	want  func(i uint32) uint32
}{
	{"nested if", func(a *asm, y uint32, i ir.Value) {
		a.ifThen(a.cmp(ir.Lt, i, a.u(30)))
		a.ifThen(a.cmp(ir.Lt, i, a.u(10)))
		a.store(y, i, a.u(1))
		a.otherwise()
		a.store(y, i, a.u(2))
		a.end()
		a.otherwise()
		a.ifThen(a.cmp(ir.Eq, a.op(ir.And, i, a.u(1)), a.u(0)))
		a.store(y, i, a.u(3))
		a.end()
		a.end()
	}, func(i uint32) uint32 {
		switch {
		case i < 10:
			return 1
		case i < 30:
			return 2
		case i%2 == 0:
			return 3
		}
		return 0
	}},
	{"collatz", func(a *asm, y uint32, i ir.Value) {
		x, steps := a.variable("x", ir.U32, 1), a.variable("steps", ir.U32, 1)
		a.set(x, a.op(ir.Add, i, a.u(1)))
		a.set(steps, a.u(0))
		a.loop(0)
		v := a.get(x)
		a.ifThen(a.cmp(ir.Eq, v, a.u(1)))
		a.exit(ir.Break)
		a.end()
		a.set(steps, a.op(ir.Add, a.get(steps), a.u(1)))
		a.ifThen(a.cmp(ir.Eq, a.op(ir.And, v, a.u(1)), a.u(0)))
		a.set(x, a.op(ir.Shr, v, a.u(1)))
		a.exit(ir.Continue)
		a.end()
		a.set(x, a.op(ir.Add, a.op(ir.Mul, v, a.u(3)), a.u(1)))
		a.end()
		a.store(y, i, a.get(steps))
	}, func(i uint32) (steps uint32) {
		for x := i + 1; x != 1; steps++ {
			if x%2 == 0 {
				x /= 2
			} else {
				x = 3*x + 1
			}
		}
		return steps
	}},
	{"return from a loop", func(a *asm, y uint32, i ir.Value) {
		k := a.forRange(a.u(0), a.u(50), a.u(1), ir.Bounded)
		a.ifThen(a.cmp(ir.Eq, k, i))
		a.store(y, i, a.op(ir.Mul, k, a.u(2)))
		a.exit(ir.Return)
		a.end()
		a.end()
		a.store(y, i, a.u(1000))
	}, func(i uint32) uint32 {
		if i < 50 {
			return 2 * i
		}
		return 1000
	}},
	{"signed loop downwards to a limit of its own", func(a *asm, y uint32, i ir.Value) {
		s := a.variable("s", ir.U32, 1)
		a.set(s, a.u(0))
		k := a.forRange(a.opT(ir.Bitcast, ir.I32, 1, a.op(ir.Sub, a.u(0), i)), a.i(-3), a.i(4), ir.Bounded)
		a.set(s, a.op(ir.Add, a.get(s), a.opT(ir.Bitcast, ir.U32, 1, k)))
		a.end()
		a.store(y, i, a.get(s))
	}, func(i uint32) (s uint32) {
		for k := -int32(i); k < -3; k += 4 {
			s += uint32(k)
		}
		return s
	}},
	{"counter that overflows ends the loop", func(a *asm, y uint32, i ir.Value) {
		s := a.variable("s", ir.U32, 1)
		a.set(s, a.u(0))
		a.forRange(a.op(ir.Sub, a.u(0xffffffff), i), a.u(0xffffffff), a.u(3), ir.Bounded)
		a.set(s, a.op(ir.Add, a.get(s), a.u(1)))
		a.end()
		a.store(y, i, a.get(s))
	}, func(i uint32) (s uint32) {
		for k := uint64(0xffffffff - i); k < 0xffffffff; k += 3 {
			s++
		}
		return s
	}},
}

// TestFlow compares control flow with the same control flow in Go.
func TestFlow(t *testing.T) {
	const n = 70 // more than a word of a mask, and no multiple of a block
	for _, c := range flowCases {
		t.Run(c.name, func(t *testing.T) {
			a := newAsm("flow", n, 1, 1)
			y := a.buffer("y", ir.U32, 1, ir.WriteOnly)
			c.build(a, y, a.builtIn(ir.BuiltInLane))
			k := a.compile(t)
			for _, checked := range []bool{false, true} {
				got := make([]uint32, n)
				l := Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{bytesOf(got)}}
				if checked {
					fs, err := k.Check(context.Background(), l, Checks{})
					fs = slices.DeleteFunc(fs, func(f *Finding) bool { return f.Kind == CounterOverflow })
					if err != nil || len(fs) > 0 {
						t.Fatal(err, fs)
					}
				} else if err := k.Run(context.Background(), l); err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if want := c.want(uint32(i)); got[i] != want {
						t.Fatalf("checked %v, lane %d: %d, want %d", checked, i, got[i], want)
					}
				}
			}
		})
	}
}
