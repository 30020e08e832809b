package ptxkernels

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// attentionSizes are batch, heads of queries and of keys, queries, keys and the
// elements of a head.
var attentionSizes = []struct{ b, h, kv, tq, tk, d int }{
	{1, 1, 1, 1, 1, 8}, {2, 3, 3, 5, 7, 8}, {1, 4, 2, 17, 33, 24}, {1, 8, 2, 1, 70, 40}, {1, 2, 1, 70, 31, 64},
	{1, 2, 2, 65, 129, 64}, {1, 6, 1, 7, 129, 16}, {1, 1, 1, 3, 0, 8}, {1, 1, 1, 67, 67, 128}, {1, 2, 1, 3, 300, 128}, {1, 1, 1, 19, 40, 200},
	{1, 2, 1, 1, 600, 64}, {1, 1, 1, 20, 70, 136}, {1, 4, 1, 2, 67, 256},
}

func attentionTrial(t op.DType, causal bool, b, h, kv, tq, tk, d int) *trial {
	return newTrial(op.Attention, op.AttentionOpts{Causal: causal}.Attrs(), t, normal(b, h, tq, d), normal(b, kv, tk, d), normal(b, kv, tk, d))
}

func TestAttention(t *testing.T) {
	for _, s := range attentionSizes {
		for _, causal := range []bool{false, true} {
			if !sampled() {
				continue
			}
			typ := []op.DType{op.F16, op.BF16, op.F32}[rand.IntN(3)]
			t.Run(fmt.Sprintf("%v/%v/%v", s, causal, typ), func(t *testing.T) {
				attentionTrial(typ, causal, s.b, s.h, s.kv, s.tq, s.tk, s.d).must(t, a100)
			})
		}
	}
}

// TestAttentionLaid tests all kernels with strided operands and results: queries, keys and values
// are heads of one array, and the result merges the heads.
func TestAttentionLaid(t *testing.T) {
	h := h200
	h.Multiprocessors = 3
	for _, s := range attentionSizes {
		causal := rand.IntN(2) == 0
		if !sampled() || s.tk == 0 {
			continue
		}
		typ := []op.DType{op.F16, op.BF16, op.F32}[rand.IntN(3)]
		t.Run(fmt.Sprintf("%v/%v/%v", s, causal, typ), func(t *testing.T) {
			c := attentionTrial(typ, causal, s.b, s.h, s.kv, s.tq, s.tk, s.d)
			c.packed = true
			c.must(t, []Device{a100, h}[rand.IntN(2)])
		})
	}
	for _, causal := range []bool{false, true} {
		for _, w := range attentionSchedules[:2] {
			if !sampled() {
				continue
			}
			c := attentionTrial(op.F16, causal, 2, 2, 1, 140, 150, 64)
			c.packed = true
			if err := c.runWgmma(w, h); err != nil {
				t.Errorf("%+v: %v", w, err)
			}
		}
	}
	// NaN and infinities at masked positions, with strided operands only.
	c := attentionTrial(op.F16, true, 2, 4, 2, 40, 70, 64)
	v := c.values[2].Data
	v[len(v)-1], v[len(v)-65] = math.NaN(), math.Inf(1)
	c.packed = true
	c.must(t, a100)
	c.must(t, h200)
	c = attentionTrial(op.F32, true, 2, 4, 2, 40, 70, 64)
	c.packed = true
	c.mustFuse(t, a100)
}

// TestAttentionFused tests epilogues in the mma kernels, the merge of partials and the wgmma
// kernels.
func TestAttentionFused(t *testing.T) {
	d := h200
	d.Multiprocessors = 2
	for _, tq := range []int{3, 20, 70} {
		typ := []op.DType{op.F16, op.BF16, op.F32}[rand.IntN(3)]
		attentionTrial(typ, rand.IntN(2) == 0, 1, 2, 1, tq, 80, 64).mustFuse(t, d)
	}
	attentionTrial(op.F16, true, 1, 2, 2, 1, 600, 64).mustFuse(t, h200)
}

// TestAttentionHidden tests values that are not finite at masked positions. Queries that do not see
// them must get finite results.
func TestAttentionHidden(t *testing.T) {
	for _, s := range attentionSizes[:10] {
		if s.tk < 2 || s.tq < 2 || !sampled() {
			continue
		}
		c := attentionTrial([]op.DType{op.F16, op.F32}[rand.IntN(2)], true, s.b, s.h, s.kv, s.tq, s.tk, s.d)
		v, k := c.values[2].Data, c.values[1].Data
		v[len(v)-1], v[len(v)-1-s.d] = math.NaN(), math.Inf(1)
		k[len(k)-2] = math.NaN()
		if s.tk > 40 {
			v[len(v)-30*s.d] = math.Inf(-1)
		}
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			c.must(t, a100)
			if s.tq > 64 {
				c.must(t, h200)
			}
		})
	}
}

// attentionSchedules are wgmma kernels, chosen ones and others.
var attentionSchedules = []attentionWgmma{
	{Groups: 2, Keys: 128, Stages: 2, Turns: true},
	{Groups: 2, Keys: 176, Stages: 2},
	{Groups: 3, Keys: 64, Stages: 3, Turns: true},
}

func TestAttentionWgmma(t *testing.T) {
	h := h200
	h.Multiprocessors = 3 // each block has several tiles
	for i, s := range []struct{ b, h, kv, tq, tk, d int }{
		{1, 1, 1, 128, 128, 64}, {1, 2, 1, 130, 300, 128}, {1, 2, 1, 140, 257, 40}, {1, 1, 1, 129, 129, 128}, {1, 1, 1, 1, 400, 64},
		{1, 1, 1, 70, 100, 192}, {1, 2, 2, 130, 200, 256},
	} {
		for _, causal := range []bool{false, true} {
			for n, w := range attentionSchedules {
				if s.d > 128 {
					w.Keys, w.Stages, w.Groups = 64, 2, 2
				}
				if !sampled() || n != rand.IntN(len(attentionSchedules)) {
					continue
				}
				typ := []op.DType{op.F16, op.BF16}[i%2]
				t.Run(fmt.Sprintf("%v/%v/%v", w, s, causal), func(t *testing.T) {
					c := attentionTrial(typ, causal, s.b, s.h, s.kv, s.tq, s.tk, s.d)
					if err := c.runWgmma(w, h); err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// plainEpilogue stores results unchanged.
func plainEpilogue(t op.DType) *epilogue { return &epilogue{key: t.String(), out: []op.DType{t}} }

// cut returns the sizes of a trial.
func (c *trial) cut() *attentionCut {
	s, err := op.AttentionOf(&c.attrs, []op.Shape{c.values[0].Shape, c.values[1].Shape, c.values[2].Shape})
	if err != nil {
		panic(err)
	}
	a := &attentionCut{AttentionSizes: s, causal: op.AttentionOptsOf(&c.attrs).Causal, typ: c.types[0], to: plainEpilogue(c.types[0])}
	r, err := c.request()
	if err == nil {
		err = a.lay(r)
	}
	if err != nil {
		panic(err)
	}
	return a
}

// with sets the fields that follow from the sizes.
func (s attentionWgmma) with(c *attentionCut) attentionWgmma {
	s.Type, s.Causal, s.Head, s.Strided = c.typ, c.causal, (c.D+63)&^63, c.strided
	return s
}

func (c *trial) runWgmma(w attentionWgmma, d Device) error {
	r, err := c.request()
	if err != nil {
		return err
	}
	cut := c.cut()
	return c.runPlan(&rig{device: d, schedule: emu.Schedule(rand.IntN(3))}, r, cut.planWgmma(&d, w.with(cut)))
}

// TestAttentionPtxas assembles a random sample of the kernels that the planner chooses. No
// register may be spilled, and no wgmma instructions may be serialised, which ptxas reports
// in remarks numbered C75xx.
func TestAttentionPtxas(t *testing.T) {
	testutil.Need(t, "ptxas")
	for _, head := range []int{64, 128, 192, 256} {
		for _, causal := range []bool{false, true} {
			if head > 128 && !causal {
				continue
			}
			typ := op.F16
			if head%128 == 0 && causal {
				typ = []op.DType{op.F16, op.F32}[rand.IntN(2)]
			}
			cut := &attentionCut{AttentionSizes: op.AttentionSizes{Batch: 1, Heads: 132, KVHeads: 132, Tq: 4096, Tk: 4096, D: head, Scale: 1}, causal: causal, typ: typ, to: plainEpilogue(typ)}
			for _, d := range []Device{a100, h200} {
				for _, tq := range []int{1, 4096} {
					if !causal && (tq == 1 || d.Target != ptx.SM90a) {
						continue
					}
					cut.Tq = tq
					if cut.strided = (attentionStrided{}); rand.IntN(2) == 0 {
						cut.strided = attentionStrided{true, true}
						for i := range cut.places {
							cut.places[i] = portable.AttentionPlace{Batch: 1 << 20, Head: head, Row: 1 << 10}
						}
					}
					p, err := cut.choose(&d)
					if err != nil {
						t.Fatal(err)
					}
					for _, s := range p.Stages {
						if rand.IntN(2) == 0 || !sampled() {
							continue
						}
						t.Run(fmt.Sprintf("%v/%s/%v/%d/%v/%d/%v", d.Target, s.Kernel.Name, typ, head, causal, tq, cut.strided), func(t *testing.T) {
							assembleWell(t, s.Kernel, d.Target)
						})
					}
				}
			}
		}
	}
}

func assembleWell(t *testing.T, k *Kernel, target ptx.Target) {
	m := ptx.NewModule(target)
	built := m.Kernel("k", k.Build)
	text, err := m.AppendPTX(nil)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "k.ptx")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("ptxas", "-v", "-arch="+target.String(), "-o", os.DevNull, name).CombinedOutput()
	if s := string(out); err != nil || strings.Contains(s, "C75") || !strings.Contains(s, " 0 bytes spill stores") {
		t.Errorf("%v: %s", err, s)
	}
	static, dynamic := built.SharedBytes()
	t.Logf("%d+%d bytes of shared memory, %s", static, dynamic, regexp.MustCompile(`Used \d+ registers`).Find(out))
}

// TestAttentionConflicts requires that no access of shared memory has bank conflicts.
func TestAttentionConflicts(t *testing.T) {
	for _, typ := range []op.DType{op.F16, op.F32} {
		for _, queries := range []int{64, 1} {
			c := attentionTrial(typ, false, 1, 1, 1, 16, 128, 128)
			cut := c.cut()
			p, err := cut.planMMA(&a100, attentionMMATile(cut.typ, cut.padded(), queries))
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.request()
			if err != nil {
				t.Fatal(err)
			}
			g := &rig{device: a100, unchecked: true, stats: func(_ int, st *emu.Stats) {
				for _, at := range st.Instructions() {
					if at.Conflicts > 0 {
						t.Errorf("%v, %d queries: %v: %s: %d conflicts in %d requests", typ, queries, at.Pos, at.Text, at.Conflicts, at.SharedRequests)
					}
				}
			}}
			if err := c.runPlan(g, r, p); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestAttentionRefused checks the requests that are left to the portable kernels.
func TestAttentionRefused(t *testing.T) {
	good := attentionTrial(op.F16, true, 1, 1, 1, 5, 5, 64)
	scaled := attentionTrial(op.F16, true, 1, 1, 1, 5, 5, 64)
	scaled.attrs = op.AttentionOpts{Scale: -1}.Attrs()
	for _, x := range []struct {
		c *trial
		d Device
	}{{good, v100}, {scaled, h200}, {attentionTrial(op.F16, true, 1, 1, 1, 5, 5, 12), h200}, {attentionTrial(op.F32, true, 1, 1, 1, 5, 5, 264), h200}} {
		r, err := x.c.request()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := For(r, x.d); !errors.Is(err, op.ErrUnsupported) {
			t.Errorf("%v on %v: %v", r.In, x.d.Target, err)
		}
	}
	r, err := good.request()
	if err != nil {
		t.Fatal(err)
	}
	p, _ := For(r, h200)
	q, _ := For(r, h200)
	if p == nil || q == nil || p.Stages[0].Kernel != q.Stages[0].Kernel {
		t.Error("a kernel is built twice")
	}
}

// TestAttentionMutants removes one synchronisation instruction from a kernel and requires that the
// emulator detects it.
func TestAttentionMutants(t *testing.T) {
	small := attentionTrial(op.F16, true, 1, 1, 1, 70, 140, 64)
	large := attentionTrial(op.F16, true, 1, 3, 3, 300, 400, 64)
	d := h200
	d.Multiprocessors = 2
	warps, err := small.cut().planMMA(&a100, attentionMMATile(op.F16, 64, 64))
	if err != nil {
		t.Fatal(err)
	}
	cut := large.cut()
	groups := cut.planWgmma(&d, attentionWgmma{Groups: 2, Keys: 64, Stages: 2, Turns: true}.with(cut))
	for _, m := range []struct {
		c      *trial
		p      *Plan
		d      Device
		drop   string
		places []int
	}{
		{small, warps, a100, `\tcp\.async\.wait_all;\n`, []int{0, 1}},
		{small, warps, a100, `\tbar\.sync 0;\n`, []int{0, 1}},
		{large, groups, d, `\tbar\.sync 0;\n`, []int{0}},
		{large, groups, d, `\twgmma\.wait_group\.sync\.aligned 0;\n`, []int{0, 1, 2, 3}},
		{large, groups, d, `\twgmma\.wait_group\.sync\.aligned 1;\n`, []int{0, 1}},
		{large, groups, d, `\t[^\n]*mbarrier\.arrive\.shared[^\n]*;\n`, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}},
		// Wait 0 (for a free slot for a tile index) is missing because the slot is free whenever
		// there is room for the tile's queries. Wait 6 (for the queries) is missing because in the
		// emulator they arrive before the first keys.
		{large, groups, d, `\tmbarrier\.try_wait[^\n]*;\n\t@!%p\d+\tbra [^\n]*;\n`, []int{1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12}},
	} {
		if !sampled() {
			continue
		}
		re := regexp.MustCompile(m.drop)
		r, err := m.c.request()
		if err != nil {
			t.Fatal(err)
		}
		n, place := 0, m.places[rand.IntN(len(m.places))]
		err = m.c.runPlan(&rig{device: m.d, mutate: func(s string) string {
			return re.ReplaceAllStringFunc(s, func(x string) string {
				if n++; n == place+1 {
					return ""
				}
				return x
			})
		}}, r, m.p)
		if n <= place {
			t.Errorf("%s: %d places", m.drop, n)
		} else if err == nil {
			t.Errorf("%s, place %d of %d: not found", m.drop, place, n)
		}
	}
}
