package batch_test

import (
	"fmt"
	"log"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// read returns the elements of a value of a batch that has run.
func read[T batch.Number](b *batch.Batch, v batch.Value) []T {
	list, err := batch.Read[T](ctx, b, v)
	if err != nil {
		log.Fatal(err)
	}
	return list
}

func ExampleBatch_NonZero() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{0, 7, 0, 8, 9, 0}, 2, 3)
	at, count := b.NonZero(x)
	if err := b.Execute(ctx, at, count); err != nil {
		log.Fatal(err)
	}
	list, k := read[int32](b, at), read[int32](b, count)[0]
	fmt.Println(k, "rows", list[:k], "columns", list[6:6+k])
	// Output: 3 rows [0 1 1] columns [1 0 1]
}

func ExampleBatch_Compress() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{-1, 5, -2, 6})
	positive, count := b.Compress(x, b.Greater(x, b.Const(0, 1)))
	if err := b.Execute(ctx, positive, count); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read[float32](b, positive), read[int32](b, count))
	// Output: [5 6 0 0] [2]
}

func ExampleBatch_Unique() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	u := b.Unique(batch.Upload(b, []int32{7, 3, 7, 7, 3}))
	if err := b.Execute(ctx, u.Values, u.First, u.Inverse, u.Counts, u.Count); err != nil {
		log.Fatal(err)
	}
	k := read[int32](b, u.Count)[0]
	fmt.Println(read[int32](b, u.Values)[:k], "first at", read[int32](b, u.First)[:k])
	fmt.Println(read[int32](b, u.Inverse), read[int32](b, u.Counts)[:k])
	// Output:
	// [3 7] first at [1 0]
	// [1 0 1 1 0] [2 3]
}

func ExampleBatch_SearchSorted() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	edges, x := b.Upload([]float32{1, 2, 2, 5}), b.Upload([]float32{0, 2, 9})
	left := b.SearchSorted(edges, x)
	right := b.SearchSorted(edges, x, op.SearchOpts{Right: true})
	if err := b.Execute(ctx, left, right); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read[int32](b, left), read[int32](b, right))
	// Output: [0 1 4] [0 3 4]
}

func ExampleBatch_IsIn() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	words, ends := batch.Upload(b, []int32{4, 2, 0, 9}), batch.Upload(b, []int32{0, 2})
	is := b.Cast(b.IsIn(words, ends), op.I32)
	if err := b.Execute(ctx, is); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read[int32](b, is))
	// Output: [0 1 1 0]
}

func ExampleBatch_Bincount() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	counts := b.Bincount(batch.Upload(b, []int32{1, 3, 1, -1, 8}), 4)
	if err := b.Execute(ctx, counts); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read[int32](b, counts))
	// Output: [0 2 0 1]
}

func ExampleBatch_Histogram() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	counts, edges := b.Histogram(b.Upload([]float32{0, 0.2, 0.5, 1, 1.1}), 4, 0, 1)
	if err := b.Execute(ctx, counts, edges); err != nil {
		log.Fatal(err)
	}
	fmt.Println(read[int32](b, counts), read[float32](b, edges))
	// Output: [2 0 1 1] [0 0.25 0.5 0.75 1]
}

func ExampleBatch_Quantile() {
	dev := open()
	defer dev.Close()
	b := batch.New(dev)
	x := b.Upload([]float32{4, 1, 3, 2, 10, 20, 30, 50}, 2, 4)
	fmt.Println(values(b, b.Quantile(x, 0.5, op.Axes(1))))
	// Output: [2.5 25]
}
