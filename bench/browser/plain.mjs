// plain.mjs compares operations of rayo on SIMD128 with the same operations in plain Go, which RAYO_SIMD=generic selects.
// The two programs run in turn in one page.
import { compare, rayo } from "./page.mjs";
import { run } from "./report.mjs";

const times = { relu: 20, tanh: 1, softmax: 2, dot: 50, dot64000: 500, dot4000: 5000, matmul256: 4, matmul512: 1, matmul1024: 1 };

run(async () => compare({ simd128: await rayo("cpu"), plain: await rayo("cpu", { RAYO_SIMD: "generic" }) }, times, 2, 7));
