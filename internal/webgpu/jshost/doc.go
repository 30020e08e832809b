// Package jshost is a host of package webgpu over navigator.gpu, the WebGPU of browsers
// and of JavaScript engines that have it, through syscall/js.
//
// Mistakes in calls become errors: pipelines and large buffers are created between error scopes,
// and the call waits for their errors. Each submission has its own scopes, whose errors end the
// submission. An error of a group or a small buffer, whose arguments package webgpu has checked,
// ends the next submission. Nothing is polled: promises call Go functions, which wake the waiting
// goroutines (promise.go). Operands are copied from Go's memory to the queue (buffer.go), and
// results from mapped memory to Go's.
package jshost
