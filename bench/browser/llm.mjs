// llm.mjs compares the speed of text generation of rayo and wllama with the same model, on one thread each. They run
// in turn, and the page reports medians.
import { Wllama } from "/peers/@wllama/wllama/esm/index.js";
import { log, median, run } from "./report.mjs";

const messages = [{ role: "user", content: "Tell me a long story about a dragon that could not fly." }];
const tokens = 64, rounds = 5;

// rate returns the tokens per second between the first and the last of the times, and the time until the first.
const rate = (began, times) => ({ first: times[0] - began, rate: 1000 * (times.length - 1) / (times.at(-1) - times[0]) });

function rayo(model) {
	const worker = new Worker("/site/chat-worker.mjs", { type: "module" });
	let receive;
	const until = (wanted, each) => new Promise((resolve, reject) => {
		receive = (data) => {
			if (data.type === "error") reject(new Error(data.message));
			each?.(data);
			if (data.type === wanted) resolve(data);
		};
	});
	worker.onmessage = ({ data }) => receive(data);
	return {
		async load() {
			const ready = until("ready");
			worker.postMessage({ type: "load", device: "cpu", model });
			return (await ready).detail;
		},
		async write() {
			const began = performance.now(), times = [];
			const done = until("done", (data) => {
				if (data.type !== "piece") return;
				times.push(performance.now());
				if (times.length === tokens) worker.postMessage({ type: "stop" });
			});
			worker.postMessage({ type: "say", messages, temperature: 0 });
			await done;
			return rate(began, times.slice(0, tokens));
		},
	};
}

function wllama(blob) {
	const w = new Wllama({ default: "/peers/@wllama/wllama/esm/wasm/wllama.wasm" }, { suppressNativeLog: true });
	return {
		async load() {
			await w.loadModel([blob], { n_threads: 1, n_ctx: 2048, n_gpu_layers: 0 });
			return `${w.getNumThreads()} thread`;
		},
		async write() {
			const began = performance.now(), times = [];
			await w.createChatCompletion({ messages, max_tokens: tokens, temperature: 0, stream: true, onData: (c) => { if (c.choices?.[0]?.delta?.content) times.push(performance.now()); } });
			return rate(began, times);
		},
	};
}

run(async () => {
	const model = await (await fetch("/site/model.json")).json();
	const blob = await (await fetch(`/site/${model.file}`)).blob();
	const all = { rayo: rayo(model), wllama: wllama(blob) }, results = {};
	for (const [name, system] of Object.entries(all)) {
		results[name] = { detail: await system.load(), rate: [], first: [] };
		await log(`${name}: loaded, ${results[name].detail}`);
		await system.write(); // the first run compiles plans
	}
	for (let i = 0; i < rounds; i++) {
		for (const [name, system] of Object.entries(all)) {
			const r = await system.write();
			results[name].rate.push(r.rate);
			results[name].first.push(r.first);
			await log(`${name}: ${r.rate.toFixed(1)} tokens a second, the first after ${r.first.toFixed(0)} ms`);
		}
	}
	return { model: model.name, ...Object.fromEntries(Object.entries(results).map(([name, r]) => [name, { detail: r.detail, tokensPerSecond: median(r.rate), best: Math.max(...r.rate), firstMs: median(r.first) }])) };
});
