struct Params {
  M: u32,
  N: u32,
  K: u32,
}
@group(0) @binding(3) var<uniform> params: Params;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
var<workgroup> a_tile: array<f32, 1024>;
var<workgroup> b_tile: array<f32, 1024>;
@compute @workgroup_size(16, 16)
fn matmul(@builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u) {
  let v8 = local.y * 16u + local.x;
  let v11 = group.y * 64u;
  let v13 = group.x * 64u;
  var sum = 0.0f;
  var sum_2 = 0.0f;
  var sum_3 = 0.0f;
  var sum_4 = 0.0f;
  var sum_5 = 0.0f;
  var sum_6 = 0.0f;
  var sum_7 = 0.0f;
  var sum_8 = 0.0f;
  var sum_9 = 0.0f;
  var sum_10 = 0.0f;
  var sum_11 = 0.0f;
  var sum_12 = 0.0f;
  var sum_13 = 0.0f;
  var sum_14 = 0.0f;
  var sum_15 = 0.0f;
  var sum_16 = 0.0f;
  for (var i = 0u; i < params.K; i += min(16u, params.K - i)) {
    let v36 = v8 & 15u;
    let v37 = v11 + (v8 >> 4u);
    let v41 = (v37 < params.M) && (i + v36 < params.K);
    a_tile[v8] = select(0.0f, a[select(0u, v37 * params.K + i + v36, v41)], v41);
    let v52 = v8 & 63u;
    let v53 = i + (v8 >> 6u);
    let v57 = (v53 < params.K) && (v13 + v52 < params.N);
    b_tile[v8] = select(0.0f, b[select(0u, v53 * params.N + v13 + v52, v57)], v57);
    let v66 = v8 + 256u;
    let v69 = v66 & 15u;
    let v70 = v11 + (v66 >> 4u);
    let v74 = (v70 < params.M) && (i + v69 < params.K);
    a_tile[v66] = select(0.0f, a[select(0u, v70 * params.K + i + v69, v74)], v74);
    let v83 = v66 & 63u;
    let v84 = i + (v66 >> 6u);
    let v88 = (v84 < params.K) && (v13 + v83 < params.N);
    b_tile[v66] = select(0.0f, b[select(0u, v84 * params.N + v13 + v83, v88)], v88);
    let v97 = v8 + 512u;
    let v99 = v97 & 15u;
    let v100 = v11 + (v97 >> 4u);
    let v104 = (v100 < params.M) && (i + v99 < params.K);
    a_tile[v97] = select(0.0f, a[select(0u, v100 * params.K + i + v99, v104)], v104);
    let v113 = v97 & 63u;
    let v114 = i + (v97 >> 6u);
    let v118 = (v114 < params.K) && (v13 + v113 < params.N);
    b_tile[v97] = select(0.0f, b[select(0u, v114 * params.N + v13 + v113, v118)], v118);
    let v127 = v8 + 768u;
    let v129 = v127 & 15u;
    let v130 = v11 + (v127 >> 4u);
    let v134 = (v130 < params.M) && (i + v129 < params.K);
    a_tile[v127] = select(0.0f, a[select(0u, v130 * params.K + i + v129, v134)], v134);
    let v143 = v127 & 63u;
    let v144 = i + (v127 >> 6u);
    let v148 = (v144 < params.K) && (v13 + v143 < params.N);
    b_tile[v127] = select(0.0f, b[select(0u, v144 * params.N + v13 + v143, v148)], v148);
    workgroupBarrier();
    for (var j = 0u; j < 16u; j++) {
      let v159 = local.y * 4u;
      let v162 = a_tile[v159 * 16u + j];
      let v165 = j * 64u + local.x * 4u;
      let v166 = b_tile[v165];
      let v170 = a_tile[(v159 + 1u) * 16u + j];
      let v172 = b_tile[v165 + 1u];
      let v177 = a_tile[(v159 + 2u) * 16u + j];
      let v179 = b_tile[v165 + 2u];
      let v184 = a_tile[(v159 + 3u) * 16u + j];
      let v186 = b_tile[v165 + 3u];
      sum = fma(v162, v166, sum);
      sum_2 = fma(v162, v172, sum_2);
      sum_3 = fma(v162, v179, sum_3);
      sum_4 = fma(v162, v186, sum_4);
      sum_5 = fma(v170, v166, sum_5);
      sum_6 = fma(v170, v172, sum_6);
      sum_7 = fma(v170, v179, sum_7);
      sum_8 = fma(v170, v186, sum_8);
      sum_9 = fma(v177, v166, sum_9);
      sum_10 = fma(v177, v172, sum_10);
      sum_11 = fma(v177, v179, sum_11);
      sum_12 = fma(v177, v186, sum_12);
      sum_13 = fma(v184, v166, sum_13);
      sum_14 = fma(v184, v172, sum_14);
      sum_15 = fma(v184, v179, sum_15);
      sum_16 = fma(v184, v186, sum_16);
    }
    workgroupBarrier();
  }
  let v240 = v11 + local.y * 4u;
  let v242 = v13 + local.x * 4u;
  let v243 = v240 < params.M;
  let v244 = v242 < params.N;
  if v243 && v244 {
    c[v240 * params.N + v242] = sum;
  }
  let v253 = v242 + 1u;
  let v254 = v253 < params.N;
  if v243 && v254 {
    c[v240 * params.N + v253] = sum_2;
  }
  let v263 = v242 + 2u;
  let v264 = v263 < params.N;
  if v243 && v264 {
    c[v240 * params.N + v263] = sum_3;
  }
  let v273 = v242 + 3u;
  let v274 = v273 < params.N;
  if v243 && v274 {
    c[v240 * params.N + v273] = sum_4;
  }
  let v282 = v240 + 1u;
  let v283 = v282 < params.M;
  if v283 && v244 {
    c[v282 * params.N + v242] = sum_5;
  }
  if v283 && v254 {
    c[v282 * params.N + v253] = sum_6;
  }
  if v283 && v264 {
    c[v282 * params.N + v263] = sum_7;
  }
  if v283 && v274 {
    c[v282 * params.N + v273] = sum_8;
  }
  let v312 = v240 + 2u;
  let v313 = v312 < params.M;
  if v313 && v244 {
    c[v312 * params.N + v242] = sum_9;
  }
  if v313 && v254 {
    c[v312 * params.N + v253] = sum_10;
  }
  if v313 && v264 {
    c[v312 * params.N + v263] = sum_11;
  }
  if v313 && v274 {
    c[v312 * params.N + v273] = sum_12;
  }
  let v342 = v240 + 3u;
  let v343 = v342 < params.M;
  if v343 && v244 {
    c[v342 * params.N + v242] = sum_13;
  }
  if v343 && v254 {
    c[v342 * params.N + v253] = sum_14;
  }
  if v343 && v264 {
    c[v342 * params.N + v263] = sum_15;
  }
  if v343 && v274 {
    c[v342 * params.N + v273] = sum_16;
  }
}
