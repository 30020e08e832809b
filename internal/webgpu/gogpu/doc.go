// Package gogpu is WebGPU without a C compiler: package naga, written in Go, compiles WGSL to
// SPIR-V, and the bindings of gogpu/wgpu, which load the Vulkan library at run time, call Vulkan.
//
// # Use of gogpu/wgpu
//
// This package uses only hal/vulkan/vk, which has tables of functions and structures. The layers
// above it let the driver write through the address of a local variable, kept in an integer while
// the goroutine's stack may move, and several of their objects are not safe for concurrent use.
// Here the driver gets only addresses of heap objects, which do not move, and which are kept alive
// until the call returns. Any goroutine may make calls.
//
// # Defects of the compiler
//
// Naga in Go translates some built-in functions incorrectly, and accepts some invalid texts. Texts
// of this project ([wgsl.NagaGo]) avoid these functions. Other texts are checked here before they
// run: incorrect code is corrected or rejected, indices are clamped to their arrays, and writes to
// read-only memory are rejected.
package gogpu
