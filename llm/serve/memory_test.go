package serve_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/llm/serve"
)

// TestMemoryFlat checks that answered requests, also those of clients that disconnected, leave nothing on the heap. The warm-up compiles
// the plans and fills the list of known pages. A plan that is compiled later because requests met in another way grows the heap in one of the
// measurements only, and a leak in all of them.
func TestMemoryFlat(t *testing.T) {
	url := start(t, 4, serve.Options{Waiting: 1000})
	const clients, each = 8, 4
	r := testutil.Rand(t)
	round := func() {
		client := &http.Client{Transport: &http.Transport{}}
		var wg sync.WaitGroup
		for i := range clients {
			seed := r.Uint64()
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, 1))
				for range each {
					sendRandom(t, client, url, r, i%4 == 3)
				}
			})
		}
		wg.Wait()
		client.CloseIdleConnections()
		testutil.Soon(t, "no request is busy", func() bool {
			_, b := get(t, url+"/metrics")
			return strings.Contains(b, "rayo_requests_busy 0")
		})
	}
	const most = 256 // bytes for a request
	if n := testutil.Growth(3, most*clients*each, round) / (clients * each); n > most {
		t.Errorf("%d bytes more on the heap after each request", n)
	}
	http.DefaultClient.CloseIdleConnections()
}

// sendRandom requests the continuation of a random text and reads it, or disconnects after the beginning.
func sendRandom(t *testing.T, client *http.Client, url string, r *rand.Rand, vanish bool) {
	prompt := make([]byte, 1+r.IntN(100))
	for i := range prompt {
		prompt[i] = 'a' + byte(r.IntN(26))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": %d, "logit_bias": {"0": -1000}, "stream": true}`, prompt, 1+r.IntN(8))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/completions", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		t.Errorf("status %d: %s", resp.StatusCode, b)
	}
	if vanish {
		cancel()
		return
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		t.Error(err)
	}
}
