// webgpu.mjs compares operations of rayo by WebGPU with those of tfjs (webgpu) and onnxruntime-web (webgpu). They run in
// turn, and the page reports medians. Operands are in the memory of the GPU, and the page reads each result.
import * as ort from "/peers/onnxruntime-web/dist/ort.min.mjs";
import { model } from "./onnx.mjs";
import { compare, fill, load, million, rayo, square } from "./page.mjs";
import { log, run } from "./report.mjs";

const sizes = [512, 1024];

async function tfjs() {
	for (const name of ["core", "backend-cpu", "backend-webgpu"]) await load(`/peers/@tensorflow/tfjs-${name}/dist/tf-${name}.min.js`);
	await tf.setBackend("webgpu");
	await log(`tfjs ${tf.version_core}: ${tf.getBackend()}`);
	const x = tf.tensor1d(fill(million)), rows = tf.tensor2d(fill(million), square(1000));
	const all = { relu: () => tf.relu(x), softmax: () => tf.softmax(rows) };
	for (const n of sizes) {
		const a = tf.tensor2d(fill(n * n), square(n));
		all[`matmul${n}`] = () => tf.matMul(a, a);
	}
	return async (name, times) => {
		const began = performance.now();
		let first;
		for (let i = 0; i < times; i++) {
			const y = tf.tidy(all[name]);
			first = (await y.data()).slice(0, 8);
			y.dispose();
		}
		return { ms: (performance.now() - began) / times, first };
	};
}

async function onnx() {
	ort.env.wasm.numThreads = 1;
	ort.env.wasm.wasmPaths = "/peers/onnxruntime-web/dist/";
	await log(`onnxruntime-web ${ort.env.versions.web}`);
	const flat = [million], rows = square(1000);
	const models = { relu: ["Relu", [flat], flat], softmax: ["Softmax", [rows], rows, { axis: 1 }] };
	for (const n of sizes) models[`matmul${n}`] = ["MatMul", [square(n), square(n)], square(n)];
	const all = {};
	for (const [name, m] of Object.entries(models)) {
		const session = await ort.InferenceSession.create(model(...m), { executionProviders: ["webgpu"] });
		const device = await ort.env.webgpu.device, feeds = {};
		m[1].forEach((shape, i) => {
			const x = fill(shape.reduce((a, b) => a * b));
			const buffer = device.createBuffer({ size: x.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST | GPUBufferUsage.COPY_SRC });
			device.queue.writeBuffer(buffer, 0, x);
			feeds[`x${i}`] = ort.Tensor.fromGpuBuffer(buffer, { dataType: "float32", dims: shape });
		});
		all[name] = [session, feeds];
	}
	return async (name, times) => {
		const [session, feeds] = all[name];
		const began = performance.now();
		let y;
		for (let i = 0; i < times; i++) ({ y } = await session.run(feeds));
		return { ms: (performance.now() - began) / times, first: y.data.slice(0, 8) };
	};
}

run(async () => compare({ rayo: await rayo("webgpu"), tfjs: await tfjs(), "onnxruntime-web": await onnx() }, { relu: 10, softmax: 4, matmul512: 1, matmul1024: 1 }, 1, 5));
