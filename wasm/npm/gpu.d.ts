import type { Maps, Records } from "./operations.js";

/** The options of load. */
export interface LoadOptions {
	/**
	 * The device, in the syntax of RAYO_DEVICE: "cpu", "webgpu", "webgpu:software". The default is the GPU
	 * if there is one that is not emulated by software, else the CPU.
	 */
	device?: string;
	/** The URL of rayo.wasm, its bytes, or the compiled module. The default is rayo.wasm beside gpu.mjs. */
	wasm?: string | URL | BufferSource | WebAssembly.Module;
}

/** The device that was opened. refused says why better devices were not. */
export interface Device {
	readonly kind: "cpu" | "webgpu";
	/** kind:index */
	readonly id: string;
	readonly name: string;
	readonly detail: string;
	readonly refused: readonly { kind: string; reason: string }[];
}

/** The property code of errors. */
export type Code =
	| "ErrNoDevice" | "ErrOutOfMemory" | "ErrDeviceLost" | "ErrClosed" | "ErrShape" | "ErrLimit" | "ErrUnsupported"
	| "ErrOverlap" | "ErrDetached" | "ErrType" | "ErrForeign" | "ErrExpression";

/** An elementwise operation of one to three arrays, made from a text. */
export interface Expression {
	(...operands: Float32Array[]): Promise<Float32Array>;
	readonly arity: number;
	/** Frees the expression. Later calls of it fail with ErrClosed. */
	release(): void;
}

/** Starts the program and opens a device. */
export function load(options?: LoadOptions): Promise<GPU>;

export interface GPU extends Maps {}

/**
 * A device. Its methods take Float32Arrays, which may be parts of an ArrayBuffer and are not changed, and
 * return promises of new arrays. Wrong arguments reject the promise with an Error that has a code.
 */
export class GPU implements Maps {
	private constructor();
	readonly device: Device;
	/**
	 * Resolves when the browser has taken the device away, or the program has ended with a message in the console. Calls fail
	 * with ErrDeviceLost or ErrClosed then: call load again.
	 */
	readonly lost: Promise<void>;
	/** c[m,n] = a[m,k] · b[k,n], row by row. */
	matmul(a: Float32Array, b: Float32Array, m: number, k: number, n: number): Promise<Float32Array>;
	/** Softmax of each row of x[rows,cols]. */
	softmax(x: Float32Array, rows: number, cols: number): Promise<Float32Array>;
	sum(x: Float32Array): Promise<number>;
	mean(x: Float32Array): Promise<number>;
	min(x: Float32Array): Promise<number>;
	max(x: Float32Array): Promise<number>;
	/** The index of the smallest element, or of the first of several equal ones. */
	argmin(x: Float32Array): Promise<number>;
	/** The index of the greatest element, or of the first of several equal ones. */
	argmax(x: Float32Array): Promise<number>;
	dot(x: Float32Array, y: Float32Array): Promise<number>;
	/**
	 * Makes an elementwise operation: gpu.expression("max(x, 0) + s*min(x, 0)", "x", "s"). There are + - * / ^,
	 * comparisons, && and ||, c ? a : b, pi, and abs floor ceil round trunc sqrt exp exp2 expm1 log log2 log1p tanh sigmoid
	 * erf erfc sin cos atan square min max pow fma clamp. The operand is x if no names are given.
	 * Throws an Error of code ErrExpression with the column of the mistake.
	 */
	expression(text: string, ...names: string[]): Expression;
	/** Starts to record operations that run together, in one round trip. */
	batch(): Batch;
	/** Closes the device. Calls that have not ended are completed or rejected. */
	close(): Promise<void>;
}

/** An array that a batch will compute. */
export interface Value {
	readonly batch: Batch;
	readonly index: number;
}

/** An array with its shape. Truth values are 0 and 1. */
export interface Result {
	data: Float32Array | Int32Array | Uint32Array;
	shape: number[];
}

/** Negative axes count from the end. The default is all axes. */
export interface Along {
	axes?: number | number[];
	keepDims?: boolean;
}

export interface Batch extends Records {}

/**
 * Operations that run together. Values have shapes; shapes that do not match reject the promise of run.
 * A batch may run again, and reads its arrays anew each time.
 */
export class Batch implements Records {
	private constructor();
	/** An array that run will read. It has one axis if no shape is given. */
	upload(data: Float32Array | Int32Array | Uint32Array, shape?: number[]): Value;
	/** Runs the operations that the given values need, and returns the values. */
	run(...outs: Value[]): Promise<Result[]>;
	apply(expression: Expression, ...values: Value[]): Value;
	sum(x: Value, options?: Along): Value;
	prod(x: Value, options?: Along): Value;
	mean(x: Value, options?: Along): Value;
	min(x: Value, options?: Along): Value;
	max(x: Value, options?: Along): Value;
	argmin(x: Value, options?: Along): Value;
	argmax(x: Value, options?: Along): Value;
	normL1(x: Value, options?: Along): Value;
	normL2(x: Value, options?: Along): Value;
	normLinf(x: Value, options?: Along): Value;
	logsumexp(x: Value, options?: Along): Value;
	dot(x: Value, y: Value, options?: Along): Value;
	/** The default is the last axis. */
	softmax(x: Value, options?: { axes?: number | number[] }): Value;
	logSoftmax(x: Value, options?: { axes?: number | number[] }): Value;
	layerNorm(x: Value, gamma: Value, beta: Value, options?: { eps?: number }): Value;
	rmsNorm(x: Value, gamma: Value, options?: { eps?: number }): Value;
	scale(x: Value, options: { by: number }): Value;
	addScalar(x: Value, options: { by: number }): Value;
	leakyRelu(x: Value, options?: { slope?: number }): Value;
	/** a·x + y */
	axpy(x: Value, y: Value, options: { a: number }): Value;
	/** x + t·(y - x) */
	lerp(x: Value, y: Value, options: { t: number }): Value;
	/** Limits x to [lo, hi], by default [0, 1]. */
	clip(x: Value, options?: { lo?: number; hi?: number }): Value;
	/** a[... m k] · b[... k n], plus a bias of n elements; act names an elementwise operation of one operand. */
	matmul(a: Value, b: Value, options?: { transA?: boolean; transB?: boolean; act?: string }): Value;
	matmul(a: Value, b: Value, bias: Value, options?: { transA?: boolean; transB?: boolean; act?: string }): Value;
	/** x[n c h w], w[o c/groups kh kw], bias[o] */
	conv2d(x: Value, w: Value, options?: Conv2DOptions): Value;
	conv2d(x: Value, w: Value, bias: Value, options?: Conv2DOptions): Value;
	/** One extent may be -1: it is computed from the others. */
	reshape(x: Value, options: { shape: number[] }): Value;
	permute(x: Value, options: { order: number[] }): Value;
	/** Exchanges the last two axes. */
	transpose(x: Value): Value;
	/** Joins up to 8 values along an axis, by default the first one. */
	concat(...values: [...Value[], { axis?: number }] | Value[]): Value;
}

/** One number stands for both axes. */
export interface Conv2DOptions {
	stride?: number | [number, number];
	pad?: number | [number, number];
	dilation?: number | [number, number];
	groups?: number;
	act?: string;
}
