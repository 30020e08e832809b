// site.mjs is the demo site: it starts the program and shows its results.
const $ = (id) => document.getElementById(id);
let program; // the methods of page.wasm

// note shows the message of a demo, or an error.
function note(id, text, bad = false) {
	$(id).textContent = text;
	$(id).classList.toggle("bad", bad);
}

const ms = (v) => (v < 10 ? v.toFixed(1) : Math.round(v)) + " ms";

// latest returns a function that runs f. While f runs, it runs no second f: if it was called in that time,
// it runs f once more afterwards.
function latest(f) {
	let busy = false, again = false;
	return async () => {
		if (busy) { again = true; return; }
		busy = true;
		do {
			again = false;
			await f();
		} while (again);
		busy = false;
	};
}

async function start() {
	if (typeof WebAssembly !== "object") throw new Error("this browser has no WebAssembly");
	const go = new Go();
	const ready = new Promise((resolve, reject) => {
		globalThis.rayoReady = resolve;
		WebAssembly.instantiateStreaming(fetch("page.wasm"), go.importObject)
			.then(({ instance }) => go.run(instance))
			.then(() => reject(new Error("page.wasm ended before it was ready: its messages are in the console")), reject);
	});
	program = await ready;
	delete globalThis.rayoReady;
}

// open opens a device and shows its name, and why better devices were not opened.
async function open(name) {
	const status = $("status"), why = $("why");
	status.className = "";
	why.replaceChildren();
	$("path").textContent = "Opening a device …";
	document.body.dataset.state = "opening";
	try {
		const d = await program.open(name);
		$("path").textContent = d.kind === "webgpu" ? `WebGPU: ${d.name}` : `CPU: ${d.name || "WebAssembly"}`;
		if (d.detail) $("path").textContent += ` (${d.detail})`;
		status.className = "ready";
		for (const { kind, reason } of d.refused) {
			if (kind === "cuda") continue; // pages never have CUDA
			const li = document.createElement("li");
			li.textContent = `Not ${kind === "webgpu" ? "WebGPU" : kind}: ${reason}`;
			why.append(li);
		}
		return true;
	} catch (e) {
		$("path").textContent = "Not available";
		status.className = "failed";
		const li = document.createElement("li");
		li.textContent = e.message;
		why.append(li);
		return false;
	} finally {
		document.body.dataset.state = status.className || "failed";
	}
}

// Image filters.
let original; // ImageData that filters are applied to
let video = null;

function landscape(canvas) {
	const c = canvas.getContext("2d", { willReadFrequently: true });
	const { width: w, height: h } = canvas;
	const sky = c.createLinearGradient(0, 0, 0, h * 0.7);
	sky.addColorStop(0, "#2a4d8f");
	sky.addColorStop(0.6, "#e8a87c");
	sky.addColorStop(1, "#f6d8ae");
	c.fillStyle = sky;
	c.fillRect(0, 0, w, h);
	c.fillStyle = "#fff3d6";
	c.beginPath();
	c.arc(w * 0.7, h * 0.42, h * 0.09, 0, 2 * Math.PI);
	c.fill();
	for (const [base, height, colour] of [[0.62, 0.2, "#6b5a7c"], [0.74, 0.16, "#465a4e"], [0.86, 0.1, "#2d3b2c"]]) {
		c.fillStyle = colour;
		c.beginPath();
		c.moveTo(0, h);
		for (let x = 0; x <= w; x += 4) c.lineTo(x, h * (base - height * (0.5 + 0.3 * Math.sin(x / 70 + 9 * base) + 0.2 * Math.sin(x / 23 + 5 * base))));
		c.lineTo(w, h);
		c.fill();
	}
	return c.getImageData(0, 0, w, h);
}

// taken draws an image or a video frame into the canvas, scaled to fit, and returns the pixels.
function taken(source, width, height) {
	const canvas = $("picture");
	const scale = Math.min(1, 480 / width, 480 / height);
	canvas.width = Math.max(1, Math.round(width * scale));
	canvas.height = Math.max(1, Math.round(height * scale));
	const c = canvas.getContext("2d", { willReadFrequently: true });
	c.drawImage(source, 0, 0, canvas.width, canvas.height);
	return c.getImageData(0, 0, canvas.width, canvas.height);
}

const filter = latest(async () => {
	const canvas = $("picture");
	if (video) original = taken(video, video.videoWidth, video.videoHeight);
	const picture = new ImageData(new Uint8ClampedArray(original.data), original.width, original.height);
	try {
		const r = await program.filter($("filter").value, $("strength").valueAsNumber, picture.data, picture.width, picture.height);
		canvas.getContext("2d").putImageData(picture, 0, 0);
		note("filter-note", `${picture.width} × ${picture.height} pixels in ${ms(r.ms)}, to the device and back`);
	} catch (e) {
		note("filter-note", e.message, true);
	}
});

function stopVideo() {
	if (!video) return;
	for (const track of video.srcObject.getTracks()) track.stop();
	video = null;
	$("webcam").setAttribute("aria-pressed", "false");
}

async function webcam() {
	if (video) { stopVideo(); return; }
	try {
		const stream = await navigator.mediaDevices.getUserMedia({ video: { width: 480 }, audio: false });
		const v = document.createElement("video");
		v.muted = v.playsInline = true;
		v.srcObject = stream;
		await v.play();
		video = v;
		$("webcam").setAttribute("aria-pressed", "true");
		// The browser delivers frames only while the page is visible, so a hidden tab computes nothing.
		const frame = async () => {
			if (!video) return;
			await filter();
			requestAnimationFrame(frame);
		};
		requestAnimationFrame(frame);
	} catch (e) {
		note("filter-note", `No webcam: ${e.message}`, true);
	}
}

async function photo(file) {
	if (!file) return;
	try {
		const image = await createImageBitmap(file);
		stopVideo();
		original = taken(image, image.width, image.height);
		$("picture").setAttribute("aria-label", `${file.name}, as the chosen filter shows it`);
		filter();
	} catch {
		note("filter-note", `${file.name} is no picture that this browser reads`, true);
	}
}

// Mandelbrot.
const home = { x: -0.6, y: 0, span: 3.2 };
let view = { ...home };

const mandelbrot = latest(async () => {
	const canvas = $("mandelbrot"), c = canvas.getContext("2d");
	const picture = c.createImageData(canvas.width, canvas.height);
	const steps = Math.round(60 + 40 * Math.log2(home.span / view.span + 1));
	try {
		const r = await program.mandelbrot(picture.data, picture.width, picture.height, view.x, view.y, view.span, steps);
		c.putImageData(picture, 0, 0);
		note("mandelbrot-note", `Enlarged ${(home.span / view.span).toFixed(0)} ×, up to ${steps} steps a pixel, in ${ms(r.ms)}`);
	} catch (e) {
		note("mandelbrot-note", e.message, true);
	}
});

function move(dx, dy, zoom) {
	view.x += dx * view.span;
	view.y += dy * view.span;
	// Beyond this zoom, neighbouring pixels have equal coordinates in float32.
	view.span = Math.min(8, Math.max(2e-4, view.span / zoom));
	mandelbrot();
}

function mandelbrotKeys(e) {
	const step = { ArrowLeft: [-0.15, 0, 1], ArrowRight: [0.15, 0, 1], ArrowUp: [0, 0.15, 1], ArrowDown: [0, -0.15, 1], "+": [0, 0, 2], "=": [0, 0, 2], "-": [0, 0, 0.5] }[e.key];
	if (e.ctrlKey || e.metaKey || e.altKey) return;
	if (step) move(...step);
	else if (e.key === "0") { view = { ...home }; mandelbrot(); } else return;
	e.preventDefault();
}

// Handwritten digits.
function showChances({ chances, ms: took }, what) {
	const best = chances.indexOf(Math.max(...chances));
	[...$("chances").children].forEach((li, i) => {
		li.classList.toggle("best", i === best);
		li.querySelector(".fill").style.width = `${100 * chances[i]}%`;
		li.querySelector(".percent").textContent = `${Math.round(100 * chances[i])} %`;
	});
	note("digits-note", `${what}: read as ${best}, in ${ms(took)}`);
}

function clearDrawing() {
	const canvas = $("drawing"), c = canvas.getContext("2d", { willReadFrequently: true });
	c.fillStyle = "#fff";
	c.fillRect(0, 0, canvas.width, canvas.height);
	for (const li of $("chances").children) {
		li.classList.remove("best");
		li.querySelector(".fill").style.width = "0";
		li.querySelector(".percent").textContent = "";
	}
	note("digits-note", "");
}

const readDrawing = latest(async () => {
	const canvas = $("drawing"), { width, height } = canvas;
	const rgba = canvas.getContext("2d").getImageData(0, 0, width, height).data;
	const ink = Uint8Array.from({ length: width * height }, (_, i) => 255 - rgba[4 * i]);
	if (!ink.some((v) => v >= 128)) return;
	try {
		showChances(await program.digit(ink, width, height), "Your drawing");
	} catch (e) {
		note("digits-note", e.message, true);
	}
});

function drawing() {
	const canvas = $("drawing"), c = canvas.getContext("2d", { willReadFrequently: true });
	let last = null;
	const place = (e) => {
		const r = canvas.getBoundingClientRect();
		return [(e.clientX - r.left) * canvas.width / r.width, (e.clientY - r.top) * canvas.height / r.height];
	};
	const stroke = (e) => {
		const to = place(e);
		c.strokeStyle = "#000";
		c.lineWidth = 20;
		c.lineCap = c.lineJoin = "round";
		c.beginPath();
		c.moveTo(...(last ?? to));
		c.lineTo(...to);
		c.stroke();
		last = to;
	};
	canvas.addEventListener("pointerdown", (e) => {
		canvas.setPointerCapture(e.pointerId);
		if (canvas.dataset.sample) { clearDrawing(); delete canvas.dataset.sample; }
		last = null;
		stroke(e);
	});
	canvas.addEventListener("pointermove", (e) => { if (last) stroke(e); });
	for (const event of ["pointerup", "pointercancel"]) {
		canvas.addEventListener(event, () => { if (last) { last = null; readDrawing(); } });
	}
}

let sampled = 0;
async function sample() {
	try {
		const r = await program.sample(sampled++);
		const canvas = $("drawing"), c = canvas.getContext("2d", { willReadFrequently: true });
		const side = canvas.width / 8;
		r.pixels.forEach((v, i) => {
			const grey = 255 - Math.round(v * 255 / 16);
			c.fillStyle = `rgb(${grey} ${grey} ${grey})`;
			c.fillRect((i % 8) * side, Math.floor(i / 8) * side, side, side);
		});
		canvas.dataset.sample = "1";
		showChances(r, `A ${r.shown}`);
	} catch (e) {
		note("digits-note", e.message, true);
	}
}

// Benchmark.
const benches = [["matmul", "Product of 256 × 256 matrices"], ["softmax", "Softmax of 1000 × 1000"]];

function bar(name, value, most, kind) {
	const div = document.createElement("div");
	div.className = `bar ${kind}`;
	const label = document.createElement("span"), track = document.createElement("span"), fill = document.createElement("span"), text = document.createElement("span");
	label.textContent = name;
	track.className = "track";
	fill.className = "fill";
	fill.style.width = `${Math.max(1, 100 * value / most)}%`;
	text.className = "ms";
	text.textContent = ms(value);
	track.append(fill);
	div.append(label, track, text);
	return div;
}

async function measure() {
	$("bench").disabled = true;
	$("bars").replaceChildren();
	try {
		const said = [];
		for (const [name, title] of benches) {
			note("bench-note", `Measuring: ${title} …`);
			await new Promise((resolve) => setTimeout(resolve, 30)); // let the page show the note first
			const r = await program.bench(name);
			const most = Math.max(r.device, r.plain);
			const h3 = document.createElement("h3");
			h3.textContent = title;
			$("bars").append(h3, bar("rayo", r.device, most, "rayo"), bar("plain Go", r.plain, most, "plain"));
			const factor = r.plain / r.device;
			said.push(`${name}: ${factor >= 1 ? factor.toFixed(1) + " times as fast" : (1 / factor).toFixed(1) + " times slower"}`);
		}
		note("bench-note", `Against plain Go: ${said.join(", ")}.`);
	} catch (e) {
		note("bench-note", e.message, true);
	}
	$("bench").disabled = false;
}

function prepare() {
	original = landscape($("picture"));
	for (let i = 0; i < 10; i++) {
		const li = document.createElement("li");
		const digit = document.createElement("span"), track = document.createElement("span"), fill = document.createElement("span"), percent = document.createElement("span");
		digit.textContent = i;
		track.className = "track";
		fill.className = "fill";
		percent.className = "percent";
		track.append(fill);
		li.append(digit, track, percent);
		$("chances").append(li);
	}
	clearDrawing();
	drawing();
	for (const name of program.filters) {
		const option = document.createElement("option");
		option.value = name;
		option.textContent = name[0].toUpperCase() + name.slice(1);
		$("filter").append(option);
	}
	$("filter").value = "edges";
	$("filter").addEventListener("change", filter);
	$("strength").addEventListener("input", filter);
	$("photo").addEventListener("change", (e) => photo(e.target.files[0]));
	$("webcam").addEventListener("click", webcam);
	$("mandelbrot").addEventListener("click", (e) => {
		const r = e.target.getBoundingClientRect();
		move((e.clientX - r.left) / r.width - 0.5, (0.5 - (e.clientY - r.top) / r.height) * r.height / r.width, 2);
	});
	$("mandelbrot").addEventListener("keydown", mandelbrotKeys);
	$("zoom-in").addEventListener("click", () => move(0, 0, 2));
	$("zoom-out").addEventListener("click", () => move(0, 0, 0.5));
	$("zoom-home").addEventListener("click", () => { view = { ...home }; mandelbrot(); });
	$("clear").addEventListener("click", clearDrawing);
	$("sample").addEventListener("click", sample);
	$("bench").addEventListener("click", measure);
	$("device").addEventListener("change", () => choose($("device").value));
}

async function choose(name) {
	$("device").disabled = true;
	if (await open(name)) {
		await filter();
		await mandelbrot();
		document.body.dataset.state = "drawn";
	}
	$("device").disabled = false;
}

try {
	await start();
	prepare();
	// ?device=cpu in the URL has the effect of choosing cpu in the list.
	const wanted = new URLSearchParams(location.search).get("device") ?? "";
	$("device").value = wanted;
	await choose(wanted);
} catch (e) {
	$("path").textContent = `The program did not start: ${e.message}`;
	$("status").className = "failed";
	document.body.dataset.state = "failed";
}
