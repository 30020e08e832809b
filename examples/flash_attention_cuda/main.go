// Command flash_attention_cuda computes attention without ever holding the
// scores: keys and values pass by in tiles, and the softmax runs along.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"

	"github.com/rayo-go/rayo/cuda"
	"github.com/rayo-go/rayo/op"
	"github.com/rayo-go/rayo/ptx"
	"github.com/rayo-go/rayo/ptx/emu"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

const (
	size    = 64 // of a head
	queries = 32 // of a block, a thread each
	tile    = 16 // keys, and values, in shared memory at a time
)

// attention is o = softmax(q kᵀ / 8) v for heads of 64, causal: a query sees no key
// behind it. Arrays are [heads length 64], and length is a multiple of the
// queries of a block; a block of the grid's second axis is a head.
//
// A thread keeps one query and its partial result in registers. Each tile of keys
// gives new scores. If the maximum rises by d, the sums so far are scaled by 2**-d.
func attention(k *ptx.Kernel) {
	k.Block(queries, 1, 1)
	q, keys, values := ptx.GlobalParam[ptx.F32](k, "q"), ptx.GlobalParam[ptx.F32](k, "k"), ptx.GlobalParam[ptx.F32](k, "v")
	o, length := ptx.GlobalParam[ptx.F32](k, "o"), ptx.Param[ptx.U32](k, "length")
	ks, vs := ptx.SharedArray[ptx.F32](k, "ks", tile*size), ptx.SharedArray[ptx.F32](k, "vs", tile*size)
	t := k.Special(ptx.TidX)
	head := k.Special(ptx.CtaidY).Mul(length)
	first := k.Special(ptx.CtaidX).Mul(ptx.U(queries)) // query of the block
	query := first.Add(t)
	at := head.Add(query).Mul(ptx.U(size))

	var x, sum [size]ptx.Var[ptx.F32]
	for i := range size / 4 {
		for j, v := range q.At(at).Offset(4 * i).Load4() {
			// The hardware computes powers of two, so the scores are scaled by log2(e).
			x[4*i+j] = ptx.NewVar(k, v.Mul(ptx.F(math.Log2E/8)))
			sum[4*i+j] = ptx.NewVar(k, ptx.F(0))
		}
	}
	top, total := ptx.NewVar(k, ptx.F(-math.MaxFloat32)), ptx.NewVar(k, ptx.F(0))
	k.For(ptx.U(0), first.Add(ptx.U(queries)), ptx.U(tile), func(begin ptx.U32) {
		// All threads bring the tile, 16 bytes at a time.
		from := head.Add(begin).MulAdd(ptx.U(size), t.Mul(ptx.U(4)))
		to := t.Mul(ptx.U(4))
		for i := 0; i < tile*size; i += 4 * queries {
			ks.At(to).Offset(i).Store4(keys.At(from).Offset(i).Load4())
			vs.At(to).Offset(i).Store4(values.At(from).Offset(i).Load4())
		}
		k.Sync()
		var scores [tile]ptx.F32
		highest := top.Get()
		for j := range scores {
			score := ptx.NewVar(k, ptx.F(0))
			for i := range size / 4 {
				for l, v := range ks.Offset(j*size + 4*i).Load4() {
					ptx.MulAddTo(score, x[4*i+l].Live(), v)
				}
			}
			seen := begin.Add(ptx.N(j)).Le(query)
			scores[j] = ptx.Select(seen, score.Live(), ptx.F(float32(math.Inf(-1))))
			highest = highest.Max(scores[j])
		}
		shrink := top.Get().Sub(highest).Ex2Approx()
		top.Set(highest)
		total.Set(total.Get().Mul(shrink))
		for i := range sum {
			sum[i].Set(sum[i].Get().Mul(shrink))
		}
		for j := range scores {
			p := scores[j].Sub(highest).Ex2Approx()
			ptx.AddTo(total, p)
			for i := range size / 4 {
				for l, v := range vs.Offset(j*size + 4*i).Load4() {
					ptx.MulAddTo(sum[4*i+l], p, v)
				}
			}
		}
		k.Sync() // before the next tile comes
	})
	r := total.Get().Rcp()
	for i := range size / 4 {
		var v [4]ptx.F32
		for j := range v {
			v[j] = sum[4*i+j].Get().Mul(r)
		}
		o.At(at).Offset(4 * i).Store4(v)
	}
}

func run(ctx context.Context, w io.Writer) error {
	const heads, length = 2, 96
	m := ptx.NewModule(ptx.SM70)
	m.RecordPositions()
	m.Kernel("attention", attention)
	if err := m.Verify(); err != nil {
		return err
	}
	in := [3][]float32{random(heads*length*size, 1), random(heads*length*size, 2), random(heads*length*size, 3)}
	got, where, err := onGPU(m, in, heads, length)
	var loaded int64
	if errors.Is(err, cuda.ErrNoDriver) || errors.Is(err, cuda.ErrNoDevice) {
		where = "the emulator"
		got, loaded, err = emulated(ctx, m, in, heads, length)
	}
	if err != nil {
		return err
	}

	// The reference of package op computes in float64.
	arrays, types := make([]*op.Array, 3), []op.DType{op.F32, op.F32, op.F32}
	for i, x := range in {
		arrays[i] = op.NewArray(op.Shape{heads, length, size})
		for j, v := range x {
			arrays[i].Data[j] = float64(v)
		}
	}
	attrs := op.AttentionOpts{Causal: true}.Attrs()
	want, err := op.Attention.Reference(&attrs, arrays, types)
	if err != nil {
		return err
	}
	worst := 0.0
	for i, v := range want[0].Data {
		worst = max(worst, math.Abs(float64(got[i])-v))
	}
	if !(worst < 1e-5) {
		return fmt.Errorf("off by %g", worst)
	}
	fmt.Fprintf(w, "%d heads, %d queries and keys: right to 1e-05\n", heads, length)
	if loaded > 0 {
		one := int64(4 * heads * length * size)
		fmt.Fprintf(w, "arrays of %d KiB each; loaded %d KiB: the queries once, keys and values once for %d queries\n", one>>10, loaded>>10, queries)
	}
	fmt.Fprintln(w, "on", where)
	return nil
}

func random(n int, seed uint64) []float32 {
	rnd := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rnd.NormFloat64())
	}
	return x
}

// emulated runs the kernel in the emulator, which counts the bytes that it loads.
func emulated(ctx context.Context, m *ptx.Module, in [3][]float32, heads, length int) (o []float32, loaded int64, err error) {
	module, err := emu.Load(m)
	if err != nil {
		return nil, 0, err
	}
	k, err := module.Kernel("attention")
	if err != nil {
		return nil, 0, err
	}
	machine := emu.NewMachine(emu.Config{})
	params := make([]any, 0, 5)
	for i, name := range []string{"q", "k", "v"} {
		p, err := machine.Floats(name, in[i])
		if err != nil {
			return nil, 0, err
		}
		params = append(params, p)
	}
	po, err := machine.Alloc("o", 4*len(in[0]))
	if err != nil {
		return nil, 0, err
	}
	params = append(params, po, uint32(length))
	if err := machine.Launch(ctx, k, emu.Dim{X: length / queries, Y: heads}, emu.Dim{X: queries}, 0, params...); err != nil {
		return nil, 0, err
	}
	o, err = machine.ReadFloats(po, len(in[0]))
	return o, machine.Stats().LoadBytes, err
}

// onGPU runs the kernel on the first GPU.
func onGPU(m *ptx.Module, in [3][]float32, heads, length int) (o []float32, name string, err error) {
	dev, err := cuda.Open(0)
	if err != nil {
		return nil, "", err
	}
	defer dev.Close()
	text, err := m.AppendPTX(nil)
	if err != nil {
		return nil, "", err
	}
	module, err := dev.Load(text)
	if err != nil {
		return nil, "", err
	}
	k, err := module.Function("attention")
	if err != nil {
		return nil, "", err
	}
	s, err := dev.NewStream(0)
	if err != nil {
		return nil, "", err
	}
	bytes := cuda.Ptr(4 * len(in[0]))
	mem, err := s.Alloc(4 * int64(bytes))
	if err != nil {
		return nil, "", err
	}
	var p cuda.Params
	for i, x := range in {
		at := mem.Ptr() + cuda.Ptr(i)*bytes
		if err := s.Upload(at, cuda.AsBytes(x)); err != nil {
			return nil, "", err
		}
		p.Ptr(at)
	}
	p.Ptr(mem.Ptr() + 3*bytes)
	p.U32(uint32(length))
	config := cuda.Config{Grid: cuda.Dim{X: uint32(length / queries), Y: uint32(heads)}, Block: cuda.Dim{X: queries}}
	if err := s.Launch(k, config, p); err != nil {
		return nil, "", err
	}
	o = make([]float32, len(in[0]))
	return o, dev.Info().Name, s.Download(cuda.AsBytes(o), mem.Ptr()+3*bytes)
}
