package emu_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

const hostileHead = ".version 8.0\n.target sm_90a\n.address_size 64\n"

// TestHostileTexts checks that malicious texts give errors, and neither end the process nor use all of its memory.
func TestHostileTexts(t *testing.T) {
	for name, body := range map[string]string{
		"a hint for the size":    ".entry k(){.reg .b32 %r<2>;.reg .b64 %d<2>; cp.async.ca.shared.global.L2::cache_hint [%r1],[%d1],4; ret;}",
		"operands behind a size": ".entry k(){.reg .b32 %r<2>;.reg .b64 %d<2>; cp.async.ca.shared.global [%r1],[%d1],4,4,4; ret;}",
		"an offset that is huge": ".entry k(.param .u32 a){.reg .b32 %r<2>; ld.param.u32 %r0,[a+9223372036854775804]; ret;}",
		"addresses of addresses": ".entry k(){.reg .b32 %r<2>; mov.u32 %r1, " + strings.Repeat("[", 4<<20) + "; ret;}",
		"not, not":               ".entry k(){.reg .pred %p<2>; mov.pred %p1, " + strings.Repeat("!", 4<<20) + "; ret;}",
		"pairs of pairs":         ".entry k(){.reg .b32 a; mov.u32 a, " + strings.Repeat("a|", 2<<20) + "a; ret;}",
		"many registers":         strings.Repeat(".entry k(){.reg .b32 r<4194304>;ret;}", 100),
	} {
		t.Run(name, func(t *testing.T) {
			if m, err := emu.Parse(hostileHead + body); err == nil && m.Err() == nil {
				t.Error("taken")
			}
		})
	}
}

// TestCopyOperands checks that a copy may have a source size, a cache hint, or both.
func TestCopyOperands(t *testing.T) {
	for _, rest := range []string{"16", "16, %r1", "16, %p1", "16, %d1", "16, %r1, %d1"} {
		hint := ""
		if strings.HasSuffix(rest, "%d1") {
			hint = ".L2::cache_hint"
		}
		hostile(t, ".entry k(){.reg .pred %p<2>; .reg .b32 %r<2>;.reg .b64 %d<2>; cp.async.cg.shared.global"+hint+" [%r1],[%d1],"+rest+"; ret;}")
	}
}

func hostile(t *testing.T, body string) *emu.Kernel {
	t.Helper()
	m, err := emu.Parse(hostileHead + body)
	if err != nil {
		t.Fatal(err)
	}
	k, err := m.Kernel("k")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// TestInvalidatedBarrier waits for an mbarrier that another thread invalidates: Launch must
// return a finding, as the wait cannot end.
func TestInvalidatedBarrier(t *testing.T) {
	k := hostile(t, `.entry k(){.reg .b32 %r<2>;.reg .pred %p<3>;.shared .align 8 .b8 s[8];
mov.u32 %r0,%tid.x; setp.eq.u32 %p0,%r0,0; setp.ge.u32 %p1,%r0,32;
@%p0 mbarrier.init.shared.b64 [s],1;
bar.sync 0;
@%p1 bra B;
@%p0 mbarrier.try_wait.parity.shared.b64 %p2,[s],0;
ret;
B: nanosleep.u32 9; setp.eq.u32 %p0,%r0,32;
@%p0 mbarrier.inval.shared.b64 [s]; ret;}`)
	err := emu.NewMachine(emu.Config{}).Launch(t.Context(), k, emu.Dim{}, emu.Dim{X: 64}, 0)
	var found emu.Findings
	if !errors.As(err, &found) {
		t.Errorf("%v", err)
	}
}

// TestSwizzledEnd checks that a swizzled copy needs all bytes of its last line.
func TestSwizzledEnd(t *testing.T) {
	k, err := emu.Build(ptx.SM90a, "k", func(k *ptx.Kernel) {
		m := ptx.TensorMapParam(k, "m")
		bar := ptx.MBarrierAt(ptx.SharedArray[ptx.U64](k, "b", 1))
		k.Align(128)
		s := ptx.DynamicShared[ptx.F32](k, 260)
		k.If(k.Special(ptx.TidX).Eq(ptx.U(0)), func() {
			bar.Init(ptx.U(1))
			bar.ArriveExpect(ptx.U(16))
			ptx.TensorLoad(s.Offset(256), m, bar, ptx.S(0), ptx.S(0))
			bar.Wait(ptx.U(0))
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	d := emu.NewMachine(emu.Config{})
	x, err := d.Floats("x", make([]float32, 128))
	if err != nil {
		t.Fatal(err)
	}
	tm := &emu.TensorMap{Base: x, Type: "f32", Dims: []int{16, 8}, Strides: []int{64}, Box: []int{4, 1}, Swizzle: ptx.Swizzle128}
	var found emu.Findings
	if err := d.Launch(t.Context(), k, emu.Dim{}, emu.Dim{X: 32}, 1040, tm); !errors.As(err, &found) || found[0].Kind != emu.OutOfBounds {
		t.Errorf("%v", err)
	}
}

// TestSteps checks that a launch ends soon after its maximum number of steps, and soon after its context.
func TestSteps(t *testing.T) {
	k := hostile(t, ".entry k(){L: bra L;}")
	d := emu.NewMachine(emu.Config{Steps: 10})
	var found emu.Findings
	if err := d.Launch(t.Context(), k, emu.Dim{}, emu.Dim{X: 64}, 0); !errors.As(err, &found) || found[0].Kind != emu.Budget {
		t.Errorf("%v", err)
	}
	if n := d.Stats().Warps; n > 20 {
		t.Errorf("%d steps, where 10 may be", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := emu.NewMachine(emu.Config{Steps: 1 << 60}).Launch(ctx, k, emu.Dim{}, emu.Dim{X: 64}, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
