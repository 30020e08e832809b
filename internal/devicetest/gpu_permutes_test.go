//go:build !js

package devicetest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/devicehook"
	"github.com/rayo-go/rayo/internal/driver"
	"github.com/rayo-go/rayo/internal/portable"
	"github.com/rayo-go/rayo/op"
)

// permutes are arrays and orders of their axes. as, if not nil, are the matrices whose transposition
// gives the same result.
var permutes = []struct {
	s     op.Shape
	order []int
	as    op.Shape
}{
	{op.Shape{4096, 4096}, []int{1, 0}, op.Shape{1, 4096, 4096}},
	{op.Shape{1000, 3001}, []int{1, 0}, op.Shape{1, 1000, 3001}},
	{op.Shape{64, 100, 101, 31}, []int{0, 2, 1, 3}, nil},
	{op.Shape{16, 1024, 16, 64}, []int{0, 2, 1, 3}, nil},
	{op.Shape{256, 256, 256}, []int{2, 1, 0}, nil},
	{op.Shape{100, 101, 203}, []int{2, 1, 0}, nil},
	{op.Shape{60, 70, 80, 50}, []int{2, 0, 3, 1}, nil},
	{op.Shape{32, 33, 31, 100}, []int{3, 2, 1, 0}, nil},
	{op.Shape{16, 16, 16, 16, 16}, []int{4, 3, 2, 1, 0}, nil},
	{op.Shape{64, 224, 224, 3}, []int{0, 3, 1, 2}, op.Shape{64, 50176, 3}},
	{op.Shape{64, 3, 224, 224}, []int{0, 2, 3, 1}, op.Shape{64, 3, 50176}},
}

// timePermutes measures permuted copies with each variant of their kernels, beside copies of the same
// bytes. The device is opened again for each variant, because it reads its choices only once.
func timePermutes(b *testing.B, open Open) {
	for _, dir := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // where choices are stored
		b.Setenv(dir, b.TempDir())
	}
	first := open(b)
	identity := devicehook.Engine(first).Info().Identity
	if err := first.Close(); err != nil {
		b.Fatal(err)
	}
	variants := []string{"copy", "chosen", "scalar", "squares"}
	for _, v := range portable.Variants(op.Transpose) {
		if strings.HasPrefix(v, "tile") {
			variants = append(variants, v)
		}
	}
	lines := make([]string, len(permutes))
	head := ""
	for _, v := range variants {
		var choices driver.Variants
		for _, p := range permutes {
			for _, r := range []*portable.Request{
				{Op: op.Transpose, In: []portable.Array{{Type: op.F32, Shape: p.as}}},
				{Out: []portable.Array{{Type: op.F32, Shape: permutedShape(p.s, p.order)}}},
			} {
				name := v
				if v == "copy" || v == "chosen" {
					name = "none"
				}
				choices.Set(identity, portable.Key(r), name)
				if err := choices.Store(identity, portable.Key(r)); err != nil {
					b.Fatal(err)
				}
			}
		}
		head += fmt.Sprintf("%12s", v)
		dev := open(b)
		for i, p := range permutes {
			lines[i] += fmt.Sprintf("%12.1f", 1e6*timePermute(b, dev, op.F32, p.s, p.order, v == "copy"))
		}
		if err := dev.Close(); err != nil {
			b.Fatal(err)
		}
	}
	fmt.Printf("%s µs\n", head)
	for i, p := range permutes {
		fmt.Printf("%s %v %v\n", lines[i], p.s, p.order)
	}
}

// timeSmallPermutes measures permuted copies of elements of two bytes and of one, beside copies of the same bytes.
func timeSmallPermutes(b *testing.B, open Open) {
	dev := open(b)
	defer dev.Close()
	for _, typ := range []op.DType{op.F16, op.BF16, op.U8} {
		for _, p := range permutes {
			copied, permuted := timePermute(b, dev, typ, p.s, p.order, true), timePermute(b, dev, typ, p.s, p.order, false)
			fmt.Printf("%4v %8.1f %8.1f µs %5.2f %v %v\n", typ, 1e6*copied, 1e6*permuted, copied/permuted, p.s, p.order)
		}
	}
}

// timePermute returns the time of one permuted copy, or of a copy in the same order.
func timePermute(b *testing.B, dev *device.Device, typ op.DType, s op.Shape, order []int, same bool) float64 {
	c := cell{typ: typ, shapes: [][]int{s}, out: permutedShape(s, order), build: func(r *batch.Batch, x []batch.Value) batch.Value {
		if same {
			return r.Reshape(x[0], permutedShape(s, order)...)
		}
		return r.Permute(x[0], order...)
	}}
	return secondsOf(b, dev, &c, rand.New(rand.NewPCG(5, 6)))
}
