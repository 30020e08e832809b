// Times how long trueno-gpu takes to write the kernels of its own benchmark: a line for
// each with its name, nanoseconds (the best of many short runs) and bytes.
use std::hint::black_box;
use std::time::Instant;
use trueno_gpu::kernels::{AttentionKernel, GemmKernel, Kernel, LayerNormKernel, QuantizeKernel, SoftmaxKernel};
use trueno_gpu::ptx::{PtxKernel, PtxModule, PtxType};

// best returns the nanoseconds of a call: the best of many short runs.
fn best(mut call: impl FnMut() -> usize) -> (f64, usize) {
    let bytes = call();
    let mut turns = 1u32;
    let mut least = f64::INFINITY;
    let end = Instant::now() + std::time::Duration::from_millis(50);
    while Instant::now() < end {
        let start = Instant::now();
        for _ in 0..turns {
            black_box(call());
        }
        let t = start.elapsed().as_nanos() as f64;
        if t < 200_000.0 {
            turns *= 2;
            continue;
        }
        least = least.min(t / turns as f64);
    }
    (least, bytes)
}

fn main() {
    let module = PtxModule::new().version(8, 0).target("sm_70").address_size(64).add_kernel(
        PtxKernel::new("vector_add").param(PtxType::U64, "a_ptr").param(PtxType::U64, "b_ptr").param(PtxType::U64, "c_ptr").param(PtxType::U32, "n"),
    );
    let cases: Vec<(&str, Box<dyn FnMut() -> usize>)> = vec![
        ("gemm_naive", Box::new(|| GemmKernel::naive(64, 64, 64).emit_ptx().len())),
        ("gemm_tiled", Box::new(|| GemmKernel::tiled(128, 128, 128, 32).emit_ptx().len())),
        ("gemm_tensor", Box::new(|| GemmKernel::tensor_core(64, 64, 64).emit_ptx().len())),
        ("gemm_warp", Box::new(|| GemmKernel::wmma_fp16(64, 64, 64).emit_ptx().len())),
        ("softmax", Box::new(|| SoftmaxKernel::new(1024).emit_ptx().len())),
        ("layer_norm", Box::new(|| LayerNormKernel::new(1024).emit_ptx().len())),
        ("attention", Box::new(|| AttentionKernel::new(64, 64).emit_ptx().len())),
        ("q4k", Box::new(|| QuantizeKernel::ggml(32, 32, 256).emit_ptx().len())),
        ("module_emit", Box::new(move || module.emit().len())),
    ];
    for (name, call) in cases {
        let (ns, bytes) = best(call);
        println!("{name} {ns:.1} {bytes}");
    }
}
