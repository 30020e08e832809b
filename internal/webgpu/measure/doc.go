// Package measure has no code but its tests: they run the kernels of the portable
// library on a device of WebGPU, compare the results with the references of
// package op and say how fast they are. Without a flag that names an adapter they
// are skipped.
//
//	go test ./internal/webgpu/measure -v -adapter NVIDIA -run Rows
package measure
