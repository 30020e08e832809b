package webgpu

import (
	"slices"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	gpu "github.com/rayo-go/rayo/internal/webgpu"
)

// TestOrdered compares the order of adapters with a stable sort by type.
func TestOrdered(t *testing.T) {
	r := testutil.Rand(t)
	for n := range 12 {
		all := make([]gpu.Adapter, n)
		want := make([]int, n)
		for i := range all {
			all[i].Type = gpu.AdapterType(r.IntN(int(gpu.Software) + 1))
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return int(all[a].Type) - int(all[b].Type) })
		var got []int
		for _, a := range ordered(all) {
			if a.Adapter != &all[a.index] {
				t.Fatalf("entry %d has another adapter", a.index)
			}
			got = append(got, a.index)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the order of %d adapters is %v, want %v", n, got, want)
		}
	}
}
