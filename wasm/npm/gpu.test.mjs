// Run these tests by node --test after build.sh. RAYO_TEST_DEVICE names the device, by default the choice of load.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { load } from "./gpu.mjs";

const device = process.env.RAYO_TEST_DEVICE;
let gpu;
before(async () => { gpu = await load({ device }); });
after(() => gpu.close());

const f32 = (...v) => new Float32Array(v);
const near = (got, want, within = 1e-5) => {
	assert.equal(got.length, want.length);
	want.forEach((w, i) => assert.ok(Math.abs(got[i] - w) <= within * Math.max(1, Math.abs(w)), `element ${i}: ${got[i]}, not ${w}`));
};
const code = (name) => (e) => e instanceof Error && e.code === name;

test("the device says what it is", () => {
	if (device) assert.ok(device.startsWith(gpu.device.kind));
	assert.match(gpu.device.id, /^(cpu|webgpu):\d+$/);
	for (const { kind, reason } of gpu.device.refused) assert.ok(kind && reason);
});

test("elementwise operations", async () => {
	const x = f32(-1, 2, -3, 4);
	assert.deepEqual(await gpu.relu(x), f32(0, 2, 0, 4));
	assert.deepEqual(x, f32(-1, 2, -3, 4));
	assert.deepEqual(await gpu.add(x, f32(1, 1, 1, 1)), f32(0, 3, -2, 5));
	near(await gpu.tanh(x), [...x].map(Math.tanh));
	assert.deepEqual(await gpu.relu(new Float32Array(0)), new Float32Array(0));
	const part = new Float32Array(f32(9, 9, -1, 5, 9).buffer, 8, 2); // an array with byteOffset 8
	assert.deepEqual(await gpu.relu(part), f32(0, 5));
});

test("many elements", async () => {
	const x = Float32Array.from({ length: 300001 }, (_, i) => Math.sin(i));
	const y = await gpu.relu(x);
	assert.ok(y.every((v, i) => v === Math.max(0, x[i])));
	const total = x.reduce((s, v) => s + v, 0);
	assert.ok(Math.abs((await gpu.sum(x)) - total) < 0.1);
});

test("matmul, softmax and reductions", async () => {
	assert.deepEqual(await gpu.matmul(f32(1, 2, 3, 4, 5, 6), f32(1, 0, 0, 1, 1, 1), 2, 3, 2), f32(4, 5, 10, 11));
	near(await gpu.softmax(f32(0, 0, Math.log(3), 0), 2, 2), [0.5, 0.5, 0.75, 0.25]);
	assert.equal(await gpu.mean(f32(1, 2, 6)), 3);
	assert.equal(await gpu.min(f32(1, -2, 6)), -2);
	assert.equal(await gpu.max(f32(1, -2, 6)), 6);
	assert.equal(await gpu.argmax(f32(1, -2, 6)), 2);
	assert.equal(await gpu.argmin(f32(1, -2, 6)), 1);
	assert.equal(await gpu.dot(f32(1, 2), f32(3, 4)), 11);
});

test("expressions", async () => {
	const leaky = gpu.expression("max(x, 0) + slope*min(x, 0)", "x", "slope");
	near(await leaky(f32(-2, 3), f32(0.5, 0.5)), [-1, 3]);
	const b = gpu.batch();
	const [y] = await b.run(b.apply(leaky, b.upload(f32(-4, 1)), b.upload(f32(0.25))));
	near(y.data, [-1, 1]);
	assert.throws(() => gpu.expression("max(x"), (e) => code("ErrExpression")(e) && /column 6/.test(e.message));
	leaky.release();
	await assert.rejects(leaky(f32(1), f32(1)), code("ErrClosed"));
});

test("batches", async () => {
	const b = gpu.batch();
	const x = b.upload(f32(1, -2, 3, -4, 5, -6), [2, 3]);
	const w = b.upload(f32(1, 0, 0, 1, 1, 1), [3, 2]);
	const y = b.matmul(b.relu(x), w, b.upload(f32(10, 20)), { act: "relu" });
	const [product, sums, best] = await b.run(y, b.sum(y, { axes: [0] }), b.argmax(y, { axes: [-1] }));
	assert.deepEqual(product, { data: f32(14, 23, 10, 25), shape: [2, 2] });
	assert.deepEqual(sums, { data: f32(24, 48), shape: [2] });
	assert.deepEqual(best, { data: Int32Array.of(1, 1), shape: [2] });
	const c = gpu.batch();
	const image = c.upload(Float32Array.from({ length: 9 }, (_, i) => i), [1, 1, 3, 3]);
	const box = c.upload(new Float32Array(9).fill(1), [1, 1, 3, 3]);
	const [blurred] = await c.run(c.reshape(c.conv2d(image, box, { pad: 1 }), { shape: [3, 3] }));
	assert.deepEqual(blurred.data, f32(8, 15, 12, 21, 36, 27, 20, 33, 24));
	// A batch may run again, with other numbers in its arrays.
	const data = f32(1, 2), again = gpu.batch(), twice = again.scale(again.upload(data), { by: 2 });
	assert.deepEqual((await again.run(twice))[0].data, f32(2, 4));
	data.set([5, 6]);
	assert.deepEqual((await again.run(twice))[0].data, f32(10, 12));
});

test("mistakes are errors with codes", async () => {
	await assert.rejects(gpu.add(f32(1, 2), f32(1)), code("ErrShape"));
	await assert.rejects(gpu.relu(f32(1), f32(1)), code("ErrShape"));
	await assert.rejects(gpu.relu([1, 2]), code("ErrType"));
	await assert.rejects(gpu.relu(new Float64Array(2)), code("ErrType"));
	await assert.rejects(gpu.relu(undefined), code("ErrType"));
	await assert.rejects(gpu.matmul(f32(1), f32(1), 1, 2, 1), code("ErrShape"));
	await assert.rejects(gpu.matmul(f32(1), f32(1), 0.5, 2, 1), code("ErrShape"));
	await assert.rejects(gpu.matmul(f32(), f32(), 1e9, 0, 1e9), (e) => code("ErrOutOfMemory")(e) || code("ErrLimit")(e) || code("ErrShape")(e));
	await assert.rejects(gpu.matmul(f32(), f32(), 50000, 0, 50000), (e) => code("ErrOutOfMemory")(e) || code("ErrLimit")(e));
	await assert.rejects(gpu.softmax(f32(1, 2), 2, 2), code("ErrShape"));
	const b = gpu.batch(), other = gpu.batch();
	assert.throws(() => b.relu(other.upload(f32(1))), code("ErrForeign"));
	assert.throws(() => b.relu(f32(1)), code("ErrForeign"));
	assert.throws(() => b.upload([1]), code("ErrType"));
	await assert.rejects(b.run(b.matmul(b.upload(f32(1)), b.upload(f32(1, 2, 3)))), code("ErrShape"));
	const large = gpu.batch(); // 14 GB
	await assert.rejects(
		large.run(large.add(large.upload(new Float32Array(60000), [60000, 1]), large.upload(new Float32Array(60000), [1, 60000]))),
		(e) => code("ErrOutOfMemory")(e) || code("ErrLimit")(e),
	);
	const c = gpu.batch();
	await assert.rejects(c.run(c.sum(c.upload(f32(1)), { axes: "all" })), code("ErrShape"));
	const gone = f32(1, 2);
	structuredClone(gone.buffer, { transfer: [gone.buffer] });
	await assert.rejects(gpu.relu(gone), code("ErrDetached"));
	await assert.rejects(load({ device: "abacus" }), code("ErrNoDevice"));
	assert.deepEqual(await gpu.relu(f32(-1, 1)), f32(0, 1)); // the device still works
});

test("many calls at a time, and two programs", async () => {
	const second = await load({ device });
	const results = await Promise.all(Array.from({ length: 60 }, (_, i) => (i % 2 ? gpu : second).add(f32(i), f32(1))));
	assert.deepEqual(results.map((r) => r[0]), Array.from({ length: 60 }, (_, i) => i + 1));
	await second.close();
	await second.close();
	await assert.rejects(second.relu(f32(1)), code("ErrClosed"));
	assert.throws(() => second.expression("x"), code("ErrClosed"));
});

// JavaScript objects that Go refers to are freed when Go's garbage collector runs, about every 1,200 batches.
// So the heap grows by a megabyte and shrinks again. The test compares the smallest sizes of the heap.
test("5,000 batches leave nothing behind", async () => {
	const once = async () => {
		const b = gpu.batch();
		const [y] = await b.run(b.relu(b.add(b.upload(f32(1, -2)), b.upload(f32(1, 1)))));
		assert.deepEqual(y.data, f32(2, 0));
	};
	const rounds = gpu.device.kind === "cpu" ? 250 : 50; // software that emulates a GPU is slow
	const sizes = [];
	for (let i = 0; i < 20; i++) {
		for (let j = 0; j < rounds; j++) await once();
		globalThis.gc?.();
		sizes.push(process.memoryUsage().heapUsed);
	}
	const grown = Math.min(...sizes.slice(10)) - Math.min(...sizes.slice(0, 10));
	if (globalThis.gc) assert.ok(grown < 100 * 10 * rounds, `${10 * rounds} batches have grown the heap by ${grown} bytes; its sizes were ${sizes}`);
});

test("the types name every method, and no other", async () => {
	const text = await readFile(new URL("gpu.d.ts", import.meta.url), "utf8") + await readFile(new URL("operations.d.ts", import.meta.url), "utf8");
	const members = (name) => {
		const found = new Set();
		for (const [, body] of text.matchAll(new RegExp(`(?:class|interface) (?:${name}) [^{]*\\{([^]*?)\\n\\}`, "g"))) {
			for (const [, m] of body.matchAll(/^\t(?:readonly )?(\w+)[(:<]/gm)) found.add(m);
		}
		return [...found].sort();
	};
	const has = (o) => [...new Set([...Object.getOwnPropertyNames(o), ...Object.getOwnPropertyNames(Object.getPrototypeOf(o))])].filter((n) => n !== "constructor").sort();
	assert.deepEqual(members("GPU|Maps"), has(gpu));
	assert.deepEqual(members("Batch|Records"), has(gpu.batch()));
});
