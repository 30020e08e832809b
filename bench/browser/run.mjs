// run.mjs runs a comparison in headless Chromium and prints what the page reports, as JSON:
//
//	node run.mjs PEERS SITE PAGE
//
// PEERS is a folder with node_modules, SITE is the folder that wasm/site/build.sh has built, and PAGE is the module
// of this folder that runs the comparison. ../browser.sh calls run.mjs.
import { spawn } from "node:child_process";
import { createReadStream, existsSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";

const [peers, site, page] = process.argv.slice(2);
const types = { ".html": "text/html", ".js": "text/javascript", ".mjs": "text/javascript", ".cjs": "text/javascript", ".wasm": "application/wasm", ".json": "application/json" };
const folders = { peers: join(peers, "node_modules"), site, bench: import.meta.dirname };

const server = createServer((request, response) => {
	const path = normalize(decodeURIComponent(new URL(request.url, "http://x").pathname));
	// The page is isolated, so that its clocks are precise. The compared systems still start no threads.
	const headers = { "Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Embedder-Policy": "require-corp" };
	if (request.method === "POST") {
		let text = "";
		request.on("data", (part) => { text += part; });
		request.on("end", () => { response.end(); receive(path, text); });
		return;
	}
	const script = path === "/" ? page : path === "/frame.mjs" ? "frame.mjs" : "";
	if (script) {
		response.writeHead(200, { ...headers, "Content-Type": types[".html"] });
		response.end(`<!doctype html><link rel=icon href=data:,><title>bench</title><body><script type=module src="/bench/${script}"></script>`);
		return;
	}
	const [, root, ...rest] = path.split("/");
	const file = folders[root] && join(folders[root], ...rest);
	if (!file || !existsSync(file) || !statSync(file).isFile()) {
		response.writeHead(404);
		response.end();
		return;
	}
	response.writeHead(200, { ...headers, "Content-Type": types[extname(file)] ?? "application/octet-stream", "Content-Length": statSync(file).size, "Cache-Control": "max-age=3600" });
	createReadStream(file).pipe(response);
});

const profile = mkdtempSync(join(tmpdir(), "bench-"));
let browser;
function finish(code) {
	browser.once("exit", () => {
		process.exitCode = code;
		server.close();
		server.closeAllConnections();
		// Other processes of the browser may still write there.
		rmSync(profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
	});
	process.kill(-browser.pid, "SIGKILL");
}
function receive(path, text) {
	if (path === "/log") { console.error(text); return; }
	console.log(text);
	finish(path === "/failed" ? 1 : 0);
}
server.listen(0, "127.0.0.1", () => {
	browser = spawn("chromium", ["--headless", "--no-sandbox", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
		"--disable-sync", "--disable-dev-shm-usage", "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", `--user-data-dir=${profile}`, `http://127.0.0.1:${server.address().port}/`], { stdio: "ignore", detached: true });
	setTimeout(() => { console.error("the page has not finished in ten minutes"); finish(1); }, 600e3).unref();
});
