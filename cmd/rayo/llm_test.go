package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/testutil"
	"github.com/rayo-go/rayo/internal/tinymodel"
)

func TestRun(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu")
	model := tinymodel.Path(t)
	schema := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(schema, []byte(`{"type": "boolean"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if out := strings.TrimSpace(must(t, "run", model, "-q", "-p", "Is it?", "--schema", schema)); out != "true" && out != "false" {
		t.Errorf("%q follows no schema of a boolean", out)
	}
	one := must(t, "run", model, "-q", "-p", "Go on", "--raw", "-n", "8", "--temperature", "0")
	if two := must(t, "run", model, "-q", "-p", "Go on", "--raw", "-n", "8", "--temperature", "0", "--draft", model, "--cache", "f32", "--lookup", "3"); one != two || len(one) < 2 {
		t.Errorf("%q, then %q", one, two)
	}
	must(t, "run", model, "-q", "-p", "Go on", "--raw", "-n", "8", "--cache", "q8_0")
	for name, args := range map[string][]string{
		"no such file":   {"run", "nothing.gguf", "-p", "x"},
		"both":           {"run", model, "-p", "x", "--schema", schema, "--grammar", schema},
		"no grammar":     {"run", model, "-p", "x", "--grammar", schema},
		"sampling":       {"run", model, "-p", "x", "--temperature", "-3"},
		"no such device": {"serve", model, "--parallel", "0"},
	} {
		if code, out, errs := rayo(t, args...); code != exitFail && code != exitUsage || out != "" && out != "\n" || errs == "" {
			t.Errorf("%s: code %d, %q, %q", name, code, out, errs)
		}
	}
}

// TestEmbedFolder embeds with a real model in a folder with a safetensors file.
func TestEmbedFolder(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu")
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Setenv("TMP", temporary) // on Windows
	model := testutil.Model(t, testutil.MiniLM)
	if out := must(t, "embed", model, "one"); strings.Count(out, ",") != 384 {
		t.Errorf("%s: want 384 numbers", out)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("%v: %v is left behind", err, left)
	}
	if code, _, errs := rayo(t, "run", model, "-p", "x"); code != exitFail || !strings.Contains(errs, "rayo embed") {
		t.Errorf("code %d, %q, want a hint", code, errs)
	}
	if code, _, errs := rayo(t, "run", t.TempDir(), "-p", "x"); code != exitFail || !strings.Contains(errs, "config.json") {
		t.Errorf("code %d, %q of an empty folder", code, errs)
	}
}

func TestEmbed(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu")
	lines := strings.Split(strings.TrimSpace(must(t, "embed", tinymodel.Path(t), "one", "two")), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want 2", len(lines))
	}
	var v struct {
		Text      string
		Embedding []float32
	}
	if err := json.Unmarshal([]byte(lines[1]), &v); err != nil || v.Text != "two" || len(v.Embedding) != 64 {
		t.Errorf("%v, %q, %d numbers", err, v.Text, len(v.Embedding))
	}
}

func TestLLMBench(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu")
	var v struct{ Rows []llmRow }
	out := must(t, "llm-bench", tinymodel.Path(t), "-p", "20", "-n", "5", "-d", "0,10", "-r", "2", "--json")
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Rows) != 4 || v.Rows[3].Test != "tg5" || v.Rows[3].Depth != 10 || v.Rows[3].Mean <= 0 {
		t.Errorf("%v: %s", err, out)
	}
	if out := must(t, "llm-bench", tinymodel.Path(t), "-p", "20", "-n", "0", "-r", "1"); !strings.Contains(out, "pp20") || strings.Contains(out, "tg") {
		t.Error(out)
	}
	plot := filepath.Join(t.TempDir(), "plot.svg")
	out = must(t, "llm-bench", tinymodel.Path(t), "-p", "0", "-n", "3", "-b", "1,3", "-r", "2", "--json", "--plot", plot)
	if err := json.Unmarshal([]byte(out), &v); err != nil || len(v.Rows) != 2 || v.Rows[1].Batch != 3 || v.Rows[1].Mean <= 0 {
		t.Errorf("%v: %s", err, out)
	}
	var svg struct {
		Rects []struct{} `xml:"rect"`
	}
	if b, err := os.ReadFile(plot); err != nil || xml.Unmarshal(b, &svg) != nil || len(svg.Rects) != 3 || !bytes.Contains(b, []byte("tg3, 3 texts")) {
		t.Errorf("%v: the diagram is %s", err, b)
	}
	if code, _, _ := rayo(t, "llm-bench", tinymodel.Path(t), "-b", "0"); code != exitFail {
		t.Errorf("code %d of no texts at once", code)
	}
	if code, _, _ := rayo(t, "llm-bench", tinymodel.Path(t), "-r", "0"); code != exitFail {
		t.Errorf("code %d of no runs", code)
	}
}

// TestMessage tests messages of one line and of several lines.
func TestMessage(t *testing.T) {
	lines := strings.Split("one\n\"\"\"two\nthree\"\"\"\n\"\"\"\nfour\n\"\"\"\n\"\"\"five\"\"\"\n\"\"\"six", "\n")
	next := func() (string, error) {
		if len(lines) == 0 {
			return "", io.EOF
		}
		l := lines[0]
		lines = lines[1:]
		return l, nil
	}
	for _, want := range []string{"one", "two\nthree", "four", "five"} {
		if got, err := message(next); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := message(next); err != io.EOF {
		t.Errorf("%v, want the end", err)
	}
}

// lockedBuffer is written by a server while a test reads it.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestServe starts a server, sends requests, and interrupts the server during an answer, which must be completed.
func TestServe(t *testing.T) {
	t.Setenv("RAYO_DEVICE", "cpu")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs lockedBuffer
	ended := make(chan int, 1)
	model := tinymodel.Path(t)
	go func() {
		ended <- run(ctx, []string{"serve", model, "--listen", "localhost:0", "--draft", model, "--guesses", "3"}, io.Discard, &errs)
	}()
	var url string
	testutil.Soon(t, "the server says where it is", func() bool {
		m := regexp.MustCompile(`http://(\S+) `).FindStringSubmatch(errs.String())
		if m != nil {
			url = "http://" + m[1]
		}
		return m != nil
	})
	resp, err := http.Post(url+"/v1/completions", "application/json", strings.NewReader(`{"prompt": "x", "max_tokens": 100, "stream": true, "logit_bias": {"0": -1000}}`))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || !bytes.HasSuffix(b, []byte("[DONE]\n\n")) {
		t.Errorf("%v, %.200s", err, b)
	}
	select {
	case code := <-ended:
		if code != exitOK && code != exitInterrupted {
			t.Errorf("code %d, %s", code, errs.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not end")
	}
	http.DefaultClient.CloseIdleConnections()
}
