//go:build ignore

// Command serve builds the page and serves it: go run serve.go, in this folder. Everything
// that a server has to do is here: the type of WebAssembly, compression, and a policy for
// the contents of the page.
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// files are the static files of the page; page.wasm and wasm_exec.js are added.
var files = []string{"index.html", "start.js", "page.css"}

// types are the content types of files. WebAssembly is compiled while it arrives if they are
// told that it is.
var types = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm"}

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "where to listen")
	flag.Parse()
	log.SetFlags(0)
	program, err := build()
	if err != nil {
		log.Fatal(err)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		log.Fatal(err)
	}
	contents := map[string][]byte{"page.wasm": program}
	for _, f := range append(files, filepath.Join(strings.TrimSpace(string(root)), "lib/wasm/wasm_exec.js")) {
		if contents[filepath.Base(f)], err = os.ReadFile(f); err != nil {
			log.Fatal(err)
		}
	}
	for name, data := range contents {
		path := "/" + name
		if name == "index.html" {
			path = "/{$}"
		}
		http.Handle("GET "+path, serve(name, data))
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%d bytes of WebAssembly: http://%s/\n", len(program), l.Addr())
	log.Fatal(http.Serve(l, nil))
}

// build compiles and packs the program.
func build() ([]byte, error) {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "page.wasm")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, ".")
	cmd.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	pack := exec.Command("go", "run", "github.com/rayo-go/rayo/wasm/pack", out)
	for _, c := range []*exec.Cmd{cmd, pack} {
		c.Stderr = os.Stderr
		if err := c.Run(); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(out)
}

// serve returns a handler that serves a file, compressed if the browser accepts that.
func serve(name string, data []byte) http.HandlerFunc {
	var small bytes.Buffer
	z, _ := gzip.NewWriterLevel(&small, gzip.BestCompression)
	z.Write(data)
	z.Close()
	if strings.HasSuffix(name, ".wasm") {
		fmt.Printf("%d bytes compressed\n", small.Len())
	}
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", types[filepath.Ext(name)])
		h.Set("Content-Security-Policy", "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' data:")
		h.Set("Vary", "Accept-Encoding")
		body := data
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			h.Set("Content-Encoding", "gzip")
			body = small.Bytes()
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(body))
	}
}
