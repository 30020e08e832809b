// gpu.mjs is rayo for JavaScript: numbers in typed arrays, computed on the visitor's GPU, or on
// the CPU where there is none. Types and comments are in gpu.d.ts.
import "./wasm_exec.js";

const programs = new Map(); // compiled modules by their URLs
let loads = 0;

// compile returns the compiled program. It compiles once for each URL.
function compile(source) {
	if (source instanceof WebAssembly.Module) return source;
	if (!(typeof source === "string" || source instanceof URL)) return WebAssembly.compile(source);
	const url = String(source);
	if (!programs.has(url)) {
		const compiled = fetched(url);
		programs.set(url, compiled);
		compiled.catch(() => programs.delete(url));
	}
	return programs.get(url);
}

async function fetched(url) {
	if (url.startsWith("file:")) {
		const { readFile } = await import("node:fs/promises");
		return WebAssembly.compile(await readFile(new URL(url)));
	}
	const response = await fetch(url);
	if (!response.ok) throw new Error(`fetching ${url} gave the status ${response.status} ${response.statusText}`);
	const type = response.headers.get("Content-Type") ?? "";
	return type.startsWith("application/wasm") ? WebAssembly.compileStreaming(response) : WebAssembly.compile(await response.arrayBuffer());
}

// supported throws an error if this page cannot run a program of WebAssembly.
function supported() {
	if (typeof WebAssembly !== "object") throw failed("ErrUnsupported", "this browser has no WebAssembly, which rayo needs");
	try {
		new WebAssembly.Module(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)); // the smallest module
	} catch (cause) {
		throw Object.assign(failed("ErrUnsupported", "this page may not compile WebAssembly: add 'wasm-unsafe-eval' to script-src of its Content-Security-Policy"), { cause });
	}
}

export async function load(options = {}) {
	supported();
	const module = await compile(options.wasm ?? new URL("./rayo.wasm", import.meta.url));
	const go = new globalThis.Go();
	const name = `rayo module ${++loads}`;
	go.env = { RAYO_MODULE: name };
	if (options.device) go.env.RAYO_DEVICE = options.device;
	// A program that cannot go on, such as one without memory, ends with a message in the console.
	let ended;
	go.exit = () => ended();
	try {
		const methods = await new Promise((resolve, reject) => {
			globalThis[name] = (error, methods) => (error ? reject(error) : resolve(methods));
			ended = () => reject(new Error("rayo.wasm ended before it was ready: its messages are in the console"));
			WebAssembly.instantiate(module, go.importObject).then((instance) => go.run(instance)).catch(reject);
		});
		return new GPU(methods, (f) => { ended = f; });
	} finally {
		delete globalThis[name];
	}
}

// failed returns an error with a code, like the errors of the program.
function failed(code, message) {
	return Object.assign(new Error(message), { code });
}

// camel returns the name of an operation in camel case: leakyRelu for leaky_relu.
const camel = (name) => name.replace(/_(.)/g, (_, c) => c.toUpperCase());

// GPU is the class of the object that load returns.
export class GPU {
	#methods;
	#open = true;
	#closed = "the device is closed: call load again";
	#waiting = new Set(); // functions that reject the promises of running calls

	// onEnd sets the function that is called when the program has ended.
	constructor(methods, onEnd) {
		this.#methods = methods;
		this.device = Object.freeze(methods.device);
		this.lost = new Promise((resolve) => {
			onEnd(() => { this.#end(); resolve(); });
			methods.lost.then((lost) => { if (lost) resolve(); });
		});
		for (const { name, arity } of methods.operations) {
			const method = camel(name);
			if (method in this) continue;
			Object.defineProperty(this, method, {
				value: (...operands) => this.#map(name, method, arity, operands),
			});
		}
	}

	// end rejects the running calls and all later ones, because the program has ended.
	#end() {
		this.#open = false;
		this.#closed = "rayo.wasm has ended, and its message is in the console: call load again";
		for (const reject of this.#waiting) reject(failed("ErrClosed", this.#closed));
		this.#waiting.clear();
	}

	// call calls a method of the program, unless the device is closed.
	#call(method, ...args) {
		if (!this.#open) return Promise.reject(failed("ErrClosed", this.#closed));
		return new Promise((resolve, reject) => {
			this.#waiting.add(reject);
			const over = (settle) => (v) => { this.#waiting.delete(reject); settle(v); };
			this.#methods[method](...args).then(over(resolve), over(reject));
		});
	}

	#map(operation, name, arity, operands) {
		if (operands.length !== arity) {
			return Promise.reject(failed("ErrShape", `${name} has ${operands.length} arrays, expected ${arity}`));
		}
		return this.#call("map", operation, operands);
	}

	matmul(a, b, m, k, n) { return this.#call("matmul", a, b, m, k, n); }

	async #reduced(name, ...arrays) {
		const b = this.batch();
		const [result] = await b.run(b[name](...arrays.map((x) => b.upload(x))));
		return result.data[0];
	}

	sum(x) { return this.#reduced("sum", x); }
	mean(x) { return this.#reduced("mean", x); }
	min(x) { return this.#reduced("min", x); }
	max(x) { return this.#reduced("max", x); }
	argmin(x) { return this.#reduced("argmin", x); }
	argmax(x) { return this.#reduced("argmax", x); }
	dot(x, y) { return this.#reduced("dot", x, y); }

	async softmax(x, rows, cols) {
		const b = this.batch();
		const [result] = await b.run(b.softmax(b.upload(x, [rows, cols])));
		return result.data;
	}

	expression(text, ...names) {
		if (!this.#open) throw failed("ErrClosed", this.#closed);
		if (names.length === 0) names = ["x"];
		const id = this.#methods.define(String(text), names.map(String));
		if (id instanceof Error) throw id;
		const f = (...operands) => this.#map(id, "the expression", names.length, operands);
		f.id = id;
		f.arity = names.length;
		f.release = () => { if (this.#open) this.#methods.release(id); };
		return f;
	}

	batch() {
		return new Batch((...args) => this.#call("run", ...args), this.#methods.operations);
	}

	async close() {
		if (!this.#open) return;
		const closed = this.#call("close");
		this.#open = false;
		await closed;
	}
}

// A Value is an array that a batch will compute.
class Value {
	constructor(batch, index) {
		this.batch = batch;
		this.index = index;
		Object.freeze(this);
	}
}

// recorded lists operations that take values and options. Each is a method of batches.
const recorded = [
	"sum", "prod", "mean", "min", "max", "argmin", "argmax", "norm_l1", "norm_l2", "norm_linf", "logsumexp", "dot",
	"softmax", "log_softmax", "layer_norm", "rms_norm", "scale", "add_scalar", "leaky_relu", "axpy", "lerp", "clip",
	"matmul", "conv2d", "reshape", "permute", "transpose", "concat",
];

// A Batch records operations, which run together.
export class Batch {
	#run;
	#nodes = [];

	constructor(run, operations) {
		this.#run = run;
		for (const name of new Set([...recorded, ...operations.map((o) => o.name)])) {
			const method = camel(name);
			if (!(method in this)) Object.defineProperty(this, method, { value: (...args) => this.#record(name, args) });
		}
	}

	#add(...node) { return new Value(this, this.#nodes.push(node) - 1); }

	#index(v) {
		if (!(v instanceof Value) || v.batch !== this) throw failed("ErrForeign", "an operand is not a value of this batch: pass what methods of this batch return, and upload arrays first");
		return v.index;
	}

	#record(operation, args) {
		const last = args.at(-1);
		const options = args.length > 0 && !(last instanceof Value) ? args.pop() : {};
		if (options === null || typeof options !== "object" || ArrayBuffer.isView(options)) {
			throw failed("ErrForeign", "an operand is not a value of this batch: pass what methods of this batch return, and upload arrays first");
		}
		return this.#add(operation, args.map((v) => this.#index(v)), options);
	}

	upload(data, shape) {
		if (!(data instanceof Float32Array || data instanceof Int32Array || data instanceof Uint32Array)) {
			throw failed("ErrType", "upload expects a Float32Array, an Int32Array or a Uint32Array");
		}
		return this.#add("upload", data, shape ? { shape: [...shape] } : {});
	}

	apply(expression, ...values) { return this.#add(expression.id, values.map((v) => this.#index(v)), {}); }

	async run(...outs) {
		const results = await this.#run(this.#nodes, outs.map((v) => this.#index(v)));
		return results.map(([data, shape]) => ({ data, shape }));
	}
}
