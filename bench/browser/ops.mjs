// ops.mjs compares operations of rayo on SIMD128 with those of tfjs (wasm) and onnxruntime-web (wasm), on one
// thread each: by turns, medians. Arrays stay where they are for rayo and tfjs; onnxruntime-web copies them in and out, as its interface does.
import * as ort from "/peers/onnxruntime-web/dist/ort.wasm.min.mjs";
import { model } from "./onnx.mjs";
import { log, median, run } from "./report.mjs";

const million = 1e6, rounds = 9;
const fill = (n) => Float32Array.from({ length: n }, (_, i) => ((i * 7) % 13) / 13 - 0.5);
const square = (n) => [n, n];

// load runs a script of a library that makes a global variable.
const load = (src) => new Promise((resolve, reject) => {
	const s = document.createElement("script");
	s.src = src;
	s.onload = resolve;
	s.onerror = () => reject(new Error(src));
	document.head.append(s);
});

async function rayo() {
	await load("/site/wasm_exec.js");
	const go = new Go();
	const ready = new Promise((resolve) => { globalThis.rayoReady = resolve; });
	const { instance } = await WebAssembly.instantiateStreaming(fetch("/site/ops.wasm"), go.importObject);
	go.run(instance);
	const program = await ready;
	await log(`rayo: ${program.detail}`);
	return (name, times) => program.run(name, times);
}

async function tfjs() {
	for (const name of ["core", "backend-cpu", "backend-wasm"]) await load(`/peers/@tensorflow/tfjs-${name}/dist/tf-${name}.min.js`);
	tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", false);
	tf.wasm.setWasmPaths("/peers/@tensorflow/tfjs-backend-wasm/dist/");
	await tf.setBackend("wasm");
	await log(`tfjs ${tf.version_core}: ${tf.getBackend()}, SIMD ${await tf.env().getAsync("WASM_HAS_SIMD_SUPPORT")}`);
	const x = tf.tensor1d(fill(million)), rows = tf.tensor2d(fill(million), square(1000));
	const all = {
		relu: () => tf.relu(x), add: () => tf.add(x, x), tanh: () => tf.tanh(x), sigmoid: () => tf.sigmoid(x),
		gelu: () => tf.mul(tf.mul(x, 0.5), tf.add(tf.erf(tf.mul(x, Math.SQRT1_2)), 1)),
		softmax: () => tf.softmax(rows), dot: () => tf.dot(x, x),
		layernorm: () => {
			const { mean, variance } = tf.moments(rows, 1, true);
			return tf.mul(tf.sub(rows, mean), tf.rsqrt(tf.add(variance, 1e-5)));
		},
	};
	for (const n of [256, 512, 1024]) {
		const a = tf.tensor2d(fill(n * n), square(n));
		all[`matmul${n}`] = () => tf.matMul(a, a);
	}
	// Its convolutions have channels last. As all pictures and weights are alike in their numbers only, results are not compared.
	const image = tf.tensor4d(fill(64 * 128 * 128), [1, 128, 128, 64]), weights = tf.tensor4d(fill(64 * 64 * 9), [3, 3, 64, 64]);
	all.conv2d = () => tf.conv2d(image, weights, 1, "same");
	return async (name, times) => {
		const began = performance.now();
		let y;
		for (let i = 0; i < times; i++) {
			y?.dispose();
			y = tf.tidy(all[name]);
		}
		const ms = (performance.now() - began) / times;
		const first = (await y.data()).slice(0, 8);
		y.dispose();
		return { ms, first };
	};
}

async function onnx() {
	ort.env.wasm.numThreads = 1;
	ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
	await log(`onnxruntime-web ${ort.env.versions.web}`);
	const flat = [million], rows = square(1000), image = [1, 64, 128, 128];
	const models = {
		relu: ["Relu", [flat], flat], add: ["Add", [flat, flat], flat], tanh: ["Tanh", [flat], flat], sigmoid: ["Sigmoid", [flat], flat], gelu: ["Gelu", [flat], flat],
		softmax: ["Softmax", [rows], rows, { axis: 1 }], layernorm: ["LayerNormalization", [rows, [1000]], rows, { axis: 1 }],
		dot: ["MatMul", [[1, million], [million, 1]], [1, 1]], conv2d: ["Conv", [image, [64, 64, 3, 3]], image, { pads: [1, 1, 1, 1] }],
	};
	for (const n of [256, 512, 1024]) models[`matmul${n}`] = ["MatMul", [square(n), square(n)], square(n)];
	const all = {};
	for (const [name, m] of Object.entries(models)) {
		const feeds = {};
		m[1].forEach((shape, i) => {
			const n = shape.reduce((a, b) => a * b);
			feeds[`x${i}`] = new ort.Tensor("float32", name === "layernorm" && i === 1 ? new Float32Array(n).fill(1) : fill(n), shape);
		});
		all[name] = [await ort.InferenceSession.create(model(...m)), feeds];
	}
	return async (name, times) => {
		const [session, feeds] = all[name];
		const began = performance.now();
		let y;
		for (let i = 0; i < times; i++) ({ y } = await session.run(feeds));
		return { ms: (performance.now() - began) / times, first: y.data.slice(0, 8) };
	};
}

const times = { relu: 50, add: 50, tanh: 6, sigmoid: 6, gelu: 4, softmax: 6, layernorm: 6, dot: 50, matmul256: 10, matmul512: 2, matmul1024: 1, conv2d: 1 };

run(async () => {
	const systems = { rayo: await rayo(), tfjs: await tfjs(), "onnxruntime-web": await onnx() }, table = {};
	for (const [name, n] of Object.entries(times)) {
		const ms = Object.fromEntries(Object.keys(systems).map((s) => [s, []]));
		let want;
		for (let i = -1; i < rounds; i++) {
			for (const [system, f] of Object.entries(systems)) {
				const r = await f(name, i < 0 ? 1 : n); // the first compiles
				if (i >= 0) ms[system].push(r.ms);
				want ??= r.first;
				const length = name === "dot" ? 1 : 8;
				const off = Math.max(...want.slice(0, length).map((v, j) => Math.abs(v - r.first[j]) / (1 + Math.abs(v))));
				if (!(off < 1e-3) && !(name === "conv2d" && system === "tfjs")) throw new Error(`${name}: ${system} has ${r.first}, not ${want}`);
			}
		}
		table[name] = Object.fromEntries(Object.entries(ms).map(([s, x]) => [s, [median(x), Math.min(...x)]]));
		await log(`${name}: ${Object.entries(table[name]).map(([s, [m, best]]) => `${s} ${m.toFixed(3)} / ${best.toFixed(3)}`).join(", ")}`);
	}
	return table;
});
