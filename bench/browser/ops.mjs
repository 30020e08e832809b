// ops.mjs compares operations of rayo on SIMD128 with those of tfjs (wasm) and onnxruntime-web (wasm), on one thread
// each. They run in turn, and the page reports medians. rayo and tfjs compute on arrays in their own memory; the
// interface of onnxruntime-web copies arrays in and out.
import * as ort from "/peers/onnxruntime-web/dist/ort.wasm.min.mjs";
import { model } from "./onnx.mjs";
import { compare, fill, load, million, rayo, square } from "./page.mjs";
import { log, run } from "./report.mjs";

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
	// The convolutions of tfjs have the channels last. The inputs have the same numbers in another layout, so results are not compared.
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
	const systems = { rayo: await rayo("cpu"), tfjs: await tfjs(), "onnxruntime-web": await onnx() };
	const table = await compare(systems, times, 3, 9, [["conv2d", "tfjs"]]);
	const call = await systems.rayo.call();
	await log(`a call of a kernel: ${call.toFixed(3)} us`);
	return { ...table, call };
});
