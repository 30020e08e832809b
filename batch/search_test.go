package batch_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// TestSearchMistakes calls the methods that search for elements with wrong arguments.
func TestSearchMistakes(t *testing.T) {
	dev := openCPU(t)
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		want   error
		record func(b *batch.Batch, x, i batch.Value) // x is f32 [2 3], i is i32 [4]
	}{
		"a mask of another shape":   {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Compress(x, i) }},
		"two axes to compare along": {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Unique(x, op.UniqueOpts{Along: op.Axes(0, 1)}) }},
		"an axis that is not there": {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Unique(x, op.UniqueOpts{Along: op.Axes(2)}) }},
		"unique bools":              {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.Unique(b.Cast(x, op.Bool)) }},
		"slices too large": {device.ErrLimit, func(b *batch.Batch, x, i batch.Value) {
			b.Unique(b.Const(0, 2, 1025), op.UniqueOpts{Along: op.Axes(0)})
		}},
		"sorted in two axes":           {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.SearchSorted(x, x) }},
		"values of another type":       {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.SearchSorted(i, x) }},
		"members of another type":      {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.IsIn(i, x) }},
		"an empty set of another type": {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.IsIn(i, b.Const(0, 0)) }},
		"a number of bins below 0":     {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Bincount(i, -1) }},
		"ids of f32":                   {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.Bincount(x, 4) }},
		"no bins":                      {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Histogram(x, 0, 0, 1) }},
		"more bins than there can be":  {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Histogram(x, math.MaxInt, 0, 1) }},
		"bins of no width":             {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Histogram(x, 2, 1, 1) }},
		"bins from NaN":                {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Histogram(x, 2, nan, 1) }},
		"bins of integers":             {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.Histogram(i, 2, 0, 1) }},
		"a quantile above 1":           {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Quantile(x, 1.5) }},
		"a quantile that is NaN":       {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Quantile(x, math.NaN()) }},
		"a quantile of an empty array": {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Quantile(b.Const(0, 2, 0), 0.5, op.Axes(1)) }},
		"a quantile along no axis":     {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Quantile(x, 0.5, op.Axes(2)) }},
		"a quantile of integers":       {device.ErrUnsupported, func(b *batch.Batch, x, i batch.Value) { b.Quantile(i, 0.5) }},
		"options twice":                {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.SearchSorted(i, i, op.SearchOpts{}, op.SearchOpts{}) }},
		"a value of another batch":     {device.ErrForeign, func(b *batch.Batch, x, i batch.Value) { b.NonZero(batch.New(dev).Const(1)) }},
		"no value":                     {device.ErrShape, func(b *batch.Batch, x, i batch.Value) { b.Unique(batch.Value{}) }},
	} {
		b := batch.New(dev)
		c.record(b, b.Const(1, 2, 3), batch.Upload(b, []int32{1, 2, 3, 4}))
		if err := b.Execute(t.Context()); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

// TestQuantilesShareTheirSort checks that several quantiles of one value sort it only once.
func TestQuantilesShareTheirSort(t *testing.T) {
	b := batch.New(openCPU(t))
	x := b.Upload([]float32{3, 1, 2, 5, 4, 7}, 2, 3)
	plan, err := b.Compile(t.Context(), b.Quantile(x, 0.25, op.Axes(1)), b.Quantile(x, 0.5, op.Axes(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	if n := strings.Count(plan.String(), " sort "); n != 1 {
		t.Errorf("%d sorts, want 1:\n%v", n, plan)
	}
}
