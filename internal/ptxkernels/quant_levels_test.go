package ptxkernels

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/gguf/block"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

// levelTypes returns the types whose decoders give levels.
func levelTypes() (types []op.DType) {
	for _, d := range blockTypes() {
		if blockDecoders[d.Block()].levels != nil {
			types = append(types, d)
		}
	}
	return types
}

// TestMatMulQLevels multiplies few rows and many rows by matrices of each format. Short tests take one format.
func TestMatMulQLevels(t *testing.T) {
	few := h200
	few.Multiprocessors = 2
	shapes := []struct{ m, k, n int }{{1, 2048, 35}, {1, 4096, 40}, {2, 512, 33}, {8, 512, 16}, {33, 512, 40}}
	for _, blocks := range levelTypes() {
		one := rand.IntN(len(shapes))
		for i, s := range shapes {
			if testing.Short() && i != one {
				continue
			}
			x, err := newQuantTrial([]op.DType{op.F32, op.F16, op.BF16}[rand.IntN(3)], blocks, s.m, s.k, s.n, i%2 == 0, op.MatMulQOpts{}, true)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := For(x.request, few)
			if err != nil {
				t.Fatal(err)
			}
			if err = x.run(&rig{device: few, schedule: emu.Schedule(rand.IntN(3))}, plan); err != nil {
				t.Errorf("%v %v %s: %v", blocks, s, plan.Variant, err)
			}
		}
	}
}

// TestMatMulQLone multiplies one row by many rows of a matrix with the stages of lone, and on GPUs with less shared memory.
func TestMatMulQLone(t *testing.T) {
	few := h200
	few.Multiprocessors = 2
	little := Device{Target: ptx.SM89, Multiprocessors: 2, Shared: ptx.SM89.MaxShared()}
	ampere := a100
	ampere.Multiprocessors = 2
	cases := []struct {
		device     Device
		m, k, n    int
		onlyFormat block.Format // if valid
	}{
		{few, 1, 1024, 520, 0},
		{little, 1, 2048, 520, 0},
		{ampere, 4, 2048, 24, 0},
		{few, 1, 18432, 520, block.TQ1_0}, // two blocks share rows, and the second part does not begin at a multiple of 16 bytes
	}
	for f := range lone {
		blocks := op.QuantType(f)
		one := rand.IntN(3)
		for i, s := range cases {
			if only := s.onlyFormat; i == 3 && (only != f || testing.Short() && rand.IntN(4) > 0) || i < 3 && testing.Short() && i != one {
				continue
			}
			x, err := newQuantTrial(op.F32, blocks, s.m, s.k, s.n, false, op.MatMulQOpts{}, true)
			if err != nil {
				t.Fatal(err)
			}
			plan, err := For(x.request, s.device)
			if err != nil {
				t.Errorf("%v %v: %v", blocks, s, err)
				continue
			}
			if alone := strings.Contains(plan.Variant, "_t1_"); s.m == 1 && !alone && !strings.Contains(plan.Variant, "ring") {
				t.Errorf("%v %v: %s, which is no schedule of lone", blocks, s, plan.Variant)
			}
			if err = x.run(&rig{device: s.device, schedule: emu.Schedule(rand.IntN(3))}, plan); err != nil {
				t.Errorf("%v %v %s: %v", blocks, s, plan.Variant, err)
			}
		}
	}
}

// TestMatMulQScales multiplies by blocks whose scales are at an end of their range, or not finite: these
// affect only their own rows.
func TestMatMulQScales(t *testing.T) {
	const k, n, damaged = 512, 20, 7
	for _, blocks := range levelTypes() {
		for _, m := range []int{1, 3} {
			a := normal(m, k)
			scale := blocks.Block().Layout().Scale
			for i := range a.Data {
				if scale.Encoding == block.E8M0 {
					a.Data[i] = math.Copysign(0x1p100, a.Data[i])
				}
			}
			x, err := newQuantTrialOf(a, op.F32, blocks, n, false, op.MatMulQOpts{}, false)
			if err != nil {
				t.Fatal(err)
			}
			row := len(x.in[1]) / n
			for i := range n {
				switch first := x.in[1][i*row:]; {
				case scale.Encoding == block.E8M0:
					for at := 0; at < row; at += blocks.Block().Bytes() {
						first[at] = byte(rand.IntN(5)) // 0 and 1 are subnormal
					}
				case scale.Encoding == block.UE4M3:
					first[rand.IntN(4)] = []byte{0, 1, 7, 0x7e, 0x7f, 0x80, 0xff}[rand.IntN(7)]
				case i == damaged:
					for j := range scale.Number {
						putBits(first, &scale.Number[j], 0x7e01)
					}
				}
			}
			w, err := blocks.Array(op.Shape{n, k}, x.in[1])
			if err != nil {
				t.Fatal(err)
			}
			want, err := op.MatMulQ.Reference(&x.request.Attrs, []*op.Array{a, w, nil}, []op.DType{op.F32, blocks, op.InvalidType})
			if err != nil {
				t.Fatal(err)
			}
			x.want = want[0]
			plan, err := For(x.request, h200)
			if err == nil {
				err = x.run(&rig{device: h200}, plan)
			}
			if err != nil {
				t.Errorf("%v, %d rows: %v", blocks, m, err)
			}
		}
	}
}
