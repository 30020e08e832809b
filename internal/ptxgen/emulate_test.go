package ptxgen

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/rayo-go/rayo/internal/interp"
	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// These tests run programs in the PTX emulator and in the interpreter, which defines their meaning,
// and compare the memory.

// interesting are bit patterns that are special for some type.
var interesting = []uint32{0, 1, 2, 31, 32, 0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
	0x00000001, 0x80000001, 0x007fffff, 0x4f000000, 0xcf000000, 0x4f800000, 0x3f000000, 0x3fc00000, 0x40200000, 0x4b000001, 0x33800000, 0x477fe000, 0x38800000}

// wordArray returns n words of memory.
func wordArray(n int) []uint32 { return make([]uint32, n) }

func bytesOf(w []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(w))), 4*len(w))
}

// fill fills a buffer with small numbers, or with numbers of all kinds if wild is set.
func fill(rnd *rand.Rand, w []uint32, t ir.Type, wild bool) {
	for i := range w {
		switch {
		case t == ir.F16 && wild:
			w[i] = rnd.Uint32() &^ 0x02000200 & 0x7fff7fff // no signalling NaN
			for _, shift := range []int{0, 16} {
				if w[i]>>shift&0x7c00 == 0x7c00 && w[i]>>shift&0x3ff != 0 {
					w[i] &^= 0x3ff << shift
				}
			}
		case t == ir.F16:
			w[i] = 0x3c004000
		case wild && rnd.IntN(3) == 0:
			w[i] = interesting[rnd.IntN(len(interesting))]
		case wild && t == ir.F32 && rnd.IntN(2) == 0:
			w[i] = math.Float32bits(float32(rnd.NormFloat64() * math.Exp(rnd.NormFloat64()*4)))
		case wild:
			w[i] = rnd.Uint32()
		case t == ir.F32:
			w[i] = math.Float32bits(float32(rnd.IntN(200)) / 4)
		default:
			w[i] = uint32(rnd.IntN(200))
		}
	}
}

// emulate runs a program in the interpreter and in the emulator. It returns the buffers after each
// run, and the record of faults.
func emulate(t *testing.T, target ptx.Target, o Options, p *ir.Program, grid [3]uint32, buffers [][]uint32, params []byte) (want, got [][]uint32, fault []byte) {
	t.Helper()
	k, err := interp.Compile(p, interp.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	l := interp.Launch{Grid: grid, Params: params, Subgroup: 32}
	for _, b := range buffers {
		c := slices.Clone(b)
		want = append(want, c)
		l.Buffers = append(l.Buffers, bytesOf(c))
	}
	if err := k.Run(context.Background(), l); err != nil && !o.Checked {
		t.Fatal(err)
	}
	m := ptx.NewModule(target)
	e, err := Lower(m, "k", p, o)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := emu.Load(m)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := mod.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	machine := emu.NewMachine(emu.Config{Schedule: emu.Shuffled, Seed: 3})
	alloc := func(name string, b []byte) emu.Ptr {
		a, err := machine.Alloc(name, len(b))
		if err == nil {
			err = machine.Write(a, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	var addresses []uint64
	var lengths []uint32
	for i, b := range buffers {
		addresses = append(addresses, uint64(alloc(p.Bindings[i].Name, bytesOf(b))))
		size := uint32(p.Bindings[i].Width) * 4
		if p.Bindings[i].Type == ir.F16 {
			size /= 2
		}
		lengths = append(lengths, uint32(4*len(b))/size)
	}
	record := alloc("fault", make([]byte, FaultBytes))
	block := e.Args(nil, uint64(record), addresses, lengths, params)
	if len(block) != e.ArgBytes() {
		t.Fatalf("%d bytes of parameters, not %d", len(block), e.ArgBytes())
	}
	var args []any
	pointers := len(buffers)
	if o.Checked {
		pointers++
	}
	for range pointers {
		args = append(args, binary.LittleEndian.Uint64(block))
		block = block[8:]
	}
	for ; len(block) > 0; block = block[4:] {
		args = append(args, binary.LittleEndian.Uint32(block))
	}
	dim := func(d [3]uint32) emu.Dim { return emu.Dim{X: int(d[0]), Y: int(d[1]), Z: int(d[2])} }
	if err := machine.Launch(context.Background(), kernel, dim(grid), dim(p.Local), e.Dynamic, args...); err != nil {
		t.Fatal(err)
	}
	for i, b := range buffers {
		c := make([]uint32, len(b))
		if err := machine.Read(emu.Ptr(addresses[i]), bytesOf(c)); err != nil {
			t.Fatal(err)
		}
		got = append(got, c)
	}
	fault = make([]byte, FaultBytes)
	if err := machine.Read(record, fault); err != nil {
		t.Fatal(err)
	}
	return want, got, fault
}

// same reports whether two words are the same number. All NaN are the same.
func same(a, b uint32) bool {
	nan := func(v uint32) bool { return v&0x7fffffff > 0x7f800000 }
	return a == b || nan(a) && nan(b)
}

func TestCodes(t *testing.T) {
	programs := everyCode()
	for _, name := range slices.Sorted(maps.Keys(programs)) {
		p := programs[name]
		for _, target := range []ptx.Target{ptx.SM70, ptx.SM90} {
			t.Run(fmt.Sprintf("%s/%v", name, target), func(t *testing.T) {
				rnd := rand.New(rand.NewPCG(uint64(len(name)), 7))
				var buffers [][]uint32
				for i, b := range p.Bindings {
					w := wordArray(16 * sourceLanes)
					if i == 0 {
						w = wordArray(len(p.Code) * sourceLanes)
					} else {
						fill(rnd, w, b.Type, true)
					}
					buffers = append(buffers, w)
				}
				want, got, _ := emulate(t, target, Options{}, p, [3]uint32{1, 1, 1}, buffers, nil)
				bad := 0
				for i := range want[0] {
					if !same(want[0][i], got[0][i]) && !near(p, want[0][i], got[0][i]) {
						if bad++; bad < 5 {
							t.Errorf("lane %d, result %d: %#x (%g), want %#x (%g)", i%sourceLanes, i/sourceLanes, got[0][i],
								math.Float32frombits(got[0][i]), want[0][i], math.Float32frombits(want[0][i]))
						}
					}
				}
			})
		}
	}
}

// near reports whether two words are equal, or differ in a way that is not defined to the bit: the
// interpreter computes functions and the order of sums in another way, and NaN of half floats have
// other bits.
func near(p *ir.Program, want, got uint32) bool {
	for i := range p.Code {
		switch in := &p.Code[i]; {
		case in.Code.Composite() && in.Code != ir.Sin && in.Code != ir.Cos:
			return ordered(want)-ordered(got) <= 8 && ordered(got)-ordered(want) <= 8
		case in.Code == ir.PackHalf:
			half := func(v uint32) bool { return v&0x7fff > 0x7c00 }
			return (want&0xffff == got&0xffff || half(want) && half(got)) && (want>>16 == got>>16 || half(want>>16) && half(got>>16))
		case in.Code == ir.SubgroupOp, in.Code == ir.SubgroupScan, in.Code == ir.Dot:
			return in.Type == ir.F32 || in.Type == ir.F16 // integers are compared exactly; see also TestKernels
		case in.Code == ir.Shl, in.Code == ir.Shr, in.Code == ir.Ldexp:
			return true // shift counts from 32 on, exponents that are not integral
		case in.Code == ir.Sin, in.Code == ir.Cos:
			return true // see TestSine
		}
	}
	return false
}

// ordered maps the bits of floats to consecutive integers in the order of the floats.
func ordered(bits uint32) int64 {
	if bits>>31 != 0 {
		return -int64(bits & 0x7fffffff)
	}
	return int64(bits)
}

func TestKernels(t *testing.T) {
	for _, l := range locals {
		for _, k := range kernels(l) {
			p, err := k.Program()
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range []Options{{}, {Scalar: true, Coherent: true}, {Checked: true}} {
				for _, target := range []ptx.Target{ptx.SM70, ptx.SM80} {
					t.Run(fmt.Sprintf("%s/%v/%+v", p.Name, target, o), func(t *testing.T) {
						rnd := rand.New(rand.NewPCG(5, 6))
						params, err := k.AppendParams(nil, sizes{N: 23, I: -7, F: 3.75, Step: 5})
						if err != nil {
							t.Fatal(err)
						}
						var buffers [][]uint32
						for _, b := range p.Bindings {
							w := wordArray(64 * 4 * 24)
							if b.Access != ir.Atomic && b.Access != ir.WriteOnly {
								fill(rnd, w, b.Type, false)
							}
							buffers = append(buffers, w)
						}
						want, got, fault := emulate(t, target, o, p, [3]uint32{2, 1, 1}, buffers, params)
						if f, ok := FaultOf(fault); ok {
							t.Errorf("a fault: %+v", f)
						}
						for i := range want {
							for j := range want[i] {
								if !same(want[i][j], got[i][j]) {
									t.Fatalf("buffer %s, word %d: %#x, want %#x", p.Bindings[i].Name, j, got[i][j], want[i][j])
								}
							}
						}
					})
				}
			}
		}
	}
}

// TestSine compares the sine of numbers of every magnitude with float64.
func TestSine(t *testing.T) {
	for _, c := range []ir.Code{ir.Sin, ir.Cos} {
		s := newSource(c.String())
		s.keep(s.op(c, ir.F32, 1, s.number(ir.F32, 0, 0)))
		x := wordArray(4 * sourceLanes)
		rnd := rand.New(rand.NewPCG(8, 9))
		for round := range 20 {
			for i := range x {
				x[i] = math.Float32bits(float32(math.Ldexp(1+rnd.Float64(), rnd.IntN(150)-22)))
				if i%2 == 1 {
					x[i] |= 1 << 31
				}
				if i == 0 {
					x[i] = math.Float32bits(math.MaxFloat32)
				}
			}
			_, got, _ := emulate(t, ptx.SM80, Options{}, &s.Program, [3]uint32{1, 1, 1}, [][]uint32{wordArray(sourceLanes), x}, nil)
			for i := range sourceLanes {
				v, y := float64(math.Float32frombits(x[i])), float64(math.Float32frombits(got[0][i]))
				want := math.Sin(v)
				if c == ir.Cos {
					want = math.Cos(v)
				}
				_, e := math.Frexp(want)
				if ulps := math.Abs(y-want) / math.Ldexp(1, e-24); !(ulps <= 2.5) {
					t.Errorf("round %d: %v of %g: %g, want %g: off by %.2f units", round, c, v, y, want, ulps)
				}
			}
		}
	}
}
