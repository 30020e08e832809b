// frame.mjs runs in a frame of start.mjs: it loads the program that the address of the frame names, and gives the page
// that has the frame the milliseconds from navigation to the result, and those that the engine took to compile.
import { load } from "./page.mjs";

const name = location.search.slice(1);
await load("/site/wasm_exec.js");
const go = new Go();
let result; // what the program prints
console.log = (text) => { result = text; };
const response = await fetch(`/site/${name}.wasm`);
const began = performance.now();
const module = await WebAssembly.compileStreaming(response);
const compile = performance.now() - began;
const instance = await WebAssembly.instantiate(module, go.importObject);
await go.run(instance);
parent.postMessage({ ms: performance.now(), compile, result });
