package kernel_test

import (
	"errors"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/internal/ir"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/kernel"
)

type saxpyParams struct {
	N     uint32
	Scale float32
}

var saxpy = kernel.New("saxpy", func(b *kernel.Builder, p *saxpyParams) {
	b.LocalSize(256, 1, 1)
	x := kernel.Input[kernel.F32](b, "x")
	y := kernel.InOut[kernel.F32](b, "y")
	i := b.Index()
	b.If(i.Lt(b.U32(&p.N)), func() {
		y.Set(i, x.At(i).Fma(b.F32(&p.Scale), y.At(i)))
	})
})

func TestBuild(t *testing.T) {
	p, err := saxpy.Program()
	if err != nil {
		t.Fatal(err)
	}
	count := map[ir.Code]int{}
	for _, in := range p.Code {
		count[in.Code]++
	}
	for _, c := range []ir.Code{ir.If, ir.End, ir.Store, ir.Fma} {
		if count[c] != 1 {
			t.Errorf("%d of %v", count[c], c)
		}
	}
	if count[ir.Load] != 2 {
		t.Errorf("%d loads", count[ir.Load])
	}
	if _, err := saxpy.Positions(); err != nil {
		t.Error(err)
	}
}

// TestBuildingIsDeterministic checks that a kernel gives the same program, listing and hash each time, also if other
// kernels were built with the same memory before.
func TestBuildingIsDeterministic(t *testing.T) {
	r := testutil.Rand(t)
	a, err := matmul.Of(tiles{64, 64, 8}).Program()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		_ = wander(r.Uint64()).Err()
		b, err := kernel.NewFamily("matmul", buildMatmul).Of(tiles{64, 64, 8}).Program()
		if err != nil {
			t.Fatal(err)
		}
		if a.Hash() != b.Hash() || a.Listing() != b.Listing() {
			t.Fatalf("another program:\n%v\n%v", a.Listing(), b.Listing())
		}
	}
	other, err := matmul.Of(tiles{64, 64, 16}).Program()
	if err != nil {
		t.Fatal(err)
	}
	if a.Hash() == other.Hash() {
		t.Error("different programs with one hash")
	}
}

// TestPositions checks that each instruction has the position of its line, and that positions do not change the program.
func TestPositions(t *testing.T) {
	var lines []int
	line := func() {
		_, _, l, _ := runtime.Caller(1)
		lines = append(lines, l)
	}
	k := kernel.New("lines", func(b *kernel.Builder, _ *struct{}) {
		lines = nil
		b.LocalSize(64, 1, 1)
		x := kernel.InOut[kernel.F32](b, "x")
		s := kernel.Shared[kernel.F32](b, "s", 64)
		line()
		s.Set(b.Lane(), x.At(b.Index()))
		b.Barrier()
		b.For(kernel.U(0), kernel.U(4), func(i kernel.U32) {
			x.Set(i, s.At(i).Exp())
		})
	})
	p, err := k.Program()
	if err != nil {
		t.Fatal(err)
	}
	q, err := k.Positions()
	if err != nil {
		t.Fatal(err)
	}
	if p.Hash() != q.Hash() || p.Pos != nil || len(q.Pos) != len(q.Code) {
		t.Error("another program with positions")
	}
	for code, after := range map[ir.Code]int{ir.StoreShared: 1, ir.Load: 1, ir.BuiltIn: 1, ir.Barrier: 2, ir.For: 3, ir.Exp: 4, ir.Store: 4} {
		for i, in := range q.Code {
			if in.Code != code {
				continue
			}
			if file, l := ir.Position(q.Pos, ir.Value(i)); filepath.Base(file) != "kernel_test.go" || l != lines[0]+after {
				t.Errorf("%v at %s:%d, want line %d", code, file, l, lines[0]+after)
			}
		}
	}
}

// TestBuildThatDiffers checks that a build function that builds another kernel when it is called again gives an error.
func TestBuildThatDiffers(t *testing.T) {
	n := uint32(0)
	k := kernel.New("k", func(b *kernel.Builder, _ *struct{}) {
		n++
		b.LocalSize(1, 1, 1)
		kernel.Output[kernel.U32](b, "y").Set(kernel.U(0), kernel.U(n))
	})
	if err := k.Err(); err != nil {
		t.Fatal(err)
	}
	var e *kernel.Error
	if _, err := k.Positions(); !errors.As(err, &e) {
		t.Errorf("error %v", err)
	}
}

// TestEqualComputationsAreDoneOnce checks that equal computations share an instruction, but only if the first one is
// visible, and not if they depend on memory that may have changed.
func TestEqualComputationsAreDoneOnce(t *testing.T) {
	k := kernel.New("same", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(8, 1, 1)
		x, y := kernel.Input[kernel.U32](b, "x"), kernel.InOut[kernel.U32](b, "y")
		sum := func() kernel.U32 { return b.Lane().Mul(kernel.U(3)).Add(x.At(kernel.U(1))) }
		b.If(b.GroupX().Eq(kernel.U(0)), func() { y.Set(kernel.U(0), sum()) })
		y.Set(kernel.U(1), sum().Add(sum()))
		b.If(b.GroupX().Eq(kernel.U(0)), func() { y.Set(kernel.U(0), sum()) })
		y.Set(kernel.U(2), y.At(kernel.U(3)).Add(y.At(kernel.U(3))))
	})
	p, err := k.Program()
	if err != nil {
		t.Fatal(err)
	}
	count := map[ir.Code]int{}
	for _, in := range p.Code {
		count[in.Code]++
	}
	if count[ir.Mul] != 2 || count[ir.BuiltIn] != 3 || count[ir.Eq] != 1 {
		t.Errorf("%d products, %d places, %d comparisons, want 2, 3, 1\n%v", count[ir.Mul], count[ir.BuiltIn], count[ir.Eq], p.Listing())
	}
	if count[ir.Load] != 2+2 {
		t.Errorf("%d loads, want 2 of x and 2 of y\n%v", count[ir.Load], p.Listing())
	}
}

// TestIdentities checks that exact identities are folded away, and that inexact ones stay
// instructions.
func TestIdentities(t *testing.T) {
	k := kernel.New("same", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(8, 1, 1)
		u, f := b.Lane(), b.Lane().F32()
		same := func(ok bool, name string) {
			if !ok {
				t.Errorf("%s makes an instruction", name)
			}
		}
		same(u.Mul(kernel.U(1)) == u && kernel.U(1).Mul(u) == u, "u*1")
		same(u.Add(kernel.U(0)) == u && kernel.U(0).Add(u) == u && u.Sub(kernel.U(0)) == u, "u+0")
		same(u.Mul(kernel.U(0)) == kernel.U(0) && u.And(kernel.U(0)) == kernel.U(0), "u*0")
		same(u.Div(kernel.U(1)) == u && u.Shl(kernel.U(0)) == u && u.Or(kernel.U(0)) == u, "u/1")
		same(u.Div(kernel.U(8)) == u.Shr(kernel.U(3)) && u.Mod(kernel.U(8)) == u.And(kernel.U(7)), "u/8")
		same(u.I32().Div(kernel.I(8)) != u.I32().Shr(kernel.U(3)), "no i/8") // rounds towards 0
		same(f.Mul(kernel.F(1)) == f && f.Div(kernel.F(1)) == f && f.Sub(kernel.F(0)) == f, "f*1")
		same(f.Add(kernel.F(0)) != f && f.Mul(kernel.F(0)) != kernel.F(0), "no f+0") // -0, NaN
		same(kernel.Select(kernel.B(true), u, kernel.U(3)) == u, "select")
		c := u.Lt(kernel.U(3))
		same(c.And(kernel.B(true)) == c && c.Or(kernel.B(true)) == kernel.B(true) && c.Xor(kernel.B(false)) == c, "bools")
		v := b.Vec4F(f, f.Neg(), f, f)
		same(v.X() == f && v.Y() == f.Neg() && f.Splat4().W() == f, "components")
		same(b.Vec2F(kernel.F(2), kernel.F(2)).Add(kernel.F(1).Splat2()).X() == kernel.F(3), "constant vectors")
	})
	if err := k.Err(); err != nil {
		t.Error(err)
	}
}

func TestParameters(t *testing.T) {
	type params struct {
		N     uint32
		Shift int32
		Scale float32
	}
	k := kernel.New("params", func(b *kernel.Builder, p *params) {
		b.LocalSize(1, 1, 1)
		kernel.Output[kernel.F32](b, "y").Set(b.U32(&p.N), b.F32(&p.Scale).Add(b.I32(&p.Shift).F32()))
	})
	p, err := k.Program()
	if err != nil {
		t.Fatal(err)
	}
	want := []ir.Uniform{{Name: "N", Type: ir.U32, Offset: 0}, {Name: "Shift", Type: ir.I32, Offset: 4}, {Name: "Scale", Type: ir.F32, Offset: 8}}
	if !slices.Equal(p.Uniforms, want) {
		t.Errorf("uniforms %v", p.Uniforms)
	}
	v := params{7, -1, 0.5}
	bytes := []byte{7, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x3f}
	for _, x := range []any{v, &v} {
		if got, err := k.AppendParams([]byte{9}, x); err != nil || !slices.Equal(got[1:], bytes) {
			t.Errorf("parameters %v, %v", got, err)
		}
	}
	for _, x := range []any{nil, (*params)(nil), 3, struct{ N uint32 }{}, &struct{}{}} {
		if _, err := k.AppendParams(nil, x); !errors.Is(err, kernel.ErrParams) {
			t.Errorf("%T: error %v", x, err)
		}
	}
	for _, x := range []any{nil, struct{}{}, &struct{}{}} {
		if got, err := foreign.AppendParams(nil, x); err != nil || len(got) != 0 {
			t.Errorf("%T for a kernel without: %v, %v", x, got, err)
		}
	}
}

func TestGrids(t *testing.T) {
	for _, c := range []struct {
		s      kernel.Size
		groups [3]uint32
		folded bool
	}{
		{kernel.Grid(3), [3]uint32{3, 1, 1}, false},
		{kernel.Grid(3, 4), [3]uint32{3, 4, 1}, false},
		{kernel.Grid(65535, 65535, 65535), [3]uint32{65535, 65535, 65535}, false},
		{kernel.GridOf(65535), [3]uint32{65535, 1, 1}, false},
		{kernel.GridOf(65536), [3]uint32{32768, 2, 1}, true},
		{kernel.GridFor(1, 64), [3]uint32{1, 1, 1}, false},
		{kernel.GridFor(65, 64), [3]uint32{2, 1, 1}, false},
	} {
		if c.s.Err() != nil || c.s.Groups() != c.groups || c.s.Folded() != c.folded {
			t.Errorf("%v, folded %v, %v; want %v", c.s.Groups(), c.s.Folded(), c.s.Err(), c.groups)
		}
	}
	for i, s := range []kernel.Size{{}, kernel.Grid(0), kernel.Grid(-1), kernel.Grid(65536), kernel.Grid(1, 0), kernel.Grid(1, 1, 65536),
		kernel.Grid(1, 1, 1, 1), kernel.GridOf(0), kernel.GridFor(0, 1), kernel.GridFor(1, 0)} {
		if !errors.Is(s.Err(), kernel.ErrGrid) {
			t.Errorf("%d: error %v", i, s.Err())
		}
	}
	plain := kernel.New("plain", func(b *kernel.Builder, _ *struct{}) {
		b.LocalSize(64, 1, 1)
		kernel.Output[kernel.U32](b, "y").Set(b.GlobalX(), kernel.U(1))
	})
	if err := plain.CheckGrid(kernel.GridOf(70000)); !errors.Is(err, kernel.ErrGrid) {
		t.Errorf("a folded grid for a kernel along x: error %v", err)
	}
	for _, s := range []kernel.Size{kernel.GridOf(65535), kernel.Grid(3, 4)} {
		if err := plain.CheckGrid(s); err != nil {
			t.Error(err)
		}
	}
	if err := saxpy.CheckGrid(kernel.GridOf(70000)); err != nil {
		t.Error(err)
	}
	if err := saxpy.CheckGrid(kernel.Size{}); !errors.Is(err, kernel.ErrGrid) {
		t.Errorf("no grid: error %v", err)
	}
	// A grid for other workgroups would leave lanes out.
	for k, own := range map[*kernel.Kernel]int{plain: 64, saxpy: 256} {
		for _, local := range []int{1, 32, 63, 65, 128} {
			if err := k.CheckGrid(kernel.GridFor(1000, local)); !errors.Is(err, kernel.ErrGrid) {
				t.Errorf("%s over a grid for workgroups of %d: error %v", k.Name(), local, err)
			}
		}
		if err := k.CheckGrid(kernel.GridFor(1000, own)); err != nil || k.GridFor(1000) != kernel.GridFor(1000, own) {
			t.Errorf("%s: %v, %v", k.Name(), err, k.GridFor(1000).Groups())
		}
	}
	if err := (*kernel.Kernel)(nil).GridFor(3).Err(); err == nil {
		t.Error("a grid for no kernel")
	}
	if strconv.IntSize == 64 {
		for _, s := range []kernel.Size{kernel.GridOf(math.MaxInt), kernel.GridFor(math.MaxInt, 1024)} {
			if !errors.Is(s.Err(), kernel.ErrGrid) {
				t.Errorf("a huge grid: error %v", s.Err())
			}
		}
	}
	r := testutil.Rand(t)
	for range 1000 {
		n, local := 1+r.IntN(1<<31-1), 1+r.IntN(1024)
		s := kernel.GridFor(n, local)
		g := s.Groups()
		lanes := int64(g[0]) * int64(g[1]) * int64(local)
		if s.Err() != nil || lanes < int64(n) || g[0] > kernel.MaxGroups || lanes-int64(n) >= int64(local)*int64(g[1]) {
			t.Errorf("GridFor(%d, %d) = %v, %v", n, local, g, s.Err())
		}
	}
}

func TestFamily(t *testing.T) {
	var built atomic.Int32
	f := kernel.NewFamily("f", func(b *kernel.Builder, _ *struct{}, n int) {
		built.Add(1)
		b.LocalSize(n, 1, 1)
	})
	if k := f.Of(3); k != f.Of(3) || k == f.Of(4) {
		t.Error("the kernels of a family are not kept")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range 1000 {
				if p, err := f.Of(n%100 + 1).Program(); err != nil || p.Local[0] != uint32(n%100+1) {
					t.Errorf("%v, %v", p, err)
				}
			}
		}()
	}
	wg.Wait()
	if f.Of(0).Err() == nil {
		t.Error("no lanes, no error")
	}
	g := kernel.NewFamily("g", func(b *kernel.Builder, _ *struct{}, x float64) { b.LocalSize(1, 1, 1) })
	for range 2000 { // the table does not keep a key that never equals itself
		if err := g.Of(math.NaN()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.Allocations(100, func() { f.Of(7) }); n != 0 {
		t.Errorf("%v allocations for a kernel that is kept", n)
	}
}

// TestFamilyFindsWithoutMemory checks that Of does not allocate for an existing kernel, although the table has keys of
// any type.
func TestFamilyFindsWithoutMemory(t *testing.T) {
	type sizes struct {
		Rows, Cols int
		Name       string
	}
	f := kernel.NewFamily("k", func(b b, _ none, s sizes) { b.LocalSize(s.Rows, s.Cols, 1) })
	s := sizes{4, 8, "a"}
	k, other := f.Of(s), f.Of(sizes{4, 8, "b"})
	if k == other || f.Of(s) != k {
		t.Error("one kernel for two values, or two for one")
	}
	if err := k.Err(); err != nil {
		t.Error(err)
	}
	if n := testing.AllocsPerRun(100, func() { s.Name = "a"; f.Of(s) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
