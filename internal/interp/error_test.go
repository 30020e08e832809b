package interp

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
)

// TestFaults runs kernels with mistakes without the checker.
func TestFaults(t *testing.T) {
	for _, m := range mutants {
		switch m.want {
		case OutOfBounds, Budget, NotUniform:
		case DivergentBarrier, DivergentSubgroup:
			if strings.Contains(m.name, "whole subgroups") {
				continue
			}
		default:
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			a, l, _ := m.build(true)
			for _, r := range []Runner{nil, Goroutines(2)} {
				l.Runner = r
				err := a.compile(t).Run(context.Background(), l)
				var f *Finding
				if !errors.Is(err, m.want) || !errors.As(err, &f) {
					t.Fatalf("got %v, want %v", err, m.want)
				}
				if f.Value == 0 || f.Line == 0 || !strings.Contains(err.Error(), "_test.go:") {
					t.Errorf("no position: %v", err)
				}
			}
		})
	}
}

// TestOutOfBounds uses wrong indices in all kinds of memory accesses. The memory around the buffer must not change.
func TestOutOfBounds(t *testing.T) {
	type touch func(a *asm, b uint32, i ir.Value)
	for name, f := range map[string]touch{
		"load":        func(a *asm, b uint32, i ir.Value) { a.set(a.sink(i), a.load(b, i)) },
		"load one":    func(a *asm, b uint32, i ir.Value) { a.set(a.sink(i), a.load(b, a.u(101))) },
		"load masked": func(a *asm, b uint32, i ir.Value) { a.ifThen(a.odd(i)); a.set(a.sink(i), a.load(b, i)); a.end() },
		"store":       func(a *asm, b uint32, i ir.Value) { a.store(b, i, i) },
		"store row":   func(a *asm, b uint32, _ ir.Value) { a.store(b, a.global(), a.u(7)) },
		"masked":      func(a *asm, b uint32, i ir.Value) { a.ifThen(a.odd(i)); a.store(b, i, i); a.end() },
		"far":         func(a *asm, b uint32, i ir.Value) { a.store(b, a.op(ir.Sub, i, a.u(64)), i) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newAsm("beyond", 64, 1, 1)
			b := a.buffer("b", ir.U32, 1, ir.ReadWrite)
			f(a, b, a.op(ir.Xor, a.global(), a.u(0)))
			mem := make([]uint32, 200)
			for i := range mem {
				mem[i] = 99
			}
			err := a.compile(t).Run(context.Background(), Launch{Grid: [3]uint32{2, 1, 1}, Buffers: [][]byte{bytesOf(mem[50:150])}})
			var found *Finding
			if !errors.As(err, &found) || found.Kind != OutOfBounds || found.Name != "b" || found.Index >= 0 && found.Index < 100 || name == "far" && (found.Index != -64 || !strings.Contains(err.Error(), "b[-64]")) {
				t.Fatalf("got %v", err)
			}
			for i, v := range mem {
				if (i < 50 || i >= 150) && v != 99 {
					t.Fatalf("element %d beyond the buffer became %d", i-50, v)
				}
			}
		})
	}
}

func (a *asm) odd(i ir.Value) ir.Value {
	return a.cmp(ir.Eq, a.op(ir.And, i, a.u(1)), a.u(1))
}

func TestLimits(t *testing.T) {
	big := newAsm("big", 64, 1, 1)
	big.shared("s", ir.F32, 4, 1<<31, false)
	many := newAsm("many", 1<<16, 1<<16, 1<<16)
	deep := newAsm("deep", 1, 1, 1)
	c := deep.bits(ir.Bool, 1)
	for range 300 {
		deep.ifThen(c)
	}
	for range 300 {
		deep.end()
	}
	vars := newAsm("vars", 1024, 1, 1)
	b := vars.buffer("b", ir.F32, 1, ir.ReadWrite)
	v := vars.load(b, vars.global())
	for range 20000 {
		vars.set(vars.variable("v", ir.F32, 1), v)
	}
	for _, a := range []*asm{big, many, deep, vars} {
		if _, err := Compile(&a.p, Limits{}); !errors.Is(err, ErrLimit) {
			t.Errorf("%s: %v", a.p.Name, err)
		}
	}
	if _, err := Compile(&big.p, Limits{Shared: 1 << 20}); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}

	a, l, _ := guarded(false)
	k := a.compile(t)
	for _, c := range []struct {
		change func(l *Launch)
		want   error
	}{
		{func(l *Launch) { l.Grid[1] = 0 }, ErrLaunch},
		{func(l *Launch) { l.Grid[2] = 65536 }, ErrLimit},
		{func(l *Launch) { l.Buffers = nil }, ErrLaunch},
		{func(l *Launch) { l.Buffers = [][]byte{l.Buffers[0][:399]} }, ErrLaunch},
		{func(l *Launch) { l.Buffers = [][]byte{l.Buffers[0][1:397]} }, ErrLaunch},
		{func(l *Launch) { l.Subgroup = 3 }, ErrLaunch},
		{func(l *Launch) { l.Subgroup = 256 }, ErrLaunch},
		{func(l *Launch) { l.Subgroup = -1 }, ErrLaunch},
	} {
		bad := l
		c.change(&bad)
		if err := k.Run(context.Background(), bad); !errors.Is(err, c.want) {
			t.Errorf("run: %v, want %v", err, c.want)
		}
		if _, err := k.Check(context.Background(), bad, Checks{}); !errors.Is(err, c.want) {
			t.Errorf("check: %v, want %v", err, c.want)
		}
	}
	p := saxpy().compile(t)
	if err := p.Run(context.Background(), Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{nil, nil}, Params: make([]byte, 7)}); !errors.Is(err, ErrLaunch) {
		t.Error(err)
	}
	if err := p.Run(context.Background(), Launch{Grid: [3]uint32{1, 1, 1}, Buffers: [][]byte{nil, nil}, Params: make([]byte, 8)}); err != nil {
		t.Error(err) // n is 0 and so are the buffers
	}
	if _, err := k.Check(context.Background(), l, Checks{Undefined: make([]bool, 3)}); !errors.Is(err, ErrLaunch) {
		t.Error(err)
	}
}

// TestCancel stops kernels that would run for minutes.
func TestCancel(t *testing.T) {
	long := newAsm("long", 64, 1, 1)
	long.loop(ir.Bounded) // which is a lie
	long.end()
	wide := newAsm("wide", 1, 1, 1)
	wide.barrier()
	for _, c := range []struct {
		a    *asm
		grid [3]uint32
	}{{long, [3]uint32{1, 1, 1}}, {wide, [3]uint32{65535, 60000, 1}}} {
		k := c.a.compile(t)
		for _, run := range []func(context.Context) error{
			func(ctx context.Context) error { return k.Run(ctx, Launch{Grid: c.grid}) },
			func(ctx context.Context) error { return k.Run(ctx, Launch{Grid: c.grid, Runner: Goroutines(2)}) },
			func(ctx context.Context) error { _, err := k.Check(ctx, Launch{Grid: c.grid}, Checks{}); return err },
		} {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
			if err := run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", c.a.p.Name, err)
			}
			if err := run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, cancelled before: %v", c.a.p.Name, err)
			}
			cancel()
		}
	}
}

// TestMalformed changes programs at random. Each must give an error or run without harm.
func TestMalformed(t *testing.T) {
	r := testutil.Rand(t)
	refused, n := 0, 3000
	if testing.Short() {
		n = 500
	}
	for i := range n {
		a := write(r.Uint64(), 8)
		if i%3 == 0 {
			a, _, _ = histogram("")
		} else if i%3 == 1 {
			a = tiledMatMul()
		}
		a.p.Budget = 20
		for range 1 + r.IntN(3) {
			in := &a.p.Code[r.IntN(len(a.p.Code))]
			switch r.IntN(6) {
			case 0:
				in.Code = ir.Code(r.Uint32())
			case 1:
				in.Type = ir.Type(r.IntN(8))
			case 2:
				in.Width = uint8(r.IntN(6))
			case 3:
				in.Flag = uint8(r.IntN(16))
			case 4:
				in.Args[r.IntN(3)] = ir.Value(r.IntN(len(a.p.Code) + 2))
			default:
				in.Imm = uint32(r.IntN(len(a.p.Code) + 2))
			}
		}
		k, err := Compile(&a.p, Limits{})
		if err != nil {
			if !errors.Is(err, ErrProgram) && !errors.Is(err, ErrLimit) {
				t.Fatal(err)
			}
			refused++
			continue
		}
		l := Launch{Grid: [3]uint32{1, 1, 1}, Params: make([]byte, 64)}
		for range a.p.Bindings {
			l.Buffers = append(l.Buffers, make([]byte, 64*4))
		}
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		_ = k.Run(ctx, l)
		if _, err := k.Check(ctx, l, Checks{Subgroups: []int{4}}); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		cancel()
	}
	if refused < n/10 || refused > n-n/30 {
		t.Errorf("%d of %d were refused", refused, n)
	}
}

// TestScratch runs a kernel many times and checks that its allocations do not grow.
func TestScratch(t *testing.T) {
	k := saxpy().compile(t)
	x := random(1024)
	l := Launch{Grid: [3]uint32{4, 1, 1}, Buffers: [][]byte{bytesOf(x), bytesOf(x[512:])}, Params: paramBytes(100, 0)}
	n := testutil.Allocations(100, func() {
		if err := k.Run(context.Background(), l); err != nil {
			t.Fatal(err)
		}
	})
	if n > 8 || k.Scratch() > 64<<10 || k.Lanes() != 256 || k.Program().Name != "saxpy" {
		t.Errorf("%v allocations a run, %d bytes of scratch", n, k.Scratch())
	}
}
