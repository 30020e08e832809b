package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/serve"
)

// BenchmarkServe runs 16 and 64 clients that send one request after the other to a server that
// generates 8 texts at once. The model is tiny, or the file that RAYO_LLM_MODEL names. A request
// has about 50 tokens, and its answer at most 32. One of 8 clients disconnects after the first
// tokens of each answer. An iteration is a request of each client and then, as batch/s, up to 100
// tokens of each of 8 sessions of a scheduler without a server. best-ratio compares the best
// iterations of both. Run it with -benchtime 5x or the like.
func BenchmarkServe(b *testing.B) {
	for _, clients := range []int{16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			dev, err := device.Open(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			const width = 8
			a, err := assistant.Load(context.Background(), dev, benchFile(b), assistant.Options{Parallel: width, Model: llm.Options{Context: 512, Sessions: 2 * width}})
			if err != nil {
				b.Fatal(err)
			}
			l := newLoad(serve.New(a, serve.Options{Waiting: 2 * clients}))
			l.run(b, width, 2*width) // compiles the plans
			generate(b, a.Model(), width, 4)
			l.tokens(b) // opens a connection
			before, memory := runtime.NumGoroutine(), systemMemory()
			var served, batch, generated float64
			b.ResetTimer()
			for range b.N {
				start, tokens := time.Now(), l.tokens(b)
				l.run(b, clients, clients)
				tokens = l.tokens(b).minus(tokens)
				took := time.Since(start).Seconds()
				served, generated = max(served, tokens.computed()/took), max(generated, tokens.generated/took)
				start = time.Now()
				each := min(max(1, int(tokens.computed())/width), 100)
				generate(b, a.Model(), width, each)
				batch = max(batch, float64(width*each)/time.Since(start).Seconds())
			}
			b.StopTimer()
			b.ReportMetric(generated, "generated/s")
			b.ReportMetric(served, "tok/s")
			b.ReportMetric(batch, "batch/s")
			b.ReportMetric(served/batch, "best-ratio")
			b.ReportMetric(float64(runtime.NumGoroutine()-before), "more-goroutines")
			b.ReportMetric(systemMemory()-memory, "more-MiB")
			l.server.Close()
			if err := errors.Join(a.Close(), dev.Close()); err != nil {
				b.Error(err)
			}
			if n := l.failed.Load(); n > 0 {
				b.Errorf("%d requests failed", n)
			}
		})
	}
}

// systemMemory returns the MiB that the runtime has allocated from the operating system.
func systemMemory() float64 {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	return float64(mem.Sys-mem.HeapReleased) / (1 << 20)
}

// generate generates n tokens in each of several sessions at the same time.
func generate(b *testing.B, m *llm.Model, sessions, n int) {
	sch := m.NewScheduler(sessions)
	defer sch.Close()
	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() {
			s := sch.NewSession()
			defer s.Close()
			for _, err := range s.Generate(context.Background(), []int32{int32(i + 1)}, llm.Sampling{MaxTokens: n, IgnoreEnd: true}) {
				if err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func benchFile(b *testing.B) *gguf.File {
	path := os.Getenv("RAYO_LLM_MODEL")
	if path == "" {
		return tinymodel.File(b)
	}
	f, err := gguf.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return f
}

// load sends requests to a server.
type load struct {
	server *httptest.Server
	failed atomic.Int64
}

func newLoad(h http.Handler) *load { return &load{server: httptest.NewServer(h)} }

// counted has the token counts of the server's metrics.
type counted struct{ prompt, cached, generated float64 }

func (c counted) minus(o counted) counted {
	return counted{c.prompt - o.prompt, c.cached - o.cached, c.generated - o.generated}
}

// computed returns the number of tokens that the model computed.
func (c counted) computed() float64 { return c.prompt - c.cached + c.generated }

// tokens reads the metrics.
func (l *load) tokens(b *testing.B) (c counted) {
	resp, err := http.Get(l.server.URL + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		for name, to := range map[string]*float64{"prompt": &c.prompt, "cached": &c.cached, "generated": &c.generated} {
			_, _ = fmt.Sscanf(lines.Text(), "rayo_"+name+"_tokens_total %g", to)
		}
	}
	return c
}

// run sends n requests from a number of clients.
func (l *load) run(b *testing.B, clients, n int) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	var sent atomic.Int64
	for i := range clients {
		wg.Go(func() {
			for sent.Add(1) <= int64(n) {
				if err := l.ask(client, i%8 == 7); err != nil {
					b.Log(err)
					l.failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

// ask sends a request and reads the streamed answer, or only its beginning.
func (l *load) ask(client *http.Client, vanish bool) error {
	words := strings.Fields("sea tree house blue river small old why sky stone")
	var question strings.Builder
	for range 20 {
		question.WriteString(words[rand.IntN(len(words))] + " ")
	}
	body := fmt.Sprintf(`{"messages": [{"role": "user", "content": %q}], "max_tokens": 32, "stream": true}`, question.String())
	resp, err := client.Post(l.server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	if vanish {
		_, err = io.CopyN(io.Discard, resp.Body, 600)
		return err
	}
	all, err := io.ReadAll(resp.Body)
	if err == nil && !bytes.Contains(all, []byte("[DONE]")) {
		return fmt.Errorf("the answer ends early: %q", all)
	}
	return err
}
