// Command kmeans groups handwritten digits by k-means, without their labels, and says
// how well the groups agree with them.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/examples/digits/data"
	"github.com/rayo-go/rayo/op"
)

const (
	pixels = data.Pixels
	groups = 10
	rounds = 20
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, w io.Writer) error {
	images, labels := data.Images()
	dev, err := device.Open(ctx)
	if err != nil {
		return err
	}
	defer dev.Close()

	group, err := kmeans(ctx, dev, images, len(labels))
	if err != nil {
		return err
	}
	report(w, labels, group)
	return nil
}

// kmeans returns the group of each of n images. One plan is a round: the centres are
// an operand that it gives anew.
func kmeans(ctx context.Context, dev *device.Device, images []float32, n int) ([]int32, error) {
	centres := make([]float32, groups*pixels)
	for k := range groups { // to begin with, images that are spread over the file
		copy(centres[k*pixels:(k+1)*pixels], images[k*(n/groups)*pixels:])
	}
	b := batch.New(dev)
	x, c := b.Upload(images, n, pixels), b.Upload(centres, groups, pixels)
	// |x-c|² is |x|² - 2x·c + |c|², where |x|² is the same for all centres.
	distance := b.Sub(b.Sum(b.Square(c), op.Axes(1)), b.Scale(b.Einsum("np,kp->nk", x, c), 2))
	nearest := b.ArgMin(distance, op.Axes(1))
	member := b.OneHot(nearest, groups, -1)
	size := b.Sum(member, op.Axes(0))
	sums := b.Einsum("nk,np->kp", member, x)
	// A group without images keeps its centre.
	empty := b.Unsqueeze(b.Equal(size, b.Const(0)), 1)
	moved := b.Where(empty, c, b.Div(sums, b.Unsqueeze(size, 1)))

	plan, err := b.Compile(ctx, moved, nearest)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	group, next := make([]int32, n), make([]float32, len(centres))
	for range rounds {
		if err := plan.Run(ctx, batch.BindInput(c, centres), batch.BindOutput(moved, next), batch.BindOutput(nearest, group)); err != nil {
			return nil, err
		}
		centres, next = next, centres
	}
	return group, nil
}

// report writes the digit that most images of each group show, and how many do.
func report(w io.Writer, labels []int, group []int32) {
	var count [groups][10]int
	for i, g := range group {
		count[g][labels[i]]++
	}
	right := 0
	for k := range count {
		most, all := 0, 0
		for digit, n := range count[k] {
			all += n
			if n > count[k][most] {
				most = digit
			}
		}
		right += count[k][most]
		fmt.Fprintf(w, "group %d: %3d images, %3d of them show %d\n", k, all, count[k][most], most)
	}
	fmt.Fprintf(w, "%d of %d images are in a group of their digit\n", right, len(labels))
}
