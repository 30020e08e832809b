// chat-worker.mjs runs the model in a Worker, so that the page never waits for it. It gets the file of the
// model from the browser's cache or from the site, and starts chat.wasm.
import "./wasm_exec.js";

const cacheName = "rayo-chat";
let program; // the methods of chat.wasm

// rayoTurn lets pending events of this Worker run. A timer would take milliseconds.
const turn = new MessageChannel();
const waiting = [];
turn.port1.onmessage = () => waiting.shift()();
globalThis.rayoTurn = () => new Promise((resolve) => { waiting.push(resolve); turn.port2.postMessage(0); });

function start() {
	return new Promise((resolve, reject) => {
		globalThis.rayoReady = resolve;
		const go = new Go();
		WebAssembly.instantiateStreaming(fetch("chat.wasm"), go.importObject)
			.then(({ instance }) => go.run(instance))
			.then(() => reject(new Error("chat.wasm ended before it was ready: its messages are in the console")), reject);
	});
}

// store returns the cache of models, or undefined if the browser has no cache for this page.
async function store() {
	try { return await caches.open(cacheName); } catch { return undefined; }
}

// kept returns the file from the cache, or undefined if the cache does not have the whole file.
async function kept(cache, { file, bytes }) {
	try {
		const blob = await (await cache?.match(file))?.blob();
		return blob?.size === bytes ? blob : undefined;
	} catch { return undefined; }
}

// fetched gets the file from the site and posts its progress. It makes Blobs of the parts, which the browser may
// keep on disk.
async function fetched({ file, bytes }) {
	const response = await fetch(file, { cache: "no-store" });
	if (!response.ok) throw new Error(`fetching ${file} gave the status ${response.status}`);
	const reader = response.body.getReader(), blobs = [];
	let chunks = [], held = 0, got = 0;
	const flush = () => { blobs.push(new Blob(chunks)); chunks = []; held = 0; };
	for (;;) {
		const { done, value } = await reader.read();
		if (done) break;
		chunks.push(value);
		held += value.length;
		got += value.length;
		if (held >= 8 << 20) flush();
		postMessage({ type: "progress", phase: "fetch", done: got, total: bytes });
	}
	flush();
	if (got !== bytes) throw new Error(`${file}: ${got} bytes arrived, expected ${bytes}: load the model again`);
	return new Blob(blobs);
}

// keep replaces the files in the cache by this one, and returns whether the browser stored it.
async function keep(cache, { file }, blob) {
	try {
		for (const old of await cache.keys()) await cache.delete(old);
		await cache.put(file, new Response(blob));
		return true;
	} catch { return false; }
}

async function load({ device, model }) {
	const starting = start();
	starting.catch(() => {}); // the error is reported where starting is awaited below
	const cache = await store();
	let blob = await kept(cache, model);
	let source = "cache", stored = blob !== undefined;
	if (!blob) {
		blob = await fetched(model);
		source = "site";
		stored = cache !== undefined && await keep(cache, model, blob);
	}
	program = await starting;
	const facts = await program.load(device, blob, (done) => postMessage({ type: "progress", phase: "load", done, total: model.bytes }));
	postMessage({ type: "ready", source, stored, ...facts });
}

async function say({ messages, temperature }) {
	const usage = await program.say(messages, temperature, (text, tokens) => postMessage({ type: "piece", text, tokens }));
	postMessage({ type: "done", ...usage });
}

const methods = { load, say, stop: async () => program?.stop() };
onmessage = async ({ data }) => {
	try {
		await methods[data.type](data);
	} catch (e) {
		postMessage({ type: "error", during: data.type, message: e.message ?? String(e) });
	}
};
