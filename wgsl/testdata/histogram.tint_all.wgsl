struct Params {
  N: u32,
}
@group(0) @binding(2) var<uniform> params: Params;
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;
var<workgroup> local_: array<atomic<u32>, 256>;
@compute @workgroup_size(256)
fn histogram(@builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u) {
  let v10 = (group.y * groups.x + group.x) * 256u + local.x;
  atomicStore(&local_[local.x], 0u);
  storageBarrier();
  workgroupBarrier();
  if v10 < params.N {
    let v17 = words[v10];
    atomicAdd(&local_[v17 & 255u], 1u);
    let v23 = v17 >> 8u;
    atomicAdd(&local_[v23 & 255u], 1u);
    let v26 = v23 >> 8u;
    atomicAdd(&local_[v26 & 255u], 1u);
    atomicAdd(&local_[(v26 >> 8u) & 255u], 1u);
  }
  storageBarrier();
  workgroupBarrier();
  let v35 = atomicLoad(&local_[local.x]);
  atomicAdd(&bins[local.x], v35);
}
