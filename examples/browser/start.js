// The program begins with a picture on the canvas: a landscape that is drawn here, so that the page needs no files.
function draw(canvas) {
	const c = canvas.getContext("2d", { willReadFrequently: true }), w = canvas.width, h = canvas.height;
	const sky = c.createLinearGradient(0, 0, 0, h);
	sky.addColorStop(0, "#27508f");
	sky.addColorStop(0.6, "#e8a06a");
	sky.addColorStop(1, "#f4d8a8");
	c.fillStyle = sky;
	c.fillRect(0, 0, w, h);
	c.fillStyle = "#fff0c0";
	c.beginPath();
	c.arc(0.7 * w, 0.52 * h, 0.08 * h, 0, 2 * Math.PI);
	c.fill();
	for (const [base, height, colour] of [[0.62, 0.2, "#6b5a7c"], [0.74, 0.16, "#465a4e"], [0.86, 0.1, "#2d3b2c"]]) {
		c.fillStyle = colour;
		c.beginPath();
		c.moveTo(0, h);
		for (let x = 0; x <= w; x += 4) {
			c.lineTo(x, h * (base - height * (0.5 + 0.3 * Math.sin(x / 70 + 9 * base) + 0.2 * Math.sin(x / 23 + 5 * base))));
		}
		c.lineTo(w, h);
		c.fill();
	}
}

window.addEventListener("DOMContentLoaded", async () => {
	draw(document.getElementById("picture"));
	const go = new Go();
	// ?device=cpu and ?device=webgpu:software choose as RAYO_DEVICE does.
	const device = new URLSearchParams(location.search).get("device");
	if (device) go.env = { RAYO_DEVICE: device };
	try {
		const { instance } = await WebAssembly.instantiateStreaming(fetch("page.wasm"), go.importObject);
		await go.run(instance);
	} catch (e) {
		document.getElementById("device").textContent = String(e);
	}
});
