package serve

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/rayo-go/rayo/llm/assistant"
)

// metrics has the counters of the server for Prometheus. Its registry also has those of the Go runtime and of the process.
type metrics struct {
	handler                   http.Handler
	requests                  *prometheus.CounterVec
	duration                  *prometheus.HistogramVec
	first                     prometheus.Histogram
	prompt, cached, generated prometheus.Counter
	guessed, confirmed        prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	r := prometheus.NewRegistry()
	counter := func(name, help string) prometheus.Counter {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
		r.MustRegister(c)
		return c
	}
	seconds := prometheus.ExponentialBuckets(0.01, 2, 15)
	m := &metrics{
		handler:   promhttp.HandlerFor(r, promhttp.HandlerOpts{}),
		requests:  prometheus.NewCounterVec(prometheus.CounterOpts{Name: "rayo_requests_total", Help: "Requests answered."}, []string{"route", "status"}),
		duration:  prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "rayo_request_seconds", Help: "Time until a request was answered.", Buckets: seconds}, []string{"route"}),
		first:     prometheus.NewHistogram(prometheus.HistogramOpts{Name: "rayo_first_token_seconds", Help: "Time until the first token of an answer.", Buckets: seconds}),
		prompt:    counter("rayo_prompt_tokens_total", "Tokens of prompts."),
		cached:    counter("rayo_cached_tokens_total", "Tokens of prompts that were computed before."),
		generated: counter("rayo_generated_tokens_total", "Tokens generated."),
		guessed:   counter("rayo_guessed_tokens_total", "Tokens guessed by the draft model."),
		confirmed: counter("rayo_confirmed_tokens_total", "Guessed tokens that were right."),
	}
	busy := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "rayo_requests_busy", Help: "Requests that wait or are answered."}, func() float64 { return float64(s.busy.Load()) })
	r.MustRegister(m.requests, m.duration, m.first, busy, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// ended counts a request.
func (m *metrics) ended(route string, status int, d time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(route).Observe(d.Seconds())
}

// count counts tokens.
func (m *metrics) count(u assistant.Usage) {
	m.prompt.Add(float64(u.Prompt))
	m.cached.Add(float64(u.Cached))
	m.generated.Add(float64(u.Generated))
	m.guessed.Add(float64(u.Guessed))
	m.confirmed.Add(float64(u.Confirmed))
}
