package batch

import (
	"context"
	"slices"
	"testing"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/internal/graph"
)

// TestNamedOutputWithDestination checks that a value that is both named and read into a slice is one output, so that no run copies it.
func TestNamedOutputWithDestination(t *testing.T) {
	ctx := context.Background()
	dev, err := device.Open(ctx, device.Require(device.CPU))
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := New(dev)
	values, indices := b.Sort(b.Upload([]float32{3, 1, 2}, 3))
	dst := make([]float32, 3)
	ReadInto(b, values, dst)
	for _, c := range []struct {
		kept []graph.ID
		outs []Value
		want []graph.ID
	}{
		{nil, []Value{values}, []graph.ID{values.id}},
		{nil, []Value{indices, values}, []graph.ID{indices.id, values.id}},
		{nil, nil, []graph.ID{indices.id, values.id}},
		{[]graph.ID{values.id}, []Value{values}, []graph.ID{values.id}},
	} {
		b.kept = c.kept
		if err := b.outputs(c.outs); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(b.g.Outputs, c.want) {
			t.Errorf("outputs %v for %v, kept %v: want %v", b.g.Outputs, c.outs, c.kept, c.want)
		}
	}
	if err := b.Execute(ctx, values); err != nil {
		t.Fatal(err)
	}
	read, err := Read[float32](ctx, b, values)
	if want := []float32{1, 2, 3}; err != nil || !slices.Equal(read, want) || !slices.Equal(dst, want) {
		t.Errorf("Read %v, %v; ReadInto %v", read, err, dst)
	}
}
