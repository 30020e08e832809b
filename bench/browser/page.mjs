// page.mjs has the common code of the pages that compare operations: inputs, the program of rayo, and the comparison.
import { log, median } from "./report.mjs";

export const million = 1e6;
export const fill = (n) => Float32Array.from({ length: n }, (_, i) => ((i * 7) % 13) / 13 - 0.5);
export const square = (n) => [n, n];

// load runs a script of a library that defines a global variable.
export const load = (src) => new Promise((resolve, reject) => {
	const s = document.createElement("script");
	s.src = src;
	s.onload = resolve;
	s.onerror = () => reject(new Error(`the script ${src} did not load`));
	document.head.append(s);
});

// rayo starts ops.wasm on a device, "cpu" or "webgpu", with variables in its environment, and returns a function that
// runs its operations. The function's property call returns the microseconds of a call of a kernel.
export async function rayo(device, env = {}) {
	if (!globalThis.Go) await load("/site/wasm_exec.js");
	globalThis.rayoDevice = device;
	const go = new Go();
	go.env = env;
	const ready = new Promise((resolve) => { globalThis.rayoReady = resolve; });
	const { instance } = await WebAssembly.instantiateStreaming(fetch("/site/ops.wasm"), go.importObject);
	const ended = go.run(instance).then(() => { throw new Error("ops.wasm ended before it was ready: its message is in the console"); });
	const program = await Promise.race([ready, ended]);
	await log(`rayo: ${program.detail}`);
	const f = (name, times) => program.run(name, times);
	f.call = program.call;
	return f;
}

// compare measures operations in rounds, in which all systems take turns, and returns medians and shortest times. times
// has the number of runs of each operation in a round. warm rounds before do not count: engines compile functions while
// they run. compare does not check the results of the pairs [operation, system] in unlike.
export async function compare(systems, times, warm, rounds, unlike = []) {
	const table = {};
	for (const [name, n] of Object.entries(times)) {
		const ms = Object.fromEntries(Object.keys(systems).map((s) => [s, []]));
		let want;
		for (let i = -warm; i < rounds; i++) {
			for (const [system, f] of Object.entries(systems)) {
				const r = await f(name, n);
				if (i >= 0) ms[system].push(r.ms);
				want ??= r.first;
				const length = name.startsWith("dot") ? 1 : 8;
				const off = Math.max(...want.slice(0, length).map((v, j) => Math.abs(v - r.first[j]) / (1 + Math.abs(v))));
				if (!(off < 1e-3) && !unlike.some(([o, s]) => o === name && s === system)) throw new Error(`${name}: the result of ${system} is ${r.first}, expected ${want}`);
			}
		}
		table[name] = Object.fromEntries(Object.entries(ms).map(([s, x]) => [s, [median(x), Math.min(...x)]]));
		await log(`${name}: ${Object.entries(table[name]).map(([s, [m, best]]) => `${s} ${m.toFixed(3)} / ${best.toFixed(3)}`).join(", ")}`);
	}
	return table;
}
