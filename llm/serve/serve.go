// Package serve runs a language model behind OpenAI's HTTP interface, so that clients of that
// interface can use a local model.
//
//	s := serve.New(a, serve.Options{})
//	err := http.ListenAndServe("localhost:8080", s)
//
// There are POST /v1/chat/completions, /v1/completions and /v1/embeddings, GET /v1/models, /health
// and /metrics (for Prometheus), and a page to chat at /. If the request sets stream, the answer is
// streamed as server-sent events. A response_format of json_object or json_schema is enforced by a
// grammar. The chat template describes tools to the model, and the server finds tool calls in its
// answer. A tool_choice that demands a call is enforced by a grammar too.
//
// The server does not trust requests: it limits bodies, prompts, queues and grammars, answers an
// invalid request with an error object, and ends a request within one token when its client
// disconnects. It refuses requests from web pages of other origins.
package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	_ "embed"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rayo-go/rayo/llm/assistant"
)

// Options has the options of [New]. The zero value is the default.
type Options struct {
	// Name is the model's name in answers; "" means the name in the file.
	Name string
	// Keys are the accepted keys of requests under /v1, sent as "Authorization: Bearer KEY"; without Keys
	// the server accepts every request.
	Keys []string
	// Waiting is the maximum number of requests that are waiting or being answered; 0 means 64.
	// Further requests are rejected with status 429.
	Waiting int
	// MaxBody is the maximum size of a request in bytes; 0 means 4 MiB.
	MaxBody int64
	// ReadTimeout is the maximum time for a client to send a request; 0 means 1 minute. Do not set the
	// ReadTimeout of [http.Server]: it would end answers that take longer.
	ReadTimeout time.Duration
	// WriteTimeout is the maximum time for a client to read a part of an answer; 0 means 30 s.
	WriteTimeout time.Duration
}

// Server is a handler of HTTP requests. It is safe for concurrent use.
type Server struct {
	a       *assistant.Assistant
	o       Options
	keys    [][sha256.Size]byte
	mux     *http.ServeMux
	handler http.Handler // mux, with protection against cross-origin requests
	busy    atomic.Int64
	numbers atomic.Int64 // counter for the ids of answers
	started time.Time
	metrics *metrics
}

//go:embed chat.html
var page []byte

// New returns a server for a model. The caller closes the assistant, after all requests have ended.
func New(a *assistant.Assistant, o Options) *Server {
	if o.Name == "" {
		o.Name = a.Name()
	}
	if o.Name == "" {
		o.Name = "model"
	}
	if o.Waiting <= 0 {
		o.Waiting = 64
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 4 << 20
	}
	if o.ReadTimeout <= 0 {
		o.ReadTimeout = time.Minute
	}
	if o.WriteTimeout <= 0 {
		o.WriteTimeout = 30 * time.Second
	}
	s := &Server{a: a, o: o, mux: http.NewServeMux(), started: time.Now()}
	s.metrics = newMetrics(s)
	for _, k := range o.Keys {
		s.keys = append(s.keys, sha256.Sum256([]byte(k)))
	}
	for pattern, h := range map[string]func(*exchange) error{
		"GET /v1/models":            (*exchange).models,
		"GET /v1/models/{id...}":    (*exchange).model,
		"POST /v1/chat/completions": (*exchange).chat,
		"POST /v1/completions":      (*exchange).complete,
		"POST /v1/embeddings":       (*exchange).embed,
	} {
		s.mux.Handle(pattern, s.guard(h))
	}
	s.mux.HandleFunc("GET /health", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	s.mux.Handle("GET /metrics", s.metrics.handler)
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:")
		_, _ = w.Write(page)
	})
	s.mux.HandleFunc("/v1/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &requestError{http.StatusNotFound, "there is no " + r.Method + " " + r.URL.Path, "", "not_found"})
	})
	origin := http.NewCrossOriginProtection()
	origin.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, &requestError{http.StatusForbidden, "requests from pages of other origins are not allowed", "", "cross_origin"})
	}))
	s.handler = origin.Handler(s.mux)
	return s
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// exchange is a request and its answer.
type exchange struct {
	*Server
	w      *recorder
	r      *http.Request
	answer answerID
	start  time.Time
}

// recorder records the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

func (w *recorder) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// guard checks the key, limits the body and the number of requests, and reports errors as JSON.
func (s *Server) guard(h func(*exchange) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{Server: s, w: &recorder{ResponseWriter: w}, r: r, start: time.Now()}
		defer func() { s.metrics.ended(r.Pattern, x.w.status, time.Since(x.start)) }()
		if !s.allowed(r) {
			x.w.Header().Set("WWW-Authenticate", "Bearer")
			writeError(x.w, &requestError{http.StatusUnauthorized, "the request has no valid key; send it as Authorization: Bearer KEY", "", "invalid_api_key"})
			return
		}
		if s.busy.Add(1) > int64(s.o.Waiting) {
			s.busy.Add(-1)
			x.w.Header().Set("Retry-After", "1")
			writeError(x.w, &requestError{http.StatusTooManyRequests, "too many requests wait; try again later", "", "overloaded"})
			return
		}
		defer s.busy.Add(-1)
		_ = http.NewResponseController(x.w).SetReadDeadline(time.Now().Add(s.o.ReadTimeout)) // the recorders of tests do not support deadlines
		r.Body = http.MaxBytesReader(x.w, r.Body, s.o.MaxBody)
		if err := h(x); err != nil && x.w.status == 0 {
			writeError(x.w, asRequestError(err))
		}
	})
}

// allowed reports whether a request has one of the keys. Its time does not depend on the position
// of the first wrong byte.
func (s *Server) allowed(r *http.Request) bool {
	if len(s.keys) == 0 {
		return true
	}
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	sum, ok := sha256.Sum256([]byte(key)), 0
	for _, k := range s.keys {
		ok |= subtle.ConstantTimeCompare(sum[:], k[:])
	}
	return ok == 1
}

// models lists the model.
func (x *exchange) models() error {
	writeJSON(x.w, http.StatusOK, map[string]any{"object": "list", "data": []any{x.describe()}})
	return nil
}

// model describes the model with the requested name.
func (x *exchange) model() error {
	if id := x.r.PathValue("id"); id != x.o.Name {
		return &requestError{http.StatusNotFound, "there is no model " + id + "; there is " + x.o.Name, "model", "model_not_found"}
	}
	writeJSON(x.w, http.StatusOK, x.describe())
	return nil
}

func (x *exchange) describe() any {
	c := x.a.Model().Config()
	return map[string]any{"id": x.o.Name, "object": "model", "created": x.started.Unix(), "owned_by": "rayo",
		"architecture": c.Architecture, "context_length": x.a.Model().Context()}
}

// requestError is an error answer.
type requestError struct {
	status  int
	message string
	param   string
	code    string
}

func (e *requestError) Error() string { return e.message }

// asRequestError chooses the status for an error of the packages that serve uses.
func asRequestError(err error) *requestError {
	var r *requestError
	var big *http.MaxBytesError
	if errors.As(err, &r) {
		return r
	}
	if errors.As(err, &big) {
		return &requestError{http.StatusRequestEntityTooLarge, "the request is too long", "", "request_too_large"}
	}
	var slow net.Error
	if errors.As(err, &slow) && slow.Timeout() {
		return &requestError{http.StatusRequestTimeout, "the request did not arrive in time", "", "request_timeout"}
	}
	for _, k := range kinds {
		if k.is(err) {
			return &requestError{k.status, err.Error(), k.param, k.code}
		}
	}
	return &requestError{http.StatusInternalServerError, err.Error(), "", "internal_error"}
}
