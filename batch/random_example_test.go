package batch_test

import (
	"fmt"
	"log"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// Dropout: the same elements are dropped on every device.
func ExampleBatch_Bernoulli() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	step := op.Key(0).FoldIn(12345) // seed 0, step 12345
	key := batch.Upload(b, step[:])
	x := b.Upload([]float32{1, 2, 3, 4, 5, 6}, 6)
	y := b.Where(b.Bernoulli(key, 0.5, 6), b.Scale(x, 2), b.Const(0))
	fmt.Println(values(b, y))
	// Output: [0 4 0 8 0 0]
}

// One plan makes the numbers of every seed.
func ExampleBatch_Uniform() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	key := batch.Upload(b, make([]uint32, 2))
	u := b.Uniform(key, 3)
	plan, err := b.Compile(ctx, u)
	if err != nil {
		log.Fatal(err)
	}
	defer plan.Close()
	out := make([]float32, 3)
	for _, k := range op.Key(42).Split(2) {
		if err := plan.Run(ctx, batch.BindInput(key, k[:]), batch.BindOutput(u, out)); err != nil {
			log.Fatal(err)
		}
		fmt.Println(out)
	}
	// Output:
	// [0.5302608 0.31336212 0.90153027]
	// [0.72766423 0.78786755 0.18169427]
}
