// report.mjs has the common code of the pages: medians, and reports to run.mjs.
export const log = (text) => fetch("/log", { method: "POST", body: text });
export const median = (x) => [...x].sort((a, b) => a - b)[x.length >> 1];

// run reports the result of f.
export async function run(f) {
	try {
		await fetch("/done", { method: "POST", body: JSON.stringify(await f()) });
	} catch (e) {
		await fetch("/failed", { method: "POST", body: `${e.stack ?? e}` });
	}
}
