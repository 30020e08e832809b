package devicetest

import (
	"os"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
)

// TestFuzzAPI runs random graphs on the CPU for the time that FUZZAPI_TIME gives: see make fuzz-api. Each graph
// has its own seed. A failure prints the seed, and RAYO_SEED repeats the graph.
func TestFuzzAPI(t *testing.T) {
	text := os.Getenv("FUZZAPI_TIME")
	if text == "" {
		text = "1s"
	}
	limit, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("FUZZAPI_TIME: %v", err)
	}
	fuzzAPI(t, cpu(2), limit)
}

// fuzzAPI runs random graphs for the given time, and at least one graph.
func fuzzAPI(t *testing.T, open Open, limit time.Duration) {
	dev := start(t, open)
	p, err := newPlayer(t.Context(), dev)
	if err != nil {
		t.Fatal(err)
	}
	seed, free, sc := testutil.Seed(t), deviationsOf(t.Context(), dev), scopeOf(t.Context(), dev, true)
	n := uint64(0)
	for end := time.Now().Add(limit); n == 0 || time.Now().Before(end); n++ {
		// The length is computed from the seed, so that the seed suffices to repeat the graph.
		r, err := newGraph(seed+n, 4+int((seed+n)%44), free, sc)
		if err != nil {
			t.Fatalf("RAYO_SEED=%d: %v", seed+n, err)
		}
		if err := p.run(t.Context(), r); err != nil {
			t.Fatalf("RAYO_SEED=%d: %v\n%v", seed+n, err, r)
		}
	}
	t.Logf("%d graphs", n)
}
