package interp

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// A mutant is a kernel with a planted defect and the finding that the checker must report. The same kernel built with
// planted false must have no findings.
type mutant struct {
	name  string
	want  Kind
	build func(planted bool) (*asm, Launch, Checks)
}

func zeros(n int) []byte { return bytesOf(make([]uint32, n)) }

func iota32(n int) []byte {
	v := make([]uint32, n)
	for i := range v {
		v[i] = uint32(i)
	}
	return bytesOf(v)
}

// sumKernel sums a workgroup's 128 elements by halving strides. Its defects are named.
func sumKernel(defect string) (*asm, Launch, Checks) {
	const n = 128
	a := newAsm("sum", n, 1, 1)
	x, y := a.buffer("x", ir.U32, 1, ir.ReadOnly), a.buffer("y", ir.U32, 1, ir.WriteOnly)
	s := a.shared("partial", ir.U32, 1, n, false)
	lane := a.builtIn(ir.BuiltInLane)
	if defect == "uninitialised" {
		a.ifThen(a.cmp(ir.Lt, lane, a.u(n-1)))
		a.storeShared(s, lane, a.load(x, a.global()))
		a.end()
	} else {
		a.storeShared(s, lane, a.load(x, a.global()))
	}
	if defect != "first barrier" {
		a.barrier()
	}
	for stride := uint32(n / 2); stride > 0; stride /= 2 {
		less := ir.Lt
		if defect == "bound" {
			less = ir.Le
		}
		a.ifThen(a.cmp(less, lane, a.u(stride)))
		other := a.loadShared(s, a.op(ir.Add, lane, a.u(stride)))
		a.storeShared(s, lane, a.op(ir.Add, a.loadShared(s, lane), other))
		if defect == "divergent" {
			a.barrier()
		}
		a.end()
		switch {
		case defect == "divergent":
		case defect == "loop barrier" && stride == n/2:
		case defect == "lockstep" && stride <= 16:
		default:
			a.barrier()
		}
	}
	a.ifThen(a.cmp(ir.Eq, lane, a.u(0)))
	a.store(y, a.builtIn(ir.BuiltInGroupX), a.loadShared(s, a.u(0)))
	a.end()
	return a, Launch{Grid: [3]uint32{3, 1, 1}, Buffers: [][]byte{iota32(3 * n), zeros(3)}}, Checks{Undefined: []bool{false, true}}
}

func sumMutant(defect string) func(bool) (*asm, Launch, Checks) {
	return func(planted bool) (*asm, Launch, Checks) {
		if !planted {
			return sumKernel("")
		}
		return sumKernel(defect)
	}
}

// histogram counts 16 values in workgroup memory, then adds to a buffer.
func histogram(defect string) (*asm, Launch, Checks) {
	const n, bins = 64, 16
	a := newAsm("histogram", n, 1, 1)
	x := a.buffer("x", ir.U32, 1, ir.ReadOnly)
	access := ir.Atomic
	if defect == "plain flush" {
		access = ir.ReadWrite
	}
	out := a.buffer("out", ir.U32, 1, access)
	h := a.shared("bins", ir.U32, 1, bins, defect != "plain")
	lane := a.builtIn(ir.BuiltInLane)
	a.ifThen(a.cmp(ir.Lt, lane, a.u(bins)))
	if defect == "plain" {
		a.storeShared(h, lane, a.u(0))
	} else {
		a.atomicShared(ir.AtomicStore, h, lane, a.u(0))
	}
	a.end()
	if defect != "no barrier" {
		a.barrier()
	}
	bin := a.op(ir.And, a.load(x, a.global()), a.u(bins-1))
	if defect == "plain" {
		a.storeShared(h, bin, a.op(ir.Add, a.loadShared(h, bin), a.u(1)))
	} else {
		a.atomicShared(ir.AtomicAdd, h, bin, a.u(1))
	}
	if defect != "no last barrier" {
		a.barrier()
	}
	a.ifThen(a.cmp(ir.Lt, lane, a.u(bins)))
	var count ir.Value
	if defect == "plain" {
		count = a.loadShared(h, lane)
	} else {
		count = a.atomicShared(ir.AtomicLoad, h, lane)
	}
	if defect == "plain flush" {
		a.store(out, lane, a.op(ir.Add, a.load(out, lane), count))
	} else {
		a.atomic(ir.AtomicAdd, out, lane, count)
	}
	a.end()
	return a, Launch{Grid: [3]uint32{4, 1, 1}, Buffers: [][]byte{iota32(4 * n), zeros(bins)}}, Checks{Deterministic: true}
}

func histogramMutant(defect string) func(bool) (*asm, Launch, Checks) {
	return func(planted bool) (*asm, Launch, Checks) {
		if !planted {
			return histogram("")
		}
		return histogram(defect)
	}
}

// strided copies with a loop over the grid.
func strided(planted bool) (*asm, Launch, Checks) {
	const local, groups, n = 32, 3, 500
	a := newAsm("strided", local, 1, 1)
	x, y := a.buffer("x", ir.U32, 1, ir.ReadOnly), a.buffer("y", ir.U32, 1, ir.WriteOnly)
	step := uint32(local * groups)
	if planted {
		step = local
	}
	i := a.forRange(a.global(), a.u(n), a.u(step), ir.Bounded)
	a.store(y, i, a.load(x, i))
	a.end()
	return a, Launch{Grid: [3]uint32{groups, 1, 1}, Buffers: [][]byte{iota32(n), zeros(n)}}, Checks{}
}

// transposed is a tile transposed through workgroup memory.
func transposed(defect string) (*asm, Launch, Checks) {
	const n = 8
	a := newAsm("transpose", n, n, 1)
	x, y := a.buffer("x", ir.F32, 1, ir.ReadOnly), a.buffer("y", ir.F32, 1, ir.WriteOnly)
	s := a.shared("tile", ir.F32, 1, n*n, false)
	lx, ly, w := a.builtIn(ir.BuiltInLocalX), a.builtIn(ir.BuiltInLocalY), a.u(n)
	at := a.op(ir.Add, a.op(ir.Mul, ly, w), lx)
	a.storeShared(s, at, a.load(x, at))
	if defect != "barrier" {
		a.barrier()
	}
	out := w
	if defect == "stride" {
		out = a.u(n - 1)
	}
	a.store(y, a.op(ir.Add, a.op(ir.Mul, ly, out), lx), a.loadShared(s, a.op(ir.Add, a.op(ir.Mul, lx, w), ly)))
	return a, Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{bytesOf(random(n * n)), zeros(n * n)}}, Checks{Undefined: []bool{false, true}}
}

// guarded is y[i] = i where i < n, in workgroups of 64.
func guarded(planted bool) (*asm, Launch, Checks) {
	const n = 100
	a := newAsm("guarded", 64, 1, 1)
	y := a.buffer("y", ir.U32, 1, ir.WriteOnly)
	i := a.global()
	less := ir.Lt
	if planted {
		less = ir.Le
	}
	a.ifThen(a.cmp(less, i, a.u(n)))
	a.store(y, i, i)
	a.end()
	return a, Launch{Grid: [3]uint32{2, 1, 1}, Buffers: [][]byte{zeros(n)}}, Checks{}
}

// one is a kernel of 64 lanes with an output, from a body.
func one64(body func(a *asm, y uint32, lane ir.Value, planted bool)) func(bool) (*asm, Launch, Checks) {
	return func(planted bool) (*asm, Launch, Checks) {
		a := newAsm("body", 64, 1, 1)
		y := a.buffer("y", ir.U32, 1, ir.ReadWrite)
		body(a, y, a.builtIn(ir.BuiltInLane), planted)
		return a, Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{zeros(64)}}, Checks{}
	}
}

// choose returns p where something is planted, else q.
func choose[T any](planted bool, p, q T) T {
	if planted {
		return p
	}
	return q
}

var mutants = []mutant{
	{"missing barrier after the stores", Race, sumMutant("first barrier")},
	{"missing barrier in a loop", Race, sumMutant("loop barrier")},
	{"lanes of a subgroup believed to run in step", Race, sumMutant("lockstep")},
	{"bound off by one in workgroup memory", OutOfBounds, sumMutant("bound")},
	{"element of workgroup memory never written", Uninitialised, sumMutant("uninitialised")},
	{"barrier in divergent flow", DivergentBarrier, sumMutant("divergent")},
	{"atomic dropped in workgroup memory", Race, histogramMutant("plain")},
	{"atomic dropped in a buffer", Race, histogramMutant("plain flush")},
	{"missing barrier after zeroing", Race, histogramMutant("no barrier")},
	{"missing barrier before the counts are read", OrderDependent, histogramMutant("no last barrier")},
	{"stride of the grid forgets the groups", Race, strided},
	{"missing barrier in a transpose", Race, func(p bool) (*asm, Launch, Checks) { return transposed(choose(p, "barrier", "")) }},
	{"wrong stride in a transpose", Race, func(p bool) (*asm, Launch, Checks) { return transposed(choose(p, "stride", "")) }},
	{"guard off by one", OutOfBounds, guarded},
	{"missing barrier in a tiled product", Race, func(p bool) (*asm, Launch, Checks) {
		a := tiledMatMul()
		if p {
			// The second barrier: the last instruction of the loop but its End.
			for i := len(a.p.Code) - 1; ; i-- {
				if a.p.Code[i].Code == ir.Barrier {
					a.p.Code[i] = ir.Instr{Code: ir.Const, Type: ir.U32, Width: 1}
					break
				}
			}
		}
		const n = 32
		return a, Launch{Grid: [3]uint32{2, 2, 1}, Buffers: [][]byte{bytesOf(random(n * n)), bytesOf(random(n * n)), zeros(n * n)}, Params: paramBytes(n)},
			Checks{Undefined: []bool{false, false, true}}
	}},
	{"index that wrapped around", IndexOverflow, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		row := a.op(ir.Mul, lane, a.u(choose[uint32](planted, 1<<31, 0)))
		a.store(y, a.op(ir.Add, a.op(ir.Mul, row, a.u(2)), lane), lane)
	})},
	{"index shifted out", IndexOverflow, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		twice := a.op(ir.Shl, a.op(ir.Shl, lane, a.u(choose[uint32](planted, 31, 0))), a.u(1))
		a.store(y, a.op(choose(planted, ir.Add, ir.Sub), twice, lane), lane)
	})},
	{"index below 0", IndexOverflow, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		// lane-1+1 is no mistake, though lane-1 wraps; lane - 2^32, by way of two
		// halves, stays wrapped.
		before := a.op(ir.Sub, lane, a.u(1))
		if planted {
			before = a.op(ir.Sub, a.op(ir.Sub, before, a.u(1<<31)), a.u(1<<31))
		}
		a.store(y, a.op(ir.Add, before, a.u(1)), lane)
	})},
	{"variable read before it is written", Uninitialised, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		x := a.variable("x", ir.U32, 1)
		if planted {
			a.ifThen(a.cmp(ir.Lt, lane, a.u(63)))
		}
		a.set(x, lane)
		if planted {
			a.end()
		}
		a.store(y, lane, a.get(x))
	})},
	{"loop without end", Budget, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		a.p.Budget = 50
		x := a.variable("x", ir.U32, 1)
		a.set(x, a.u(0))
		a.loop(0)
		a.ifThen(a.cmp(ir.Eq, a.get(x), choose(planted, a.u(100), lane)))
		a.exit(ir.Break)
		a.end()
		a.set(x, a.op(ir.Add, a.get(x), a.u(1)))
		a.ifThen(a.cmp(ir.Eq, a.get(x), a.u(choose[uint32](planted, 1000, 40))))
		a.exit(ir.Break)
		a.end()
		a.end()
		a.store(y, lane, a.get(x))
	})},
	{"step of 0 in a loop said to end", Budget, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		a.p.Budget = 50
		a.forRange(lane, a.u(40), a.u(choose[uint32](planted, 0, 1)), ir.Bounded)
		a.end()
	})},
	{"counter beyond its type", CounterOverflow, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		start := a.op(ir.Sub, a.u(0xffffff00), lane)
		a.forRange(start, a.u(choose[uint32](planted, 0xffffffff, 0xfffffff0)), a.u(choose[uint32](planted, 100, 16)), ir.Bounded)
		a.end()
	})},
	{"index of a uniform load differs", NotUniform, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		s := a.shared("s", ir.U32, 1, 64, false)
		a.storeShared(s, lane, lane)
		a.barrier()
		v := a.uniformLoad(s, choose(planted, lane, a.u(3)))
		a.barrier()
		a.store(y, lane, v)
	})},
	{"uniform load without a barrier before", Race, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		s := a.shared("s", ir.U32, 1, 64, false)
		a.storeShared(s, lane, lane)
		if !planted {
			a.barrier()
		}
		a.store(y, lane, a.uniformLoad(s, a.u(3)))
	})},
	{"subgroup operation in divergent flow", DivergentSubgroup, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		if planted {
			a.ifThen(a.cmp(ir.Lt, a.op(ir.And, lane, a.u(3)), a.u(2)))
		}
		a.store(y, lane, a.add(ir.Instr{Code: ir.SubgroupOp, Type: ir.U32, Width: 1, Args: [3]ir.Value{lane}}))
		if planted {
			a.end()
		}
	})},
	{"subgroup operation that whole subgroups pass by", DivergentSubgroup, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		if planted {
			a.ifThen(a.cmp(ir.Lt, a.builtIn(ir.BuiltInSubgroup), a.u(1)))
		}
		a.store(y, lane, a.add(ir.Instr{Code: ir.SubgroupOp, Type: ir.U32, Width: 1, Args: [3]ir.Value{lane}}))
		if planted {
			a.end()
		}
	})},
	{"barrier that returned lanes do not reach", DivergentBarrier, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		a.ifThen(a.cmp(ir.Lt, lane, a.u(choose[uint32](planted, 32, 0))))
		a.exit(ir.Return)
		a.end()
		a.barrier()
	})},
	{"shuffle from a lane that is not there", ShuffleRange, one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
		mask := a.op(ir.Sub, a.builtIn(ir.BuiltInSubgroupSize), a.u(1))
		from := choose(planted, a.op(ir.Add, lane, a.u(1)), a.op(ir.And, a.op(ir.Add, lane, a.u(1)), mask))
		v := a.add(ir.Instr{Code: ir.SubgroupShuffle, Type: ir.U32, Width: 1, Args: [3]ir.Value{lane, from}})
		a.store(y, lane, v)
	})},
	{"output read before it is written", Uninitialised, func(p bool) (*asm, Launch, Checks) {
		a, l, c := one64(func(a *asm, y uint32, lane ir.Value, planted bool) {
			if !planted {
				a.store(y, lane, a.u(0))
			}
			a.store(y, lane, a.op(ir.Add, a.load(y, lane), a.u(1)))
		})(p)
		c.Undefined = []bool{true}
		return a, l, c
	}},
	{"buffers that share memory", Aliased, func(p bool) (*asm, Launch, Checks) {
		a, l, c := guarded(false)
		a.buffer("z", ir.U32, 1, ir.ReadOnly)
		l.Buffers = append(l.Buffers, choose(p, l.Buffers[0], zeros(100)))
		return a, l, c
	}},
	{"neighbours read across workgroups", Race, func(p bool) (*asm, Launch, Checks) {
		const n = 64
		a := newAsm("shift", 32, 1, 1)
		x := a.buffer("x", ir.U32, 1, ir.ReadWrite)
		i := a.global()
		a.ifThen(a.cmp(ir.Lt, i, a.u(n-1)))
		a.store(x, i, a.load(x, a.op(ir.Add, i, a.u(choose[uint32](p, 1, 0)))))
		a.end()
		return a, Launch{Grid: [3]uint32{2, 1, 1}, Buffers: [][]byte{iota32(n)}}, Checks{}
	}},
}

func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for _, planted := range []bool{false, true} {
				a, l, c := m.build(planted)
				found, err := a.compile(t).Check(context.Background(), l, c)
				if err != nil {
					t.Fatal(err)
				}
				if !planted {
					for _, f := range found {
						t.Errorf("false alarm: %v", f)
					}
					continue
				}
				ok := false
				for _, f := range found {
					if errors.Is(f, m.want) {
						ok = true
						if f.Value != 0 && (!strings.HasSuffix(f.File, "_test.go") || f.Line == 0) {
							t.Errorf("no position: %v", f)
						}
					}
				}
				if !ok {
					t.Errorf("%v is not found; found %v", m.want, found)
				}
			}
		})
	}
}
