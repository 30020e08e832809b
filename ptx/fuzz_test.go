package ptx_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"testing"

	"github.com/rayo-go/rayo/ptx"
)

// program makes builder calls from bytes.
type program struct {
	k     *ptx.Kernel
	data  []byte
	depth int
	loops int
	u     []ptx.U32
	f     []ptx.F32
	p     []ptx.Pred
	vars  []ptx.Var[ptx.F32]
	x     ptx.Global[ptx.F32]
	s     ptx.Shared[ptx.F32]
	label []ptx.Label
}

func (g *program) byte() int {
	if len(g.data) == 0 {
		return 0
	}
	b := g.data[0]
	g.data = g.data[1:]
	return int(b)
}

// slip returns n or, rarely, 0, which is a mistake.
func (g *program) slip(n int) int {
	if g.byte()%64 == 63 {
		return 0
	}
	return n
}

func pick[T any](g *program, list []T) T { return list[g.byte()%len(list)] }

// body adds up to 16 random calls to a program, and then removes the values computed in
// them from the lists, as they are not defined outside the body.
func (g *program) body() {
	u, f, p := len(g.u), len(g.f), len(g.p)
	g.depth++
	for n := g.byte()%16 + 1; n > 0 && len(g.data) > 0; n-- {
		g.call()
	}
	g.depth--
	if g.byte()%64 != 63 { // now and then a mistake
		g.u, g.f, g.p = g.u[:u], g.f[:f], g.p[:p]
	}
}

func (g *program) call() {
	k := g.k
	switch g.byte() % 24 {
	case 0:
		g.u = append(g.u, pick(g, g.u).Add(pick(g, g.u)))
	case 1:
		g.u = append(g.u, pick(g, g.u).MulAdd(pick(g, g.u), pick(g, g.u)))
	case 2:
		g.u = append(g.u, pick(g, g.u).Shl(ptx.U(uint32(g.byte()))))
	case 3:
		g.f = append(g.f, pick(g, g.f).Fma(pick(g, g.f), pick(g, g.f)))
	case 4:
		g.f = append(g.f, pick(g, g.f).Mul(ptx.F(float32(g.byte())-3)))
	case 5:
		g.f = append(g.f, pick(g, g.u).F32().Max(pick(g, g.f)))
	case 6:
		g.p = append(g.p, pick(g, g.u).Lt(pick(g, g.u)), pick(g, g.f).Ge(pick(g, g.f)))
	case 7:
		g.f = append(g.f, g.x.At(pick(g, g.u)).Offset(g.byte()-128).Load())
	case 8:
		v := g.x.At(pick(g, g.u)).Offset(g.byte() &^ g.slip(3)).Load4()
		g.f = append(g.f, v[:]...)
	case 9:
		g.s.At(pick(g, g.u)).Offset(g.byte()).Store(pick(g, g.f))
	case 10:
		g.x.At(pick(g, g.u)).Offset(g.byte() &^ g.slip(3)).Store4([4]ptx.F32{pick(g, g.f), pick(g, g.f), pick(g, g.f), pick(g, g.f)})
	case 11:
		g.f = append(g.f, ptx.ShuffleXor(pick(g, g.f), ptx.U(uint32(g.byte())&31)))
	case 12:
		k.Sync()
	case 13:
		pick(g, g.vars).Set(pick(g, g.f))
	case 14:
		g.f = append(g.f, pick(g, g.vars).Get())
	case 15:
		ptx.MulAddTo(pick(g, g.vars), pick(g, g.f), pick(g, g.f))
	case 16:
		if g.depth < 6 {
			k.If(pick(g, g.p), g.body)
		}
	case 17:
		if g.depth < 6 {
			k.IfElse(pick(g, g.p), g.body, g.body)
		}
	case 18:
		if g.depth < 6 {
			k.For(pick(g, g.u), pick(g, g.u), ptx.U(uint32(g.byte()|g.slip(1))), func(i ptx.U32) {
				g.u = append(g.u, i)
				g.loops++
				g.body()
				g.loops--
				g.u = g.u[:max(1, len(g.u)-1)]
			})
		}
	case 19:
		k.When(pick(g, g.p), func() { pick(g, g.vars).Set(pick(g, g.f)) })
	case 20:
		k.ReturnIf(pick(g, g.p))
	case 21:
		ptx.ReduceAdd(g.x.At(pick(g, g.u)), pick(g, g.f))
	case 22:
		g.f = append(g.f, ptx.Select(pick(g, g.p), pick(g, g.f), pick(g, g.f)))
	case 23:
		switch g.byte() % 8 {
		case 0:
			g.label = append(g.label, k.NewLabel())
		case 1:
			if len(g.label) > 0 {
				k.Place(g.label[0])
				g.label = g.label[g.slip(1):]
			}
		case 2:
			if len(g.label) > 0 {
				k.BranchIf(pick(g, g.p), pick(g, g.label))
			}
		case 3:
			if g.loops > 0 || g.slip(1) == 0 {
				k.BreakIf(pick(g, g.p))
			}
		case 4:
			k.Raw("mov.f32 $$, $$", pick(g, g.f), ptx.F(2))
		case 5:
			g.u = append(g.u, g.p[0].Ballot(ptx.AllLanes))
		case 6:
			ptx.CopyAsync(g.s.Offset(4*g.byte()), g.x.Offset(g.byte()&^g.slip(3)), 16)
			k.CopyCommit()
			k.CopyWait(0)
		case 7:
			g.x.Store(g.s.Offset(g.byte()).Load())
		}
	}
}

func (g *program) build(k *ptx.Kernel) {
	g.k = k
	g.x, g.s = ptx.GlobalParam[ptx.F32](k, "x"), ptx.SharedArray[ptx.F32](k, "s", 256)
	g.u = []ptx.U32{ptx.Param[ptx.U32](k, "n"), k.Special(ptx.TidX), ptx.U(1), ptx.U(7)}
	g.f = []ptx.F32{ptx.Param[ptx.F32](k, "a"), ptx.F(1)}
	g.p = []ptx.Pred{g.u[0].Lt(g.u[1]), ptx.Is(true)}
	g.vars = []ptx.Var[ptx.F32]{ptx.NewVar(k, ptx.F(0)), ptx.NewVar(k, g.f[0])}
	for len(g.data) > 0 && k.Instructions() < 2000 {
		g.body()
	}
	for _, l := range g.label {
		k.Place(l)
	}
	g.x.Store(g.vars[0].Get().Add(g.vars[1].Get()))
}

// FuzzBuilder builds random programs. No call may panic, the same bytes must give the same text, and ptxas must accept
// a module without mistakes before and after the passes.
func FuzzBuilder(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("the quick brown fox jumps over the lazy dog, and then it runs around"))
	f.Add([]byte{15, 16, 0, 12, 12, 12, 20, 1, 18, 0, 1, 3, 8, 7, 1, 2, 3, 15, 1, 1, 1, 23, 0, 23, 1, 0, 23, 2, 0, 0})
	f.Add([]byte{9, 17, 1, 4, 19, 0, 0, 0, 14, 1, 4, 13, 1, 1, 18, 3, 2, 1, 5, 9, 1, 1, 1, 12, 23, 3, 0, 22, 1, 1, 1})
	_, noPtxas := exec.LookPath("ptxas")
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4096 {
			return
		}
		m := ptx.NewModule(ptx.SM80)
		m.RecordPositions()
		m.Kernel("f", (&program{data: data}).build)
		text, err := m.PTX()
		m2 := ptx.NewModule(ptx.SM80)
		m2.Kernel("f", (&program{data: data}).build)
		if text2, err2 := m2.PTX(); text2 != text || (err == nil) != (err2 == nil) {
			t.Fatal("the same calls gave different bytes")
		}
		if err != nil {
			var e *ptx.Error
			if !errors.As(err, &e) || e.Pos.File == "" {
				t.Fatalf("an error without a position: %v", err)
			}
			return
		}
		found := m.Verify()
		if noPtxas == nil {
			assemble(t, []byte(text), ptx.SM80, "-O0")
		}
		if err := m.Apply(ptx.Rewrites()...); err != nil {
			t.Fatal(err)
		}
		after, err := m.PTX()
		if err != nil {
			t.Fatal(err)
		}
		// A module that is correct before the passes must be correct after them.
		if err := m.Verify(); found == nil && err != nil {
			t.Fatalf("after the passes: %v\n%s\nbefore:\n%s", err, after, text)
		}
		if noPtxas == nil {
			assemble(t, []byte(after), ptx.SM80, "-O0")
		}
	})
}

// TestRandomPrograms assembles many random programs at once, as they are built
// and as the passes leave them.
func TestRandomPrograms(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	m := ptx.NewModule(ptx.SM80)
	kept := 0
	for i := range 600 {
		data := make([]byte, 16+r.IntN(300))
		for j := range data {
			data[j] = byte(r.Uint32())
		}
		one := ptx.NewModule(ptx.SM80)
		one.Kernel("f", (&program{data: data}).build)
		if one.Err() != nil {
			continue
		}
		if one.Verify() == nil {
			if err := one.Apply(ptx.Rewrites()...); err != nil {
				t.Fatal(err)
			}
			if err := one.Verify(); err != nil {
				text, _ := one.PTX()
				t.Errorf("program %d after the passes: %v\n%s", i, err, text)
			}
		}
		m.Kernel(fmt.Sprintf("f%d", i), (&program{data: data}).build)
		kept++
	}
	if kept < 100 {
		t.Fatalf("only %d programs without mistakes", kept)
	}
	for _, passes := range [][]ptx.Pass{nil, ptx.Rewrites()} {
		if err := m.Apply(passes...); err != nil {
			t.Fatal(err)
		}
		text, err := m.AppendPTX(nil)
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, text, ptx.SM80, "-O0")
	}
}
