package devicetest

import (
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// streams checks that a pipeline returns rows in order, for chunks of a given size and of a measured size.
func streams(t *testing.T, open Open) {
	dev := start(t, open)
	x := make([]float32, 3*5003)
	for i := range x {
		x[i] = float32(i%61 - 30)
	}
	for _, o := range []batch.PipelineOpts{{Row: []int{3}}, {Row: []int{3}, Rows: 640}, {Row: []int{3}, Memory: 60_000}} {
		rows, err := batch.NewPipeline[float32, float32](dev, func(b *batch.Batch, x batch.Value) batch.Value {
			return b.Sum(b.Relu(x), op.Axes(1))
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for out, err := range rows.RunSlice(t.Context(), x) {
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range out {
				want := max(x[3*at], 0) + max(x[3*at+1], 0) + max(x[3*at+2], 0)
				if v != want {
					t.Fatalf("%+v: row %d: %v, want %v", o, at, v, want)
				}
				at++
			}
		}
		if at != 5003 {
			t.Errorf("%+v: %d rows, want 5003", o, at)
		}
		if err := rows.Close(); err != nil {
			t.Error(err)
		}
	}
}
