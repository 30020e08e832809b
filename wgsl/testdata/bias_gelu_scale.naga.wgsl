struct Params {
  n: u32,
  extent1: u32,
  p0: f32,
}
@group(0) @binding(3) var<uniform> params: Params;
@group(0) @binding(0) var<storage, read> x0: array<vec4f>;
@group(0) @binding(1) var<storage, read> x1: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y0: array<vec4f>;
fn is_nan_4(x: vec4f) -> vec4<bool> {
  return (bitcast<vec4u>(x) & vec4u(0x7fffffffu)) > vec4u(0x7f800000u);
}
fn min_with_4(x: vec4f, constant: vec4f) -> vec4f {
  return select(min(x, constant), x, is_nan_4(x));
}
fn normcdf_f_4(x: vec4f) -> vec4f {
  let v12 = min_with_4(abs(x), vec4f(14.5f));
  let v15 = v12 * 0.5f;
  let v17 = -(v15 * v12);
  let v21 = round(v17 * 1.442695f);
  let v27 = fma(v21, vec4f(-1.4286068e-06f), fma(v21, vec4f(-0.69314575f), v17));
  let v40 = fma(fma(fma(fma(fma(vec4f(0.0013865769f), v27, vec4f(0.008366712f)), v27, vec4f(0.04166749f)), v27, vec4f(0.16666542f)), v27, vec4f(0.49999997f)), v27, vec4f(1.0f));
  let v44 = v12 * 0.70710677f;
  let v48 = 1.0f / fma(v44, vec4f(0.375f), vec4f(1.0f));
  let v49 = v48 * 0.5f;
  let v50 = v44 * v48;
  let v68 = fma(fma(fma(fma(fma(vec4f(2.4045685e-05f), v50, vec4f(-0.00021351245f)), v50, vec4f(0.00039970828f)), v50, vec4f(0.0016552111f)), v50, vec4f(-0.0026978855f)), v50, vec4f(-0.05061394f));
  let v75 = fma(v49 * v50, fma(fma(v68, v50, vec4f(0.29435092f)), v50, vec4f(-0.75337976f)), v49);
  let v88 = fma(v40, v27, vec4f(1.0f)) * fma(v75, -fma(v15, v12, v17), v75) * bitcast<vec4f>((vec4i(v21) << vec4u(23u)) + 1602224128i);
  let v91 = v88 * 5.421011e-20f;
  return select(v91, 1.0f - v91, (vec4f(0.0f) < x));
}
@compute @workgroup_size(256)
fn bias_gelu_scale(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
  let v12 = (group.y * groups.x + group.x) * 256u + lane;
  if (v12 << 2u) < params.n {
    let v21 = x0[v12] + x1[v12 % (params.extent1 >> 2u)];
    y0[v12] = v21 * normcdf_f_4(v21) * params.p0;
  }
}
