// start.mjs measures the time from navigation to the first result of the smallest program of rayo, beside an empty
// program of Go. Each start navigates a new frame. Frames before the first that counts fill the browser's caches.
import { log, median, run } from "./report.mjs";

const warm = 6, rounds = 9;

const start = (name) => new Promise((resolve) => {
	const frame = document.createElement("iframe");
	const done = (e) => {
		if (e.source !== frame.contentWindow) return;
		removeEventListener("message", done);
		frame.remove();
		resolve(e.data);
	};
	addEventListener("message", done);
	frame.src = `/frame.mjs?${name}`;
	document.body.append(frame);
});

run(async () => {
	const starts = { empty: [], pagesize: [] };
	for (let i = -warm; i < rounds; i++) {
		for (const [name, all] of Object.entries(starts)) {
			const s = await start(name);
			if (name !== "empty" && s.result !== "0 2") throw new Error(`${name} printed ${s.result}, expected 0 2`);
			if (i >= 0) all.push(s);
		}
	}
	const table = {};
	for (const [name, all] of Object.entries(starts)) {
		const of = (f) => median(all.map(f));
		table[name] = { total: of((s) => s.ms), compile: of((s) => s.compile), rest: of((s) => s.ms - s.compile) };
		await log(`${name}: ${Object.entries(table[name]).map(([k, v]) => `${k} ${v.toFixed(1)}`).join(", ")} ms`);
	}
	return table;
});
