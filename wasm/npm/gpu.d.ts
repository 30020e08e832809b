import type { Maps, Records } from "./operations.js";

/** What load takes. */
export interface LoadOptions {
	/**
	 * The device, as RAYO_DEVICE names it: "cpu", "webgpu", "webgpu:software". The best one if it is
	 * not given: the GPU if there is one that is not played by software, else the CPU.
	 */
	device?: string;
	/** Where rayo.wasm is, its bytes, or the module. It stands beside gpu.mjs otherwise. */
	wasm?: string | URL | BufferSource | WebAssembly.Module;
}

/** Which device was opened, and why no better one was. */
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
	/** Forgets the expression; later calls are ErrClosed. */
	release(): void;
}

/** Starts the program and opens a device. */
export function load(options?: LoadOptions): Promise<GPU>;

export interface GPU extends Maps {}

/**
 * A device. Its methods take Float32Arrays, also parts of an ArrayBuffer, leave them as they are, and
 * return promises of new ones. Arguments that do not fit reject the promise with an Error that has a code.
 */
export class GPU implements Maps {
	private constructor();
	readonly device: Device;
	/** Resolves when the browser has taken the device away. Calls are ErrDeviceLost then: load again. */
	readonly lost: Promise<void>;
	/** c[m,n] = a[m,k] · b[k,n], row by row. */
	matmul(a: Float32Array, b: Float32Array, m: number, k: number, n: number): Promise<Float32Array>;
	/** Softmax of each row of x[rows,cols]. */
	softmax(x: Float32Array, rows: number, cols: number): Promise<Float32Array>;
	sum(x: Float32Array): Promise<number>;
	mean(x: Float32Array): Promise<number>;
	min(x: Float32Array): Promise<number>;
	max(x: Float32Array): Promise<number>;
	/** The place of the least element, the first of equal ones. */
	argmin(x: Float32Array): Promise<number>;
	/** The place of the greatest element, the first of equal ones. */
	argmax(x: Float32Array): Promise<number>;
	dot(x: Float32Array, y: Float32Array): Promise<number>;
	/**
	 * Makes an elementwise operation: gpu.expression("max(x, 0) + s*min(x, 0)", "x", "s"). There are + - * / ^,
	 * comparisons, && and ||, c ? a : b, pi, and abs floor ceil round trunc sqrt exp exp2 expm1 log log2 log1p tanh sigmoid
	 * erf erfc sin cos atan square min max pow fma clamp. The operand is x if no names are given.
	 * Throws an Error of code ErrExpression that says the column.
	 */
	expression(text: string, ...names: string[]): Expression;
	/** Starts to record operations that run together, in one round trip. */
	batch(): Batch;
	/** Ends the program. Calls under way are finished or rejected. */
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

/** Axes count from the end if they are below 0; all are meant if none are given. */
export interface Along {
	axes?: number | number[];
	keepDims?: boolean;
}

export interface Batch extends Records {}

/**
 * Operations that run together. Values have shapes; mistakes in them reject run. A batch may run
 * again, and reads its arrays anew each time.
 */
export class Batch implements Records {
	private constructor();
	/** An array that run will read; of one axis if no shape is given. */
	upload(data: Float32Array | Int32Array | Uint32Array, shape?: number[]): Value;
	/** Runs what the values need, and returns these. */
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
	/** Along the last axis if none is given. */
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
	/** Between lo, 0 if it is not given, and hi, 1 if it is not given. */
	clip(x: Value, options?: { lo?: number; hi?: number }): Value;
	/** a[... m k] · b[... k n], plus a bias of n elements; act names an elementwise operation of one operand. */
	matmul(a: Value, b: Value, options?: { transA?: boolean; transB?: boolean; act?: string }): Value;
	matmul(a: Value, b: Value, bias: Value, options?: { transA?: boolean; transB?: boolean; act?: string }): Value;
	/** x[n c h w], w[o c/groups kh kw], bias[o] */
	conv2d(x: Value, w: Value, options?: Conv2DOptions): Value;
	conv2d(x: Value, w: Value, bias: Value, options?: Conv2DOptions): Value;
	/** One extent may be -1, and follows from the others. */
	reshape(x: Value, options: { shape: number[] }): Value;
	permute(x: Value, options: { order: number[] }): Value;
	/** Exchanges the last two axes. */
	transpose(x: Value): Value;
	/** Up to 8 values, one behind the other along an axis, the first one if none is given. */
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
