package emu

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

func TestMemory(t *testing.T) {
	m := NewMachine(Config{Memory: 1000})
	x, err := m.Alloc("x", 100)
	if err != nil || x%256 != 0 || x%512 == 0 {
		t.Fatalf("%#x, %v", uint64(x), err)
	}
	if _, err := m.Alloc("y", 901); !errors.Is(err, ErrLimit) {
		t.Errorf("too much: %v", err)
	}
	if _, err := m.Alloc("y", -1); !errors.Is(err, ErrLimit) {
		t.Errorf("negative: %v", err)
	}
	for _, c := range []struct {
		p Ptr
		n int
	}{{x, 101}, {x - 1, 1}, {x + 100, 1}, {0, 4}, {math.MaxUint64, 4}} {
		if err := m.Write(c.p, make([]byte, c.n)); !errors.Is(err, ErrMemory) {
			t.Errorf("write of %d bytes at %#x: %v", c.n, uint64(c.p), err)
		}
		if err := m.Read(c.p, make([]byte, c.n)); !errors.Is(err, ErrMemory) {
			t.Errorf("read of %d bytes at %#x: %v", c.n, uint64(c.p), err)
		}
	}
	if err := m.Write(x+4, []byte{1, 2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	if v, err := m.ReadWords(x, 3); err != nil || v[0] != math.MaxUint32 || v[1] != 0x04030201 || v[2] != math.MaxUint32 {
		t.Errorf("%#x, %v", v, err)
	}
	if err := m.Free(x); err != nil {
		t.Error(err)
	}
	if err := m.Free(x); !errors.Is(err, ErrMemory) {
		t.Errorf("freed twice: %v", err)
	}
	if _, err := m.Alloc("y", 1000); err != nil {
		t.Errorf("freed memory cannot be allocated again: %v", err)
	}
}

func TestLaunchErrors(t *testing.T) {
	k := build(t, func(k *ptx.Kernel) {
		k.Block(64, 1, 1)
		x, n := ptx.GlobalParam[ptx.U32](k, "x"), ptx.Param[ptx.U32](k, "n")
		x.At(n).Store(n)
	})
	cluster := buildFor(t, ptx.SM90, func(k *ptx.Kernel) { k.Cluster(2, 1, 1) })
	d := newDevice(t, Config{})
	x := d.empty("x", 64)
	for _, c := range []struct {
		name   string
		k      *Kernel
		grid   Dim
		block  Dim
		shared int
		params []any
		want   error
	}{
		{"no kernel", nil, Dim{}, Dim{X: 64}, 0, nil, ErrLaunch},
		{"negative grid", k, Dim{Y: -1}, Dim{X: 64}, 0, []any{x, uint32(1)}, ErrLaunch},
		{"negative block", k, Dim{}, Dim{X: 64, Z: -2}, 0, []any{x, uint32(1)}, ErrLaunch},
		{"block", k, Dim{}, Dim{X: 32}, 0, []any{x, uint32(1)}, ErrLaunch},
		{"large block", k, Dim{}, Dim{X: 64, Y: 64}, 0, []any{x, uint32(1)}, ErrLimit},
		{"large grid", k, Dim{X: 1 << 20, Y: 1 << 20, Z: 1 << 20}, Dim{X: 64}, 0, []any{x, uint32(1)}, ErrLimit},
		{"shared", k, Dim{}, Dim{X: 64}, 1 << 20, []any{x, uint32(1)}, ErrLimit},
		{"few", k, Dim{}, Dim{X: 64}, 0, []any{x}, ErrLaunch},
		{"size", k, Dim{}, Dim{X: 64}, 0, []any{x, uint64(1)}, ErrLaunch},
		{"type", k, Dim{}, Dim{X: 64}, 0, []any{x, 1}, ErrLaunch},
		{"map", k, Dim{}, Dim{X: 64}, 0, []any{x, &TensorMap{}}, ErrLaunch},
		{"cluster", cluster, Dim{X: 3}, Dim{X: 64}, 0, nil, ErrLaunch},
		{"bounds", k, Dim{}, Dim{X: 64}, 0, []any{x, uint32(16)}, OutOfBounds},
	} {
		if err := d.Launch(background, c.k, c.grid, c.block, c.shared, c.params...); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	ctx, cancel := context.WithCancel(background)
	cancel()
	if err := d.Launch(ctx, k, Dim{}, Dim{X: 64}, 0, x, uint32(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestStats checks the counters of a kernel with known accesses.
func TestStats(t *testing.T) {
	k := build(t, reluKernel(""))
	d := newDevice(t, Config{})
	n := 1024
	x, y := d.floats("x", make([]float32, n)), d.empty("y", 4*n)
	d.launch(k, Dim{X: 2}, Dim{X: 128}, 0, x, y, uint32(n))
	s := d.Stats()
	if s.LoadBytes != int64(4*n) || s.StoreBytes != int64(4*n) || s.LoadSectors != int64(n/8) || s.StoreSectors != int64(n/8) || s.LoadRequests != 8 {
		t.Errorf("%+v", s.Counts)
	}
	sum := Counts{}
	for _, at := range s.Instructions() {
		sum.add(&at.Counts)
		if at.LoadBytes > 0 && (!strings.Contains(at.Text, "ld.global.v4.f32") || !strings.HasSuffix(at.Pos.File, "kernels_test.go")) {
			t.Errorf("%+v", at)
		}
	}
	if sum != s.Counts {
		t.Errorf("the sum is %+v, not %+v", sum, s.Counts)
	}
}

// TestPasses counts passes of shared memory.
func TestPasses(t *testing.T) {
	for _, c := range []struct {
		stride   uint64
		bytes    int
		n, least int
	}{
		{4, 4, 1, 1}, {8, 4, 2, 1}, {128, 4, 32, 1}, {132, 4, 1, 1}, {0, 4, 1, 1}, {64, 4, 16, 1},
		{8, 8, 2, 2}, {16, 16, 4, 4}, {128, 16, 32, 4}, {144, 16, 4, 4}, {1, 1, 1, 1}, {2, 2, 1, 1},
	} {
		var addr [32]uint64
		for i := range addr {
			addr[i] = 1024 + uint64(i)*c.stride
		}
		if n, least := passes(&addr, math.MaxUint32, c.bytes); n != c.n || least != c.least {
			t.Errorf("%d bytes every %d: %d passes of %d at least", c.bytes, c.stride, n, least)
		}
	}
}

// TestFinding checks the text of a finding.
func TestFinding(t *testing.T) {
	m, err := Parse(`.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p)
{
	.reg .b64 %d<2>;
	.reg .b32 %r<2>;
	ld.param.u64 %d0, [p];
	mov.u32 %r0, %tid.x;
	st.global.u32 [%d0+4], %r0;
	ret;
}`)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	d := newDevice(t, Config{})
	err = d.Launch(background, k, Dim{}, Dim{X: 2}, 0, d.empty("y", 8))
	var f *Finding
	if !errors.Is(err, Race) || !errors.As(err, &f) {
		t.Fatal(err)
	}
	const want = "kernel k: race: y+4, a write where another thread reads or writes (block 0 thread 1, and block 0 thread 0 at line 10 of the PTX)" +
		" in line 10 of the PTX: st.global.u32 [%d0+4], %r0;"
	if f.Error() != want {
		t.Errorf("%q", f.Error())
	}
	if _, err := m.Kernel("x"); err == nil {
		t.Error("there is a kernel x")
	}
}

// checkText returns the error of parsing a text or one of its kernels.
func checkText(text string) error {
	m, err := Parse(text)
	if err != nil {
		return err
	}
	return m.Err()
}

// TestSyntax parses texts with syntax errors.
func TestSyntax(t *testing.T) {
	const head, tail = ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b32 %r<4>; .reg .pred %p<2>; .reg .f32 %f<2>; .shared .b8 s[16];\n", "\nret;\n}\n"
	if err := checkText(head + tail); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"add.u32 %r0, %r1;", "add.u32 %r0, %r1, %r9;", "add.u32 %f0, %f0, %p0;", "add.u32 %r0, %r1, 0x1ffffffff;", "bra NOWHERE;", "@%r0 ret;",
		"L: L:", "ld.global.u32 %r0, %r1;", "ld.param.u64 %r0, [p];", "ld.param.u32 %r0, [p+6];", "ld.param.u32 %r0, [q];", "mov.u32 %r0, %nothing;", "{", "}",
		"st.shared.v2.u32 [s], {%r0};", "add.u32 5, %r0, %r1;", "frobnicate %r0;", "add.u32 %r0, %r1, 0f00000000000;", ".reg .b32 %x<99999999>;", ".shared .b8 t[999999];",
		"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r0}, {%r0}, {%r0};", "ld.u32 %r0, [%r1];", "add.u32 %r0, %r1, !%r2;", "/* no end",
		"setp.eq.u32 %r0, %r1, %r2;", "selp.b32 %r0, %r1, %r2, %r3;", "cp.async.ca.shared.global [s], [%r0], 5;", "bar.sync;",
	} {
		if err := checkText(head + s + tail); err == nil {
			t.Errorf("%s is taken", s)
		} else if !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: no line in %v", s, err)
		}
	}
	for _, s := range []string{"x", ".entry k", ".version 7.0 .visible .entry k() {", ".entry k() {} .entry k() {}"} {
		if _, err := Parse(s); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}

// TestGoesOnBriefly checks that a launch continues only briefly after a finding. A long loop that leaves its array must
// not run to its end, although the limit of steps allows that, but defects soon after it must be found too.
func TestGoesOnBriefly(t *testing.T) {
	k := build(t, func(k *ptx.Kernel) {
		x, n := ptx.GlobalParam[ptx.U32](k, "x"), ptx.Param[ptx.U32](k, "n")
		k.For(ptx.U(0), n, ptx.U(1), func(i ptx.U32) { x.At(i).Store(i) })
		x.Offset(-1).Store(n)
	})
	d := newDevice(t, Config{})
	for _, c := range []struct {
		n    uint32
		want int
	}{{17, 2}, {1 << 31, 1}} {
		var found Findings
		if err := d.Launch(background, k, Dim{}, Dim{X: 1}, 0, d.empty("x", 64), c.n); !errors.As(err, &found) || len(found) != c.want || found[0].Kind != OutOfBounds {
			t.Errorf("%d: %v", c.n, err)
		}
		if n := d.Stats().Warps; n > stepsAfter+2*sliceSteps {
			t.Errorf("%d: %d instructions", c.n, n)
		}
	}
}
