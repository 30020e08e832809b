// Particles that fly around suns which stay where they are.

const SUNS = 3u;

struct Particle {
  place: vec3f,
  mass: f32,
  speed: vec3f,
  _unused: f32,
}

struct Params {
  count: u32,
  step: f32,                  // of time
  softness: f32,              // added to squared distances
  suns: array<vec4f, SUNS>,   // place and strength
}

@group(0) @binding(0) var<storage, read_write> particles: array<Particle>;
@group(0) @binding(1) var<uniform> params: Params;

fn pull(place: vec3f) -> vec3f {
  var sum = vec3f(0.0);
  for (var i = 0u; i < SUNS; i++) {
    let d = params.suns[i].xyz - place;
    let r = inverseSqrt(dot(d, d) + params.softness);
    sum += params.suns[i].w * r * r * r * d;
  }
  return sum;
}

// Half a step of speed, a step of place, half a step of speed: the energy stays
// near what it was, however many steps there are.
@compute @workgroup_size(64)
fn advance(@builtin(global_invocation_id) id: vec3u) {
  if id.x >= params.count {
    return;
  }
  var p = particles[id.x];
  p.speed += 0.5 * params.step * pull(p.place);
  p.place += params.step * p.speed;
  p.speed += 0.5 * params.step * pull(p.place);
  particles[id.x] = p;
}
