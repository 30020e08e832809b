//go:build unix && browser

// These tests run gpu.mjs in headless Chromium: in three Workers at a time, in a hidden page, in a page that
// loses its GPU, in pages that may not compile WebAssembly or one module of kernels, and in an engine without SIMD.
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

// module is a server of gpu.mjs and a browser.
type module struct {
	ctx context.Context
	dir string
	url string
	b   *chrome.Browser
}

func newModule(t *testing.T) *module {
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
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	// The page is isolated: it has SharedArrayBuffer, and each file must permit that the page embeds it.
	server := httptest.NewServer(Handler(dir, true))
	t.Cleanup(server.Close)
	return &module{ctx, dir, server.URL, chrome.Start(t)}
}

// open opens a page of browser b. The given scripts run before those of the page.
func (m *module) open(t *testing.T, b *chrome.Browser, before ...string) *chrome.Page {
	t.Helper()
	p := b.Page(m.ctx, t)
	for _, script := range before {
		p.Before(script)
	}
	p.Open(m.url + "/")
	p.Wait(`document.title === "module" && crossOriginIsolated`)
	return p
}

// quiet fails the test if the page reports errors.
func quiet(t *testing.T, p *chrome.Page) {
	t.Cleanup(func() {
		if e := p.Errors(); len(e) > 0 {
			t.Errorf("the page reported %q", e)
		}
	})
}

// load loads the module in a page on a device, as the global variable gpu, and returns the details of the device.
func load(p *chrome.Page, device string) (detail string) {
	p.Eval(fmt.Sprintf(`import("/gpu.mjs").then(async ({ load }) => { globalThis.gpu = await load({ device: %q }); return gpu.device.detail; })`, device), &detail)
	return detail
}

func TestModule(t *testing.T) {
	m := newModule(t)
	t.Run("workers", m.workers)
	t.Run("policy", m.policy)
	t.Run("hidden and lost", func(t *testing.T) {
		p := m.open(t, m.b, `const request = GPUAdapter.prototype.requestDevice; GPUAdapter.prototype.requestDevice = async function (...a) { return globalThis.taken = await request.apply(this, a); };`)
		quiet(t, p)
		m.b.Page(m.ctx, t).Front()
		p.Wait(`document.visibilityState === "hidden"`)
		load(p, "webgpu:software")
		batches(t, p, 50)
		detached(t, p)
		lost(t, p)
	})
	t.Run("simd128", func(t *testing.T) {
		p := m.open(t, m.b)
		quiet(t, p)
		if detail := load(p, "cpu"); !strings.Contains(detail, "simd128") {
			t.Errorf("the device is %q", detail)
		}
		computes(t, p)
		batches(t, p, 100)
		detached(t, p)
	})
	t.Run("one module", m.oneModule)
	t.Run("limited engine", m.limited)
}

// workers computes in three Workers at a time, each with a device of its own.
func (m *module) workers(t *testing.T) {
	p := m.open(t, m.b)
	quiet(t, p)
	var results []struct {
		Total       float64
		Kind, Error string
	}
	p.Eval(`Promise.all([["cpu", 300], ["cpu", 200], ["webgpu:software", 10]].map(([device, rounds]) => new Promise((resolve) => {
		const w = new Worker("worker.mjs", { type: "module" });
		w.onmessage = ({ data }) => resolve(data);
		w.onerror = (e) => resolve({ error: e.message });
		w.postMessage({ device, rounds, a: new Float32Array([1, 2, 3, 4]) });
	})))`, &results)
	for i, want := range []float64{300 * 54, 200 * 54, 10 * 54} {
		kind := "cpu"
		if i == 2 {
			kind = "webgpu"
		}
		if r := results[i]; r.Error != "" || r.Total != want || r.Kind != kind {
			t.Errorf("Worker %d: %+v, not %v on %s", i, r, want, kind)
		}
	}
}

// policy loads the module in a page that may not compile WebAssembly.
func (m *module) policy(t *testing.T) {
	files := http.FileServer(http.Dir(m.dir))
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'self' data:")
		files.ServeHTTP(w, r)
	}))
	defer strict.Close()
	p := m.b.Page(m.ctx, t)
	p.Open(strict.URL + "/")
	p.Wait(`document.title === "module"`)
	var refused struct{ Code, Message string }
	p.Eval(`import("/gpu.mjs").then(({ load }) => load()).then(() => ({}), ({ code, message }) => ({ code, message }))`, &refused)
	if refused.Code != "ErrUnsupported" || !strings.Contains(refused.Message, "wasm-unsafe-eval") {
		t.Errorf("load in a page without wasm-unsafe-eval gave %+v", refused)
	}
}

// batches runs twenty times the given number of batches, checks their results, and checks that they leave nothing in the
// heap of JavaScript. Go's garbage collector frees the objects that Go refers to only from time to time, so it compares
// the smallest sizes.
func batches(t *testing.T, p *chrome.Page, rounds int) {
	t.Helper()
	var sizes [20]int
	for i := range sizes {
		var right int
		p.Eval(fmt.Sprintf(`(async () => {
			let right = 0;
			for (let i = 0; i < %d; i++) {
				const b = gpu.batch();
				const [y] = await b.run(b.relu(b.add(b.upload(new Float32Array([i, -2])), b.upload(new Float32Array([1, 1])))));
				if (y.data[0] === i + 1 && y.data[1] === 0) right++;
			}
			return right;
		})()`, rounds), &right)
		if right != rounds {
			t.Errorf("%d of %d batches are right", right, rounds)
		}
		sizes[i] = p.Heap()
	}
	grown := slices.Min(sizes[10:]) - slices.Min(sizes[:10])
	if most := 100_000 + 100*10*rounds; grown > most {
		t.Errorf("the heap of JavaScript has grown by %d bytes in %d batches, at most %d are expected; its sizes were %v", grown, 10*rounds, most, sizes)
	}
	t.Logf("%d batches: %d bytes more in JavaScript", 10*rounds, grown)
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
