// dawn.mjs gives Node.js navigator.gpu, by Dawn, which is in the npm package webgpu in the folder that
// RAYO_DAWN names: NODE_OPTIONS=--import=.ci/dawn.mjs
import { pathToFileURL } from "node:url";

const { create, globals } = await import(pathToFileURL(process.env.RAYO_DAWN + "/node_modules/webgpu/index.js"));
Object.assign(globalThis, globals);
Object.defineProperty(globalThis, "navigator", { value: { gpu: create(["backend=vulkan"]) }, configurable: true });
