// Package gogpu is WebGPU without a C compiler: WGSL is compiled to SPIR-V by
// package naga, which is Go, and Vulkan is called through the bindings of gogpu/wgpu,
// which load its library at run time.
//
// # What is used of gogpu/wgpu, and what is not
//
// Package hal/vulkan/vk, which is tables of functions and structures, and nothing
// above it. The layers above let the driver write through the address of a local
// variable, kept in an integer while the goroutine's stack may move, and several of
// their objects are not safe for concurrent use. Here every address that
// reaches the driver is that of an object on the heap, which does not move, and which is
// kept alive until the call is over. Calls may come from any goroutine.
//
// # What the compiler gets wrong
//
// Naga in Go has built-in functions that it gets wrong, and accepts what it should not.
// Texts of this project ([wgsl.NagaGo]) avoid the former. Other texts are
// judged here before they run: what is compiled wrongly is put right or refused,
// indices are kept within their arrays, and writes to what is read-only are refused.
package gogpu
