package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
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

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/gguf"
	"github.com/rayo-go/rayo/internal/tinymodel"
	"github.com/rayo-go/rayo/llm"
	"github.com/rayo-go/rayo/llm/assistant"
	"github.com/rayo-go/rayo/llm/serve"
)

// BenchmarkServe has 16 and 64 clients that ask one question after the other, of a server that generates 8 texts at
// once: a tiny model, or the file that RAYO_LLM_MODEL names. An iteration is a request of about 50 tokens whose answer
// has at most 32. Run it with -benchtime 200x or the like.
func BenchmarkServe(b *testing.B) {
	for _, clients := range []int{16, 64} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			dev, err := device.Open(context.Background())
			if err != nil {
				b.Fatal(err)
			}
			a, err := assistant.Load(context.Background(), dev, benchFile(b), assistant.Options{Parallel: 8, Model: llm.Options{Context: 512}})
			if err != nil {
				b.Fatal(err)
			}
			l := newLoad(serve.New(a, serve.Options{Waiting: clients}))
			l.run(clients, clients) // the passes are compiled
			before := runtime.NumGoroutine()
			l.generated.Store(0)
			l.prompt.Store(0)
			b.ResetTimer()
			l.run(clients, b.N)
			b.StopTimer()
			b.ReportMetric(float64(l.generated.Load())/b.Elapsed().Seconds(), "generated/s")
			b.ReportMetric(float64(l.generated.Load()+l.prompt.Load())/b.Elapsed().Seconds(), "tok/s")
			b.ReportMetric(float64(runtime.NumGoroutine()-before), "more-goroutines")
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			b.ReportMetric(float64(mem.Sys)/(1<<20), "MiB-sys")
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

// load sends requests to a server and counts the tokens.
type load struct {
	server                    *httptest.Server
	prompt, generated, failed atomic.Int64
}

func newLoad(h http.Handler) *load { return &load{server: httptest.NewServer(h)} }

// run sends n requests from so many clients.
func (l *load) run(clients, n int) {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var wg sync.WaitGroup
	var sent atomic.Int64
	for range clients {
		wg.Go(func() {
			for sent.Add(1) <= int64(n) {
				if err := l.ask(client); err != nil {
					l.failed.Add(1)
				}
			}
		})
	}
	wg.Wait()
}

// ask sends a request and reads the streamed answer.
func (l *load) ask(client *http.Client) error {
	words := strings.Fields("sea tree house blue river small old why sky stone")
	var question strings.Builder
	for range 20 {
		question.WriteString(words[rand.IntN(len(words))] + " ")
	}
	body := fmt.Sprintf(`{"messages": [{"role": "user", "content": %q}], "max_tokens": 32, "stream": true, "stream_options": {"include_usage": true}}`, question.String())
	resp, err := client.Post(l.server.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return errors.Join(err, errors.New(resp.Status))
	}
	for line := range bytes.Lines(all) {
		var e struct {
			Usage struct {
				Prompt    int `json:"prompt_tokens"`
				Generated int `json:"completion_tokens"`
				Details   struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if data, ok := bytes.CutPrefix(line, []byte("data: {")); ok && json.Unmarshal(append([]byte("{"), data...), &e) == nil {
			l.prompt.Add(int64(e.Usage.Prompt - e.Usage.Details.Cached))
			l.generated.Add(int64(e.Usage.Generated))
		}
	}
	return nil
}
