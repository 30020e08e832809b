package interp

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
)

// both runs a kernel in lockstep and checked, and fails on any finding.
func both(t *testing.T, k *Kernel, l Launch, verify func(mode string)) {
	t.Helper()
	saved := copies(l.Buffers)
	for _, mode := range []string{"run", "run on goroutines", "check"} {
		for i := range saved {
			copy(l.Buffers[i], saved[i])
		}
		l.Runner = nil
		switch mode {
		case "check":
			if fs, err := k.Check(context.Background(), l, Checks{}); err != nil || len(fs) > 0 {
				t.Fatal(err, fs)
			}
		case "run on goroutines":
			l.Runner = Goroutines(3)
			fallthrough
		default:
			if err := k.Run(context.Background(), l); err != nil {
				t.Fatal(err)
			}
		}
		verify(mode)
	}
}

// TestMemory copies elements of each type and width from buffers to buffers by
// way of workgroup memory: in rows, scattered, and masked.
func TestMemory(t *testing.T) {
	for _, typ := range []ir.Type{ir.F32, ir.I32, ir.U32, ir.F16} {
		for _, w := range []uint8{1, 2, 4} {
			for _, local := range []uint32{1, 8, 60} {
				for _, how := range []string{"rows", "scattered", "masked", "masked rows"} {
					t.Run(fmt.Sprintf("%v/%d/%d/%s", typ, w, local, how), func(t *testing.T) {
						a := newAsm("copy", local, 1, 1)
						x := a.buffer("x", typ, w, ir.ReadOnly)
						y := a.buffer("y", typ, w, ir.WriteOnly)
						s := a.shared("s", typ, w, local, false)
						lane, i := a.builtIn(ir.BuiltInLane), a.global()
						n := a.opT(ir.Len, ir.U32, 1)
						if how == "scattered" || how == "masked" {
							// An order of elements that the compiler cannot analyse.
							i = a.op(ir.Xor, i, a.u(0))
							lane = a.op(ir.Sub, a.op(ir.Sub, a.u(local), a.u(1)), lane)
							i = a.op(ir.Sub, a.op(ir.Sub, n, a.u(1)), i)
						}
						odd := a.cmp(ir.Eq, a.op(ir.And, i, a.u(1)), a.u(1))
						masked := how == "masked" || how == "masked rows"
						if masked {
							a.ifThen(odd)
						}
						a.storeShared(s, lane, a.load(x, i))
						if masked {
							a.end()
						}
						a.barrier()
						if masked {
							a.ifThen(odd)
						}
						a.store(y, i, a.loadShared(s, lane))
						if masked {
							a.end()
						}
						size := 4
						if typ == ir.F16 {
							size = 2
						}
						total := int(local) * 3
						elem := size * int(w)
						in, out := copies([][]byte{make([]byte, total*elem)})[0], copies([][]byte{make([]byte, total*elem)})[0]
						for b := range in {
							in[b] = byte(rand.Uint32())
							if typ == ir.F16 {
								in[b] &= 0x7b // no NaN, whose bits may change
							}
						}
						both(t, a.compile(t), Launch{Grid: [3]uint32{3, 1, 1}, Buffers: [][]byte{in, out}}, func(mode string) {
							for i := range total {
								want := in[i*elem:][:elem]
								if masked && i%2 == 0 {
									want = make([]byte, elem)
								}
								if !slices.Equal(out[i*elem:][:elem], want) {
									t.Fatalf("%s: element %d is %v, want %v", mode, i, out[i*elem:][:elem], want)
								}
							}
						})
					})
				}
			}
		}
	}
}

// TestAtomics applies each operation many times to a few places.
func TestAtomics(t *testing.T) {
	const local, groups, places = 40, 6, 4
	for _, typ := range []ir.Type{ir.U32, ir.I32} {
		for op := ir.AtomicAdd; op <= ir.AtomicXor; op++ {
			for _, shared := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v/%d/%v", typ, op, shared), func(t *testing.T) {
					a := newAsm("atomic", local, 1, 1)
					x := a.buffer("x", typ, 1, ir.ReadOnly)
					y := a.buffer("y", typ, 1, ir.Atomic)
					lane, i := a.builtIn(ir.BuiltInLane), a.global()
					at := a.op(ir.And, i, a.u(places-1))
					v := a.load(x, i)
					start := uint32(0x80000003)
					if shared {
						s := a.shared("s", typ, 1, places, true)
						a.ifThen(a.cmp(ir.Lt, lane, a.u(places)))
						a.atomicShared(ir.AtomicStore, s, lane, a.bits(typ, start))
						a.end()
						a.barrier()
						a.atomicShared(op, s, at, v)
						a.barrier()
						a.ifThen(a.cmp(ir.Lt, lane, a.u(places)))
						to := a.op(ir.Add, a.op(ir.Mul, a.builtIn(ir.BuiltInGroupX), a.u(places)), lane)
						a.atomic(ir.AtomicStore, y, to, a.atomicShared(ir.AtomicLoad, s, lane))
						a.end()
					} else {
						a.atomic(op, y, at, v)
					}
					in, out := make([]uint32, local*groups), make([]uint32, places*groups)
					for i := range in {
						in[i] = rand.Uint32()
					}
					for i := range out {
						out[i] = start
					}
					both(t, a.compile(t), Launch{Grid: [3]uint32{groups, 1, 1}, Buffers: [][]byte{bytesOf(in), bytesOf(out)}}, func(mode string) {
						for p := range out {
							want := start
							for i, v := range in {
								if shared && i/local != p/places || i%places != p%places || !shared && p >= places {
									continue
								}
								if w := int32(want); typ == ir.I32 {
									switch op {
									case ir.AtomicMin:
										want = uint32(min(w, int32(v)))
										continue
									case ir.AtomicMax:
										want = uint32(max(w, int32(v)))
										continue
									}
								}
								switch op {
								case ir.AtomicAdd:
									want += v
								case ir.AtomicSub:
									want -= v
								case ir.AtomicMin:
									want = min(want, v)
								case ir.AtomicMax:
									want = max(want, v)
								case ir.AtomicAnd:
									want &= v
								case ir.AtomicOr:
									want |= v
								case ir.AtomicXor:
									want ^= v
								}
							}
							if out[p] != want {
								t.Fatalf("%s: place %d is %#x, want %#x", mode, p, out[p], want)
							}
						}
					})
				})
			}
		}
	}
}

// TestTickets gives each lane a unique number by AtomicAdd, and finds the greatest element by a loop with
// AtomicCompareExchange and AtomicExchange.
func TestTickets(t *testing.T) {
	const local, groups = 32, 4
	a := newAsm("tickets", local, 1, 1)
	c := a.buffer("counter", ir.U32, 1, ir.Atomic)
	y := a.buffer("y", ir.U32, 1, ir.WriteOnly)
	i := a.global()
	n := a.atomic(ir.AtomicAdd, c, a.u(0), a.u(1))
	a.store(y, n, a.u(1))
	x := a.op(ir.Mul, i, a.u(2654435761))
	a.loop(0)
	seen := a.atomic(ir.AtomicLoad, c, a.u(1))
	a.ifThen(a.cmp(ir.Le, x, seen))
	a.exit(ir.Break)
	a.end()
	a.ifThen(a.cmp(ir.Eq, a.atomic(ir.AtomicCompareExchange, c, a.u(1), seen, x), seen))
	a.exit(ir.Break)
	a.end()
	a.end()
	a.atomic(ir.AtomicExchange, c, a.op(ir.Add, i, a.u(2)), i)
	counter, out := make([]uint32, local*groups+2), make([]uint32, local*groups)
	both(t, a.compile(t), Launch{Grid: [3]uint32{groups, 1, 1}, Buffers: [][]byte{bytesOf(counter), bytesOf(out)}}, func(mode string) {
		want := uint32(0)
		for i := range uint32(local * groups) {
			want = max(want, i*2654435761)
			if out[i] != 1 || counter[i+2] != i {
				t.Fatalf("%s: ticket %d: %d, exchanged %d", mode, i, out[i], counter[i+2])
			}
		}
		if counter[0] != local*groups || counter[1] != want {
			t.Fatalf("%s: %d tickets, greatest %d, want %d", mode, counter[0], counter[1], want)
		}
	})
}

func TestSubgroups(t *testing.T) {
	const local, groups = 64, 2
	in := make([]uint32, local*groups)
	for i := range in {
		in[i] = rand.Uint32N(1000)
	}
	for _, size := range []int{1, 4, 32, 64} {
		for _, c := range []struct {
			name string
			in   ir.Instr
			want func(sub []uint32, lane int) uint32
		}{
			{"add", ir.Instr{Code: ir.SubgroupOp, Flag: ir.ReduceAdd}, func(s []uint32, _ int) (v uint32) {
				for _, x := range s {
					v += x
				}
				return v
			}},
			{"min", ir.Instr{Code: ir.SubgroupOp, Flag: ir.ReduceMin}, func(s []uint32, _ int) uint32 { return slices.Min(s) }},
			{"max", ir.Instr{Code: ir.SubgroupOp, Flag: ir.ReduceMax}, func(s []uint32, _ int) uint32 { return slices.Max(s) }},
			{"and", ir.Instr{Code: ir.SubgroupOp, Flag: ir.ReduceAnd}, func(s []uint32, _ int) uint32 {
				v := s[0]
				for _, x := range s {
					v &= x
				}
				return v
			}},
			{"or", ir.Instr{Code: ir.SubgroupOp, Flag: ir.ReduceOr}, func(s []uint32, _ int) (v uint32) {
				for _, x := range s {
					v |= x
				}
				return v
			}},
			{"scan", ir.Instr{Code: ir.SubgroupScan, Flag: ir.ReduceAdd}, func(s []uint32, lane int) (v uint32) {
				for _, x := range s[:lane] {
					v += x
				}
				return v
			}},
			{"first", ir.Instr{Code: ir.SubgroupFirst}, func(s []uint32, _ int) uint32 { return s[0] }},
			{"xor", ir.Instr{Code: ir.SubgroupXor, Imm: 2}, func(s []uint32, lane int) uint32 {
				if len(s) == 1 {
					return s[0]
				}
				return s[lane^2]
			}},
			{"shuffle", ir.Instr{Code: ir.SubgroupShuffle}, func(s []uint32, lane int) uint32 { return s[(lane+1)%len(s)] }},
		} {
			t.Run(fmt.Sprintf("%s/%d", c.name, size), func(t *testing.T) {
				a := newAsm("subgroup", local, 1, 1)
				x, y := a.buffer("x", ir.U32, 1, ir.ReadOnly), a.buffer("y", ir.U32, 1, ir.WriteOnly)
				i := a.global()
				n := a.builtIn(ir.BuiltInSubgroupSize)
				next := a.op(ir.IMod, a.op(ir.Add, a.builtIn(ir.BuiltInSubgroupLane), a.u(1)), n)
				c.in.Type, c.in.Width, c.in.Args = ir.U32, 1, [3]ir.Value{a.load(x, i)}
				if c.in.Code == ir.SubgroupShuffle {
					c.in.Args[1] = next
				}
				a.store(y, i, a.add(c.in))
				out := make([]uint32, len(in))
				both(t, a.compile(t), Launch{Grid: [3]uint32{groups, 1, 1}, Buffers: [][]byte{bytesOf(in), bytesOf(out)}, Subgroup: size}, func(mode string) {
					for i := range in {
						at := i / size * size
						if want := c.want(in[at:at+size], i-at); out[i] != want {
							t.Fatalf("%s: lane %d: %d, want %d", mode, i, out[i], want)
						}
					}
				})
			})
		}
	}
}

// TestBuiltIns checks all built-in values of lanes.
func TestBuiltIns(t *testing.T) {
	local, grid := [3]uint32{4, 3, 2}, [3]uint32{3, 2, 2}
	a := newAsm("builtins", local[0], local[1], local[2])
	y := a.buffer("y", ir.U32, 1, ir.WriteOnly)
	var vs []ir.Value
	for f := ir.BuiltInLocalX; f <= ir.BuiltInSubgroup; f++ {
		vs = append(vs, a.builtIn(f))
	}
	g := a.op(ir.Add, a.op(ir.Mul, a.op(ir.Add, a.op(ir.Mul, vs[ir.BuiltInGroupZ], a.u(grid[1])), vs[ir.BuiltInGroupY]), a.u(grid[0])), vs[ir.BuiltInGroupX])
	base := a.op(ir.Mul, a.op(ir.Add, a.op(ir.Mul, g, a.u(24)), vs[ir.BuiltInLane]), a.u(uint32(len(vs))))
	for k, v := range vs {
		a.store(y, a.op(ir.Add, base, a.u(uint32(k))), v)
	}
	n := len(vs)
	out := make([]uint32, 24*12*n)
	both(t, a.compile(t), Launch{Grid: grid, Buffers: [][]byte{bytesOf(out)}, Subgroup: 8}, func(mode string) {
		for i := range 24 * 12 {
			lane, group := uint32(i%24), uint32(i/24)
			want := []uint32{lane % 4, lane / 4 % 3, lane / 12, group % 3, group / 3 % 2, group / 6, 3, 2, 2, lane, 8, lane % 8, lane / 8}
			if got := out[i*n:][:n]; !slices.Equal(got, want) {
				t.Fatalf("%s: lane %d of group %d: %v, want %v", mode, lane, group, got, want)
			}
		}
	})
}
