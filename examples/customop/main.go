// Command customop defines operations that rayo does not have.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// softsign is x / (|x| + 1). The function runs once, here. It returns
// an expression, which each device compiles to a kernel of its own.
var softsign = op.Unary("softsign", func(x op.Expr) op.Expr {
	return x.Div(x.Abs().Add(op.Const(1)))
})

// huber is the loss of a prediction x for a target y that grows with the
// square of the distance up to z, and with the distance beyond.
var huber = op.Ternary("huber", func(x, y, z op.Expr) op.Expr {
	d := x.Sub(y).Abs()
	near := d.Square().Mul(op.Const(0.5))
	far := z.Mul(d.Sub(z.Mul(op.Const(0.5))))
	return op.Select(d.Le(z), near, far)
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

	x := []float32{-3, -1, 0, 1, 3}
	y := make([]float32, len(x))
	if err := dev.Map(ctx, y, softsign, x); err != nil {
		return err
	}
	fmt.Fprintln(w, softsign.Formula(), "=", y)

	// In a batch, custom operations fuse with neighbouring operations. The limit of
	// huber is one number here, which is broadcast to all elements.
	b := batch.New(dev)
	predicted, target := b.Upload(x), b.Upload([]float32{-3, 0, 2, 1, 0})
	loss := b.Map(huber, predicted, target, b.Const(1))
	mean := b.Mean(loss)
	b.Keep(loss)
	plan, err := b.Compile(ctx)
	if err != nil {
		return err
	}
	each, total := make([]float32, len(x)), make([]float32, 1)
	if err := plan.Run(ctx, batch.BindOutput(loss, each), batch.BindOutput(mean, total)); err != nil {
		return err
	}
	fmt.Fprintln(w, "huber", each, "mean", total[0])

	// They serve as activations too.
	eye := []float32{1, 0, 0, 1}
	out := make([]float32, 4)
	if err := dev.MatMul(ctx, out, []float32{1, -1, 4, 9}, eye, nil, 2, 2, 2, op.MatMulOpts{Act: softsign}); err != nil {
		return err
	}
	fmt.Fprintln(w, "softsign of a product", out)

	// A mistake in an expression is an error wherever it is used.
	broken := op.Unary("broken", func(op.Expr) op.Expr { return op.Expr{} })
	fmt.Fprintln(w, "mistake:", broken.Err())
	return nil
}
