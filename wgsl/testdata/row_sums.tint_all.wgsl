struct Params {
  n: u32,
}
@group(0) @binding(2) var<uniform> params: Params;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> part: array<f32, 128>;
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & u32(0x7fffffffu)) > u32(0x7f800000u);
}
fn clip(x: f32, lower: f32, upper: f32) -> f32 {
  return select(min(max(x, lower), upper), x, is_nan(x));
}
fn exp_f(x: f32) -> f32 {
  let v6 = clip(x, -104.0f, 89.0f);
  let v9 = round(v6 * 1.442695f);
  let v13 = fma(v9, -1.4286068e-06f, fma(v9, -0.69314575f, v6));
  let v23 = fma(fma(fma(fma(fma(0.0013865769f, v13, 0.008366712f), v13, 0.04166749f), v13, 0.16666542f), v13, 0.49999997f), v13, 1.0f);
  let v29 = v9 < 0.0f;
  let v35 = fma(v23, v13, 1.0f) * bitcast<f32>((i32(v9) << 23u) + select(528482304i, 1602224128i, v29));
  return v35 * select(1.8446744e+19f, 5.421011e-20f, v29);
}
@compute @workgroup_size(128)
fn row_sums(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
  let v4 = group.x * params.n;
  var sum = 0.0f;
  for (var i = lane; i < params.n; i += min(128u, params.n - i)) {
    sum = sum + exp_f(x[v4 + i]);
  }
  part[lane] = sum;
  workgroupBarrier();
  if lane < 64u {
    part[lane] = part[lane] + part[lane + 64u];
  }
  workgroupBarrier();
  if lane < 32u {
    part[lane] = part[lane] + part[lane + 32u];
  }
  workgroupBarrier();
  if lane < 16u {
    part[lane] = part[lane] + part[lane + 16u];
  }
  workgroupBarrier();
  if lane < 8u {
    part[lane] = part[lane] + part[lane + 8u];
  }
  workgroupBarrier();
  if lane < 4u {
    part[lane] = part[lane] + part[lane + 4u];
  }
  workgroupBarrier();
  if lane < 2u {
    part[lane] = part[lane] + part[lane + 2u];
  }
  workgroupBarrier();
  if lane < 1u {
    part[lane] = part[lane] + part[lane + 1u];
  }
  workgroupBarrier();
  if lane == 0u {
    y[group.x] = part[0u];
  }
}
