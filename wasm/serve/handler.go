package main

import (
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"strings"
	"time"
)

// types are the content types of files. Browsers compile WebAssembly during the download only if its
// type is right. The other types differ between systems.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8", ".wasm": "application/wasm", ".json": "application/json", ".png": "image/png",
	".gguf": "application/octet-stream",
}

// policy allows the site's own files, WebAssembly, and objects that a page creates: the
// webcam's stream and icons.
const policy = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; img-src 'self' blob: data:; media-src 'self' blob:; object-src 'none'; base-uri 'none'; frame-ancestors 'none'"

// Handler serves the files of a folder. If there is a file name.gz beside a file name, it sends the
// former to browsers that accept gzip.
func Handler(dir string, isolate bool) http.Handler {
	root := os.DirFS(dir)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
		if name == "" {
			name = "index.html"
		}
		typ, ok := types[path.Ext(name)]
		if info, err := fs.Stat(root, name); !ok || err != nil || info.IsDir() {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", typ)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache") // browsers ask each time whether the file has changed
		h.Set("Vary", "Accept-Encoding")
		if isolate {
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Embedder-Policy", "require-corp")
		}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			if _, err := fs.Stat(root, name+".gz"); err == nil {
				h.Set("Content-Encoding", "gzip")
				name += ".gz"
			}
		}
		send(w, r, root, name)
	})
}

// send sends a file, or reports that the browser's copy is current. It reads only the parts that it
// sends, because models are large.
func send(w http.ResponseWriter, r *http.Request, root fs.FS, name string) {
	f, err := root.Open(name)
	if err != nil {
		http.Error(w, "the server cannot read the file", http.StatusInternalServerError)
		return
	}
	defer f.Close()
	changed := time.Time{}
	if info, err := f.Stat(); err == nil {
		changed = info.ModTime()
	}
	http.ServeContent(w, r, "", changed, f.(io.ReadSeeker)) // files of os.DirFS implement io.ReadSeeker
}
