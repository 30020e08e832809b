// onnx.mjs makes ONNX models of one node for onnxruntime-web.
const text = new TextEncoder();

function varint(n) {
	const out = [];
	for (; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
	return [...out, n];
}

// number, bytes and float return the encoding of a field of a message.
const number = (field, n) => [...varint(field * 8), ...varint(n)];
const bytes = (field, b) => { const x = typeof b === "string" ? [...text.encode(b)] : b; return [...varint(field * 8 + 2), ...varint(x.length), ...x]; };

const value = (name, shape) => [...bytes(1, name), ...bytes(2, bytes(1, [...number(1, 1), ...bytes(2, shape.flatMap((n) => bytes(1, number(1, n))))]))];
const attribute = (name, v) => Array.isArray(v) ? [...bytes(1, name), ...v.flatMap((n) => number(8, n)), ...number(20, 7)] : [...bytes(1, name), ...number(3, v), ...number(20, 2)];

// model returns a model with a node of the given type. inputs and output are shapes.
export function model(type, inputs, output, attributes = {}) {
	const names = inputs.map((_, i) => `x${i}`);
	const node = [...names.flatMap((n) => bytes(1, n)), ...bytes(2, "y"), ...bytes(4, type), ...Object.entries(attributes).flatMap(([name, v]) => bytes(5, attribute(name, v)))];
	const graph = [...bytes(1, node), ...bytes(2, "g"), ...inputs.flatMap((shape, i) => bytes(11, value(names[i], shape))), ...bytes(12, value("y", output))];
	return new Uint8Array([...number(1, 9), ...bytes(7, graph), ...bytes(8, [...bytes(1, ""), ...number(2, 20)])]);
}
