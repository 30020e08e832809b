package webgpu_test

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/rayo-go/rayo/internal/webgpu"
	"github.com/rayo-go/rayo/internal/webgpu/fakehost"
)

// TestRemote runs tests again on a host whose memory Go cannot address and that reports its progress
// itself.
func TestRemote(t *testing.T) {
	remote = true
	defer func() { remote = false }()
	tests := map[string]func(*testing.T){
		"trip": TestTrip, "parts": TestParts, "commands": TestCommands, "refused": TestRefused, "each call fails": TestEachCallFails,
		"cancelled": TestCancelled, "hung": TestHung, "close hung": TestCloseHung, "lost": TestLost, "closing": TestClosing,
		"concurrent": TestConcurrent, "order": TestOrder,
	}
	for name, test := range tests {
		if testing.Short() && rand.IntN(2) == 0 {
			continue // the sample differs in each run
		}
		t.Run(name, test)
	}
}

// TestRemoteFails makes single submissions of a Remote fail, and requires that only waits for these
// submissions return the error.
func TestRemoteFails(t *testing.T) {
	var fail atomic.Bool
	refused := errors.New("refused")
	d, _ := fake(t, &fakehost.Host{Remote: true, Fail: func(call string) error {
		if call == "Complete" && fail.CompareAndSwap(true, false) {
			return refused
		}
		return nil
	}})
	runs := 2000 // more than maxFailures
	if testing.Short() {
		runs = 100
	}
	for range runs {
		fail.Store(true)
		if err := trip(d, 100); !errors.Is(err, refused) {
			t.Fatalf("a submission that fails: %v", err)
		}
		if err := trip(d, 100); err != nil {
			t.Fatalf("the next one: %v", err)
		}
	}
	if s := d.Stats(); s.Buffers != 0 || d.Adapter().Type == webgpu.Software {
		t.Errorf("%+v", s)
	}
}
