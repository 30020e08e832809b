package batch_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/rayo-go/rayo/batch"
)

func ExampleBatch_RFFT() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{1, 0, -1, 0, 1, 0, -1, 0}, 8) // two periods of a cosine
	v := b.RFFT(x)
	if err := b.Execute(context.Background(), v); err != nil {
		log.Fatal(err)
	}
	y, err := batch.Read[float32](context.Background(), b, v)
	if err != nil {
		log.Fatal(err)
	}
	for k := range len(y) / 2 {
		fmt.Printf("%.0f ", math.Hypot(float64(y[2*k]), float64(y[2*k+1])))
	}
	// Output: 0 0 4 0 0
}
