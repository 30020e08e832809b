// Command life plays Conway's game of life on a torus. Both generations stay on
// the device; only the last one comes back.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/kernel"
)

type params struct{ Width, Height uint32 }

const tile = 16

// life computes one generation: a cell lives if it has three neighbours, or if
// it lived and has two.
var life = kernel.New("life", func(b *kernel.Builder, p *params) {
	b.LocalSize(tile, tile, 1)
	old := kernel.Input[kernel.U32](b, "old")
	next := kernel.Output[kernel.U32](b, "next")
	w, h := b.U32(&p.Width), b.U32(&p.Height)
	x, y := b.GlobalX(), b.GlobalY()
	b.If(x.Lt(w).And(y.Lt(h)), func() {
		one := kernel.U(1)
		// The neighbours of the first column and row are the last ones.
		xs := [3]kernel.U32{x.Add(w).Sub(one).Mod(w), x, x.Add(one).Mod(w)}
		ys := [3]kernel.U32{y.Add(h).Sub(one).Mod(h), y, y.Add(one).Mod(h)}
		n := kernel.U(0)
		for i, row := range ys { // unrolls into eight loads
			for j, col := range xs {
				if i != 1 || j != 1 {
					n = n.Add(old.At(row.Mul(w).Add(col)))
				}
			}
		}
		at := y.Mul(w).Add(x)
		lives := n.Eq(kernel.U(3)).Or(n.Eq(kernel.U(2)).And(old.At(at).Ne(kernel.U(0))))
		next.Set(at, kernel.Select(lives, one, kernel.U(0)))
	})
})

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()
	const width, height, generations = 24, 10, 40
	// A glider: after 40 generations it is ten cells further right and down,
	// which is where it began but for ten columns.
	cells := make([]uint32, width*height)
	for _, c := range [][2]int{{1, 0}, {2, 1}, {0, 2}, {1, 2}, {2, 2}} {
		cells[c[1]*width+c[0]] = 1
	}
	show(w, cells, width)
	if err := play(ctx, dev, cells, width, height, generations); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d generations later:\n", generations)
	show(w, cells, width)
	return nil
}

// play advances cells by some generations.
func play(ctx context.Context, dev *device.Device, cells []uint32, width, height, generations int) error {
	k, err := dev.Kernel(ctx, life)
	if err != nil {
		return err
	}
	old, err := device.Upload(ctx, dev, cells)
	if err != nil {
		return err
	}
	defer func() { old.Close() }()
	next, err := device.Upload(ctx, dev, cells)
	if err != nil {
		return err
	}
	defer func() { next.Close() }()
	grid := kernel.Grid((width+tile-1)/tile, (height+tile-1)/tile)
	for range generations {
		if err := k.Run(ctx, grid, params{uint32(width), uint32(height)}, device.Bind(old), device.Bind(next)); err != nil {
			return err
		}
		old, next = next, old
	}
	return device.Read(ctx, cells, old)
}

func show(w io.Writer, cells []uint32, width int) {
	for i, c := range cells {
		fmt.Fprint(w, string(".#"[c]))
		if i%width == width-1 {
			fmt.Fprintln(w)
		}
	}
}
