// How fast the points of a picture leave the Mandelbrot set.

struct Params {
  center: vec2f,
  size: vec2u,       // of the picture, in pixels
  pixel: f32,        // its width in the plane
  max_steps: u32,
}

@group(0) @binding(0) var<storage, read_write> steps: array<f32>;
@group(0) @binding(1) var<uniform> params: Params;

@compute @workgroup_size(8, 8)
fn mandelbrot(@builtin(global_invocation_id) id: vec3u) {
  if id.x >= params.size.x || id.y >= params.size.y {
    return;
  }
  let at = vec2f(id.xy) + 0.5 - 0.5 * vec2f(params.size);
  let c = params.center + params.pixel * vec2f(at.x, -at.y);
  var z = vec2f(0.0);
  var n = 0u;
  while n < params.max_steps && dot(z, z) <= 64.0 {
    z = vec2f(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
    n++;
  }
  // What is left of the last step makes the bands smooth; points of the set are -1.
  var smooth_steps = -1.0;
  if n < params.max_steps {
    smooth_steps = f32(n) - log2(log2(dot(z, z)) / log2(64.0));
  }
  steps[id.y * params.size.x + id.x] = smooth_steps;
}
