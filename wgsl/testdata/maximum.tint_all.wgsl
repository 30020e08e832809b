enable subgroups;
diagnostic(off, subgroup_uniformity);
struct Params {
  N: u32,
}
@group(0) @binding(2) var<uniform> params: Params;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> part: array<f32, 128>;
fn from_bits(bits: u32) -> f32 {
  return bitcast<f32>(bits);
}
fn is_nan(x: f32) -> bool {
  return (bitcast<u32>(x) & u32(0x7fffffffu)) > u32(0x7f800000u);
}
fn max_nan(x: f32, y: f32) -> f32 {
  return select(select(max(x, y), x, is_nan(x)), y, is_nan(y));
}
@compute @workgroup_size(128)
fn maximum(@builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32, @builtin(subgroup_size) subgroup_size: u32) {
  let v6 = group.y * groups.x + group.x;
  var best = from_bits(0xff800000u);
  for (var i = local.x; i < params.N; i += min(128u, params.N - i)) {
    best = max_nan(best, x[v6 * params.N + i]);
  }
  let v21 = subgroupMax(best);
  part[lane / subgroup_size] = v21;
  workgroupBarrier();
  if local.x == 0u {
    best = part[0u];
    let v30 = 128u / subgroup_size;
    for (var i = 1u; i < v30; i++) {
      best = max_nan(best, part[i]);
    }
    y[v6] = best;
  }
}
