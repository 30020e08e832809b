package emu

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/ptx"
)

// runAll launches every kernel of a text with small limits. No launch may panic or run forever. It ignores findings.
func runAll(t testing.TB, text string) {
	m, err := Parse(text)
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(background, 10*time.Second)
	defer cancel()
	for _, k := range m.Kernels() {
		for _, c := range []Config{{}, {Schedule: Shuffled, Seed: 3}} {
			c.Steps, c.Memory = 2000, 1<<20
			d := newDevice(t, c)
			buf := d.words("x", make([]uint32, 256))
			var params []any
			for _, p := range k.params {
				switch p.bytes {
				case 1:
					params = append(params, uint8(5))
				case 2:
					params = append(params, uint16(5))
				case 4:
					params = append(params, uint32(5))
				case 8:
					params = append(params, buf)
				default:
					params = append(params, &TensorMap{Base: buf &^ 15, Type: "f32", Dims: []int{16, 8}, Strides: []int{64}, Box: []int{16, 4}})
				}
			}
			block := Dim{X: 40}
			if k.exactly {
				block = Dim{k.threads[0], k.threads[1], k.threads[2]}
			}
			_ = d.Launch(ctx, k, Dim{X: 2}, block, 1024, params...)
			if ctx.Err() != nil {
				t.Fatalf("it goes on and on:\n%s", text)
			}
		}
	}
}

// randomText returns a kernel of random instructions of the builder. Most operands fit their instructions.
func randomText(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(`.version 8.0
.target sm_90a
.address_size 64
.extern .shared .align 128 .b8 dyn[];
.visible .entry k(.param .u64 p0, .param .u32 p1, .param .align 64 .b8 p2[128])
{
	.reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .f32 %f<8>; .reg .f64 %g<4>;
	.shared .align 16 .b8 s[512];
	ld.param.u64 %d0, [p0];
	ld.param.u32 %r0, [p1];
	mov.u32 %r1, s;
	mov.u32 %r2, dyn;
	mov.u32 %r3, %tid.x;
	mad.lo.u32 %r1, %r3, 4, %r1;
	mad.wide.u32 %d0, %r3, 4, %d0;
	mov.b64 %d1, p2;
	mbarrier.init.shared.b64 [%r2], 1;
`)
	all := ptx.Instructions()
	reg := func(typ string) string {
		p, _, _ := typeBits(typ)
		if r.IntN(8) == 0 && typ != "Pred" {
			return fmt.Sprint(r.IntN(40))
		}
		return fmt.Sprint(p, r.IntN(4))
	}
	address := func() string {
		return fmt.Sprintf("[%s%+d]", []string{"%r1", "%r2", "%d0", "s", "dyn", "%r3"}[r.IntN(6)], 4*r.IntN(8))
	}
	vector := func(n int) string {
		v := make([]string, n)
		for i := range v {
			v[i] = reg("U32")
		}
		return "{" + strings.Join(v, ", ") + "}"
	}
	n, head := 3+r.IntN(20), b.String()
	for i := 0; i < n; {
		guard := ""
		if r.IntN(4) == 0 {
			guard = fmt.Sprintf("\t@%s%%p%d ", []string{"", "!"}[r.IntN(2)], r.IntN(4))
		}
		in := all[r.IntN(len(all))]
		text := strings.Replace(in.Text, "$n", "16", 1)
		var ops []string
		switch {
		case strings.HasPrefix(text, "bra"):
			ops = []string{fmt.Sprintf("L%d", r.IntN(n))}
		case in.Memory:
			text += ".u32"
			ops = []string{reg("U32"), address()}
			if strings.HasPrefix(text, "st") {
				ops[0], ops[1] = ops[1], ops[0]
			}
		case strings.HasPrefix(text, "shfl"):
			ops = []string{reg("U32"), reg("U32"), reg("U32"), "31", "-1"}
		case strings.HasPrefix(text, "ldmatrix"):
			ops = []string{vector(1 << r.IntN(3)), address()}
		case strings.HasPrefix(text, "stmatrix"):
			ops = []string{address(), vector(1 << r.IntN(3))}
		case strings.HasPrefix(text, "mma"):
			ops = []string{vector(4), vector(4), vector(2), vector(4)}
		case strings.HasPrefix(text, "wgmma.mma"):
			ops = []string{vector(8), reg("U64"), reg("U64"), "1", "1", "1", "0", "0"}
		case strings.Contains(text, "tensor"):
			ops = []string{address(), "[%d1, {%r0, %r3}]", "[%r2]"}
			if strings.Contains(text, "global.shared") {
				ops = []string{"[%d1, {%r0, %r3}]", address()}
			}
		case strings.HasPrefix(text, "cp.async.c"):
			ops = []string{address(), address(), "4"}
			if strings.Contains(text, "commit") {
				ops = nil
			}
		case strings.HasPrefix(text, "atom"), strings.HasPrefix(text, "red."):
			ops = []string{reg(in.Types[1]), address(), reg(in.Types[1])}
			if strings.HasPrefix(text, "red.") {
				ops = ops[1:]
			}
		case strings.HasPrefix(text, "mbarrier"):
			ops = [][]string{{address(), "1"}, {"_", address()}, {reg("Pred"), address(), "0"}}[r.IntN(3)]
		case strings.Contains(text, "wait_group"):
			ops = []string{fmt.Sprint(r.IntN(3))}
		default:
			for _, typ := range in.Types {
				if typ != "" {
					ops = append(ops, reg(typ))
				}
			}
			if strings.HasPrefix(text, "bar.") && len(ops) > 0 {
				ops[0] = fmt.Sprint(r.IntN(3))
			}
		}
		line := fmt.Sprintf("%s\t%s %s;\n", guard, text, strings.Join(ops, ", "))
		label := ""
		if strings.HasPrefix(text, "bra") {
			label = ops[0] + ":\n"
		}
		if err := checkText(head + label + line + "\tret;\n}\n"); err == nil || r.IntN(500) == 0 {
			fmt.Fprintf(&b, "L%d:\n%s", i, line)
			i++
		}
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

// TestRandom runs random instructions.
func TestRandom(t *testing.T) {
	n, ran := 1000, 0
	if testing.Short() {
		n = 100
	}
	for seed := range n {
		text := randomText(rand.New(rand.NewPCG(uint64(seed), 9)))
		if m, err := Parse(text); err == nil && len(m.kernels) == 1 && m.Err() == nil {
			ran++
		}
		func() {
			defer func() {
				if r := recover(); r != nil {
					t.Errorf("panic: %v\n%s", r, text)
					panic(r)
				}
			}()
			runAll(t, text)
		}()
	}
	if ran < n/2 {
		t.Errorf("only %d of %d texts were valid", ran, n)
	}
	t.Logf("%d of %d ran", ran, n)
}

// FuzzText parses and runs any text.
func FuzzText(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(randomText(rand.New(rand.NewPCG(seed, 9))))
	}
	for _, w := range []func(string) func(k *ptx.Kernel){gemmKernel, sumKernel, copyKernel, wgmmaKernel, mmaKernel} {
		m := ptx.NewModule(ptx.SM90a)
		m.Kernel("k", w(""))
		text, err := m.PTX()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range callTexts {
		f.Add(textHead + text)
	}
	f.Fuzz(func(t *testing.T, text string) { runAll(t, text) })
}
