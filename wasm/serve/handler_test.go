package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHandler(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"index.html": "<p>", "page.wasm": "\x00asm", "page.wasm.gz": "small", "site.mjs": "1", "secret.txt": "no",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "sub.html"), 0o777); err != nil {
		t.Fatal(err)
	}
	get := func(h http.Handler, method, path, accept string) *http.Response {
		r := httptest.NewRequest(method, "/", nil)
		r.URL.Path = path
		r.Header.Set("Accept-Encoding", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Result()
	}
	h := Handler(dir, false)
	for _, c := range []struct {
		method, path, accept string
		status               int
		typ, encoding        string
		length               int64
	}{
		{"GET", "/", "", 200, "text/html; charset=utf-8", "", 3},
		{"GET", "/page.wasm", "gzip, br", 200, "application/wasm", "gzip", 5},
		{"GET", "/page.wasm", "", 200, "application/wasm", "", 4},
		{"HEAD", "/site.mjs", "gzip", 200, "text/javascript; charset=utf-8", "", 1},
		{"GET", "/secret.txt", "", 404, "", "", -1},
		{"GET", "/none.html", "", 404, "", "", -1},
		{"GET", "/sub.html", "", 404, "", "", -1},
		{"GET", "/../../etc/passwd.html", "", 404, "", "", -1},
		{"GET", "/page.wasm.gz", "", 404, "", "", -1},
		{"POST", "/", "", 405, "", "", -1},
	} {
		r := get(h, c.method, c.path, c.accept)
		if r.StatusCode != c.status {
			t.Errorf("%s %s gave the status %d, expected %d", c.method, c.path, r.StatusCode, c.status)
			continue
		}
		if c.status != 200 {
			continue
		}
		if got := r.Header.Get("Content-Type"); got != c.typ {
			t.Errorf("%s is of type %s", c.path, got)
		}
		if got := r.Header.Get("Content-Encoding"); got != c.encoding {
			t.Errorf("%s is encoded as %q", c.path, got)
		}
		if csp := r.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "'wasm-unsafe-eval'") || strings.Contains(csp, "unsafe-inline") {
			t.Errorf("%s has the policy %s", c.path, csp)
		}
		if r.Header.Get("Cross-Origin-Embedder-Policy") != "" {
			t.Errorf("%s is isolated", c.path)
		}
	}
	r := get(Handler(dir, true), "GET", "/", "")
	if r.Header.Get("Cross-Origin-Embedder-Policy") != "require-corp" || r.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" {
		t.Errorf("not isolated: %v", r.Header)
	}
}
