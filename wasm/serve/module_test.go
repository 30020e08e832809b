//go:build unix && browser

// These tests run gpu.mjs in headless Chromium: in two Workers at a time, in a hidden page, in a page that
// loses its GPU, and in a page that may not compile WebAssembly.
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rayo-go/rayo/internal/chrome"
)

// worker runs the requested computation in a Worker and posts the sum.
const worker = `import { load } from "./gpu.mjs";
onmessage = async ({ data }) => {
	try {
		const gpu = await load({ device: data.device });
		let total = 0;
		for (let i = 0; i < data.rounds; i++) total += await gpu.sum(await gpu.matmul(data.a, data.a, 2, 2, 2));
		postMessage({ total, kind: gpu.device.kind });
		await gpu.close();
	} catch (e) { postMessage({ error: String(e) }); }
};`

func TestModule(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	if out, err := exec.Command("bash", "../npm/build.sh").CombinedOutput(); err != nil {
		t.Fatalf("build.sh: %v: %s", err, out)
	}
	dir := t.TempDir()
	for _, name := range []string{"gpu.mjs", "rayo.wasm", "wasm_exec.js"} {
		data, err := os.ReadFile(filepath.Join("../npm", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"index.html": "<!doctype html><title>module</title><link rel=icon href=data:,>", "worker.mjs": worker} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// The page is isolated: it has SharedArrayBuffer, and each file must permit that the page embeds it.
	server := httptest.NewServer(Handler(dir, true))
	t.Cleanup(server.Close)
	b := chrome.Start(t)
	open := func(t *testing.T) *chrome.Page {
		p := b.Page(ctx, t)
		p.Before(`const request = GPUAdapter.prototype.requestDevice; GPUAdapter.prototype.requestDevice = async function (...a) { return globalThis.taken = await request.apply(this, a); };`)
		p.Open(server.URL + "/")
		p.Wait(`document.title === "module"`)
		t.Cleanup(func() {
			if e := p.Errors(); len(e) > 0 {
				t.Errorf("the page reported %q", e)
			}
		})
		return p
	}

	t.Run("workers", func(t *testing.T) {
		p := open(t)
		var results []struct {
			Total       float64
			Kind, Error string
		}
		p.Eval(`Promise.all([["cpu", 300], ["cpu", 200]].map(([device, rounds]) => new Promise((resolve) => {
			const w = new Worker("worker.mjs", { type: "module" });
			w.onmessage = ({ data }) => resolve(data);
			w.onerror = (e) => resolve({ error: e.message });
			w.postMessage({ device, rounds, a: new Float32Array([1, 2, 3, 4]) });
		})))`, &results)
		for i, want := range []float64{300 * 54, 200 * 54} {
			if r := results[i]; r.Error != "" || r.Total != want || r.Kind != "cpu" {
				t.Errorf("Worker %d: %+v, not %v", i, r, want)
			}
		}
	})

	t.Run("policy", func(t *testing.T) {
		files := http.FileServer(http.Dir(dir))
		strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'self' data:")
			files.ServeHTTP(w, r)
		}))
		defer strict.Close()
		p := b.Page(ctx, t)
		p.Open(strict.URL + "/")
		p.Wait(`document.title === "module"`)
		var refused struct{ Code, Message string }
		p.Eval(`import("/gpu.mjs").then(({ load }) => load()).then(() => ({}), ({ code, message }) => ({ code, message }))`, &refused)
		if refused.Code != "ErrUnsupported" || !strings.Contains(refused.Message, "wasm-unsafe-eval") {
			t.Errorf("load in a page without wasm-unsafe-eval gave %+v", refused)
		}
	})

	t.Run("hidden and lost", func(t *testing.T) {
		p := open(t)
		b.Page(ctx, t).Front()
		p.Wait(`document.visibilityState === "hidden"`)
		p.Eval(`import("/gpu.mjs").then(async ({ load }) => { globalThis.gpu = await load({ device: "webgpu:software" }); })`, nil)
		hidden(t, p)
		lost(t, p)
	})
}

// hidden runs batches in a background page and checks that they leak nothing.
func hidden(t *testing.T, p *chrome.Page) {
	t.Helper()
	batches := func(n int) int {
		var right int
		p.Eval(fmt.Sprintf(`(async () => {
			let right = 0;
			for (let i = 0; i < %d; i++) {
				const b = gpu.batch();
				const [y] = await b.run(b.relu(b.add(b.upload(new Float32Array([i, -2])), b.upload(new Float32Array([1, 1])))));
				if (y.data[0] === i + 1 && y.data[1] === 0) right++;
			}
			return right;
		})()`, n), &right)
		if right != n {
			t.Errorf("%d of %d batches are right", right, n)
		}
		return p.Heap()
	}
	before := batches(50)
	if grown := batches(250) - before; grown > 1<<20 {
		t.Errorf("the heap of JavaScript has %d bytes more after 250 batches", grown)
	} else {
		t.Logf("250 batches: %d bytes more in JavaScript", grown)
	}
}

// lost takes the device away while a batch is under way.
func lost(t *testing.T, p *chrome.Page) {
	t.Helper()
	var codes []string
	p.Eval(`(async () => {
		const codes = [];
		const x = new Float32Array(1 << 18).fill(1);
		const b = gpu.batch();
		let v = b.upload(x);
		for (let i = 0; i < 5; i++) v = b.sin(v);
		const running = b.run(v).then(() => codes.push("finished"), (e) => codes.push(e.code));
		await new Promise((r) => setTimeout(r, 1));
		taken.destroy();
		await running;
		await gpu.lost;
		await gpu.relu(x).then(() => codes.push("finished"), (e) => codes.push(e.code));
		await gpu.close().catch(() => {});
		const { load } = await import("/gpu.mjs");
		const again = await load({ device: "cpu" });
		codes.push(String((await again.relu(new Float32Array([-1, 2])))[1]));
		return codes;
	})()`, &codes)
	// The batch may have finished before the device was lost.
	if len(codes) > 0 && codes[0] == "finished" {
		codes[0] = "ErrDeviceLost"
	}
	if !slices.Equal(codes, []string{"ErrDeviceLost", "ErrDeviceLost", "2"}) {
		t.Errorf("a call after the loss of the device gave %q", codes)
	}
}
