//go:build unix && browser

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/rayo-go/rayo/internal/chrome"
)

// computes checks kernels of both modules of SIMD128, or what computes in their place.
func computes(t *testing.T, p *chrome.Page) {
	t.Helper()
	var wrong []string
	p.Eval(`(async () => {
		const wrong = [], n = 1003;
		const near = (name, got, want) => {
			const off = Math.max(...want.map((w, i) => Math.abs(got[i] - w) / (1 + Math.abs(w))));
			if (got.length !== want.length || !(off < 1e-5)) wrong.push(name + " is off by " + off);
		};
		const x = Float32Array.from({ length: n }, () => 4 * Math.random() - 2), numbers = [...x];
		near("relu", await gpu.relu(x), numbers.map((v) => Math.max(v, 0)));
		near("tanh", await gpu.tanh(x), numbers.map(Math.tanh));
		near("sum", [await gpu.sum(x)], [numbers.reduce((a, b) => a + b)]);
		near("argmax", [await gpu.argmax(x)], [numbers.indexOf(Math.max(...numbers))]);
		const total = numbers.reduce((s, v) => s + Math.exp(v), 0);
		near("softmax", await gpu.softmax(x, 1, n), numbers.map((v) => Math.exp(v) / total));
		const m = 9, k = 17, q = 13, a = x.subarray(0, m * k), b = x.subarray(500, 500 + k * q);
		const c = Array.from({ length: m * q }, (_, i) => a.subarray(Math.floor(i / q) * k).slice(0, k).reduce((s, v, j) => s + v * b[j * q + i % q], 0));
		near("matmul", await gpu.matmul(a, b, m, k, q), c);
		return wrong;
	})()`, &wrong)
	if len(wrong) > 0 {
		t.Errorf("the results are wrong: %q", wrong)
	}
}

// detached passes arrays whose memory is transferred before a call and during it.
func detached(t *testing.T, p *chrome.Page) {
	t.Helper()
	var got []string
	p.Eval(`(async () => {
		const transfer = (x) => structuredClone(x.buffer, { transfer: [x.buffer] });
		const result = (promise) => promise.then((y) => [...y].join(" "), (e) => e.code);
		const before = new Float32Array([-1, 2]), during = new Float32Array([-1, 2]);
		transfer(before);
		const first = await result(gpu.relu(before)), second = result(gpu.relu(during));
		transfer(during);
		return [first, await second, await result(gpu.relu(new Float32Array([-1, 2])))];
	})()`, &got)
	// The call may have copied its operand before the transfer.
	if len(got) > 1 && got[1] == "0 2" {
		got[1] = "ErrDetached"
	}
	if !slices.Equal(got, []string{"ErrDetached", "ErrDetached", "0 2"}) {
		t.Errorf("arrays whose memory was transferred gave %q", got)
	}
}

// oneModule refuses the second module of kernels, as a page's policy or an engine without room for it may do.
func (m *module) oneModule(t *testing.T) {
	p := m.open(t, m.b, `{
		const real = WebAssembly.Module, seen = globalThis.modules = [];
		WebAssembly.Module = new Proxy(real, { construct(target, [bytes]) {
			if (bytes.length > 8 && seen.push(bytes.length) > 1) throw new WebAssembly.CompileError("refused");
			return Reflect.construct(target, [bytes]);
		} });
	}`)
	quiet(t, p)
	detail := load(p, "cpu")
	computes(t, p)
	var modules []int
	if p.Eval(`modules`, &modules); len(modules) < 2 || !strings.Contains(detail, "simd128") {
		t.Errorf("the page has compiled modules of %v bytes, expected two; the device is %q", modules, detail)
	}
}

// limited computes in an engine that has no instructions of vectors, and whose memories have at most 256 MiB.
func (m *module) limited(t *testing.T) {
	p := m.open(t, chrome.Start(t, "--js-flags=--no-enable-sse4-1 --wasm-max-mem-pages=4096"))
	if detail := load(p, "cpu"); strings.Contains(detail, "simd128") || !strings.Contains(detail, "generic") {
		t.Errorf("the device is %q", detail)
	}
	computes(t, p)
	var got []string
	p.Eval(`(async () => {
		const result = (promise) => promise.then((y) => String(y.length), (e) => e.code);
		const large = new Float32Array(80e6), out = [];
		// The memory that earlier calls took counts too: each of these arrays fits alone.
		for (const n of [17e6, 17e6, 25e6, 30e6]) out.push(await result(gpu.relu(large.subarray(0, n))));
		out.push(await result(gpu.relu(large)), await result(gpu.matmul(large.subarray(0, 20000), large.subarray(0, 20000), 20000, 1, 20000)), await result(gpu.relu(new Float32Array(3))));
		return out;
	})()`, &got)
	if len(got) != 7 || !slices.Equal(got[4:], []string{"ErrOutOfMemory", "ErrOutOfMemory", "3"}) {
		t.Errorf("arrays beyond the memory gave %q", got)
	} else if slices.ContainsFunc(got[:4], func(s string) bool { return s != "ErrOutOfMemory" && !strings.HasSuffix(s, "000000") }) {
		t.Errorf("arrays of up to half of the memory gave %q", got[:4])
	}
	if e := p.Errors(); len(e) > 0 {
		t.Errorf("the page reported %q", e)
	}
	ended(t, p)
}

// ended runs a batch whose arrays exceed the memory, although each is too small to ask the page for it: the program ends,
// and no promise waits for ever.
func ended(t *testing.T, p *chrome.Page) {
	t.Helper()
	var got []string
	p.Eval(`(async () => {
		const result = (promise) => promise.then(() => "finished", (e) => e.code);
		const x = new Float32Array(15e6), b = gpu.batch();
		let v = b.upload(x);
		for (let i = 0; i < 7; i++) v = b.add(v, b.upload(x));
		const all = await Promise.all([result(b.run(v)), result(gpu.relu(x))]);
		await Promise.race([gpu.lost, new Promise((r) => setTimeout(() => { all.push("not lost"); r(); }, 10000))]);
		await gpu.close();
		return [...all, await result(gpu.relu(x))];
	})()`, &got)
	if !slices.Equal(got, []string{"ErrClosed", "ErrClosed", "ErrClosed"}) {
		t.Errorf("calls of a program without memory gave %q", got)
	}
}
