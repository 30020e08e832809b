// chat.mjs is the chat of the demo site: chat-worker.mjs runs the model.
const $ = (id) => document.getElementById(id);
const system = "You are a helpful assistant. Answer briefly.";
let model;    // the content of model.json
let worker;   // the Worker that runs the model
let messages; // the messages of the conversation
let answer;   // the element that shows the current answer

const megabytes = (n) => (n < 1e6 ? `${Math.ceil(n / 1e3)} kB` : `${Math.round(n / 1e6)} MB`);

function state(name, text) {
	document.body.dataset.state = name;
	$("status").className = { ready: "ready", answering: "ready", failed: "failed", missing: "failed" }[name] ?? "";
	if (text !== undefined) $("path").textContent = text;
	const ready = name === "ready";
	$("text").disabled = !ready && name !== "answering";
	$("send").disabled = $("new").disabled = !ready;
	$("stop").disabled = name !== "answering";
	$("loading").hidden = name !== "loading";
	$("log").setAttribute("aria-busy", String(name === "answering"));
}

function note(text, bad = false) {
	$("note").textContent = text;
	$("note").classList.toggle("bad", bad);
}

// add shows a message, and returns the element of its text.
function add(role, text) {
	$("empty").hidden = true;
	const article = document.createElement("article"), who = document.createElement("h3"), words = document.createElement("p");
	article.className = role;
	who.textContent = role === "user" ? "You" : "Model";
	words.textContent = text;
	article.append(who, words);
	$("log").append(article);
	$("log").scrollTop = $("log").scrollHeight;
	return words;
}

function begin() {
	messages = [{ role: "system", content: system }];
	$("log").replaceChildren($("empty"));
	$("empty").hidden = false;
	note("");
}

const receive = {
	progress({ phase, done, total }) {
		const percent = Math.min(100, Math.floor(100 * done / total));
		$("progress").value = percent;
		$("percent").textContent = `${percent} %`;
		const text = phase === "fetch" ? `Fetching the model, ${megabytes(total)} …` : "Giving the model to the device …";
		if ($("path").textContent !== text) $("path").textContent = text;
	},
	ready(m) {
		const on = m.kind === "webgpu" ? `WebGPU: ${m.device}` : `the CPU (${m.detail || "plain Go"})`;
		state("ready", `${m.name || model.name} is ready, on ${on}`);
		const from = m.source === "cache" ? "It was in this browser already." : m.stored ? "This browser keeps it for the next visit." : "This browser does not keep it: the next visit fetches it again.";
		$("about").textContent = `${model.name}, ${megabytes(model.bytes)}. ${from}${m.refused ? ` Not WebGPU: ${m.refused}` : ""}`;
		$("forget").hidden = !m.stored;
		if (!m.template) note("The model has no chat template: it continues the text that you write.");
		$("text").focus({ preventScroll: true });
	},
	piece({ text, tokens }) {
		const log = $("log"), atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
		answer.textContent += text;
		(answer.tokens ??= []).push(...tokens);
		if (atEnd) log.scrollTop = log.scrollHeight;
		if (answer.tokens.length === 1) note("Answering …");
	},
	done({ finish, prompt, cached, generated, firstMs, restMs }) {
		messages.push({ role: "assistant", content: answer.textContent });
		answer.parentElement.dataset.tokens = JSON.stringify(answer.tokens ?? []);
		const speed = generated > 1 ? `, ${(1000 * (generated - 1) / restMs).toFixed(1)} tokens a second` : "";
		const how = { stop: "The answer is complete", length: "The answer was cut at its greatest length" }[finish] ?? "Stopped";
		note(`${how}: ${generated ?? 0} tokens${speed}${firstMs === undefined ? "" : `, the first after ${Math.round(firstMs)} ms for ${prompt - cached} new tokens of the conversation`}.`);
		state("ready");
	},
	error({ during, message }) {
		if (during === "say") {
			messages.pop(); // the message without an answer
			answer.parentElement.remove();
			note(`No answer: ${message}`, true);
			state("ready");
			return;
		}
		state("failed", `The model was not loaded: ${message}`);
		$("load").hidden = false;
	},
};

// open has a new Worker load the model. It ends an earlier Worker, which frees its memory.
function open() {
	worker?.terminate();
	$("load").hidden = $("forget").hidden = true;
	$("progress").value = 0;
	$("percent").textContent = "";
	state("loading", "Starting …");
	begin();
	worker = new Worker("chat-worker.mjs", { type: "module" });
	worker.onmessage = ({ data }) => receive[data.type](data);
	worker.onerror = (e) => receive.error({ during: "load", message: e.message || "the Worker did not start: the console may say why" });
	worker.postMessage({ type: "load", device: $("device").value, model });
}

// isKept reports whether the browser has the file.
async function isKept() {
	try { return Boolean(await (await caches.open("rayo-chat")).match(model.file)); } catch { return false; }
}

async function forget() {
	await caches.delete("rayo-chat");
	$("forget").hidden = true;
	$("about").textContent = `${model.name} is no longer kept in this browser. It stays loaded until you leave the page.`;
	$("text").focus();
}

function send(e) {
	e.preventDefault();
	const text = $("text").value.trim();
	if (document.body.dataset.state !== "ready" || !text) return;
	$("text").value = "";
	messages.push({ role: "user", content: text });
	add("user", text);
	answer = add("assistant", "");
	state("answering");
	note("Reading your message …");
	worker.postMessage({ type: "say", messages, temperature: $("temperature").valueAsNumber });
}

function stop() {
	if (document.body.dataset.state === "answering") worker.postMessage({ type: "stop" });
}

function prepare() {
	$("form").addEventListener("submit", send);
	$("text").addEventListener("keydown", (e) => {
		if (e.key === "Enter" && !e.shiftKey && !e.isComposing) send(e);
	});
	document.addEventListener("keydown", (e) => { if (e.key === "Escape") stop(); });
	$("stop").addEventListener("click", stop);
	$("new").addEventListener("click", () => { begin(); $("text").focus(); });
	$("load").addEventListener("click", open);
	$("forget").addEventListener("click", forget);
	$("device").addEventListener("change", () => { if (worker) open(); });
	$("temperature").addEventListener("input", () => { $("temperature-value").value = $("temperature").value; });
	// ?device=cpu in the URL has the effect of choosing cpu in the list.
	$("device").value = new URLSearchParams(location.search).get("device") ?? "";
}

async function start() {
	prepare();
	model = await (await fetch("model.json")).json();
	if (!model.file) {
		$("missing").hidden = false;
		state("missing", "There is no model");
		return;
	}
	// Without the user's consent, only load a model that is cached.
	if (await isKept()) { open(); return; }
	$("load").hidden = false;
	$("load").textContent = `Load the model (${megabytes(model.bytes)})`;
	state("offered", `${model.name} can be loaded`);
}

start().catch((e) => state("failed", `The page did not start: ${e.message}`));
