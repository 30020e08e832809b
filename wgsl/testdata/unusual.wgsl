// What a text may have and those of rayo do not.
diagnostic(off, derivative_uniformity);
const_assert 2 < 3;
struct In { @builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32 }
alias Pair = vec2<f32>;
const table = array(1u, 2u, 3u);
const n = table[1] << 1u;
@group(0) @binding(0) var<storage, read_write> y: array<Pair, 8>;
var<private> seed: u32 = 7u;
fn last() -> u32 { return first + 1u; }
const first = 3u;
fn swap(p: ptr<function, Pair>) { let old = *p; (*p).x = old.y; (*p).y = old.x; }
@must_use fn pick(a: i32) -> i32 {
	switch a { case 0, 1: { return 1; } case 2 { return 2; } default: { } }
	switch (a) { case 7, default { return 3; } }
	return 4;
}
@compute @workgroup_size(8, 1u, n / 4) fn main(in: In) {
	var v = Pair(f32(in.lane), 2);
	swap(&v);
	let v2 = v.x < v.y;
	if (v.x < v.y && v.y > v.x) || !v2 { v = -v; } else if v2 { v += v; } else { v *= 2.0; }
	for (var i = 0u; i < n; i++) { let i = i + 1u; seed = seed << i; seed <<= 1u; seed >>= 2u; seed |= i & ~i; if i >= 3u { continue; } }
	for (;;) { break; }
	while seed > 8u { seed /= 2u; seed--; }
	loop { seed += 1u; if seed >= 20u { break; } continuing { seed ^= 1u; let done = seed > 40u; break if done; } }
	{ var first: array<vec2<u32>, n>; first[0] = vec2<u32>(vec2(1u, 2u)); _ = first[1].yx.x; }
	let r = frexp(v.x);
	let e = r.exp;
	let q = bitcast<vec2<u32>>(v);
	let m = mat2x2<f32>(1, 0, 0, 1) * v;
	const local = 1.5e-3 + 0x1p-2f + .5;
	const_assert local < 2;
	y[in.id.x % 8u] = select(m, Pair(local, f32(pick(e))), q.x > q.y) + f32(last());
	;
	return;
}
