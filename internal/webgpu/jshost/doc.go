// Package jshost is a host of package webgpu over navigator.gpu, the WebGPU of browsers
// and of JavaScript engines that have it, through syscall/js.
//
// What is wrong with a call comes back as an error: pipelines and large buffers are made
// between scopes of errors, which are waited for; submissions have scopes of their own,
// whose errors end the submission; and what is wrong with a group or a small buffer, of
// which package webgpu has checked everything, ends the next submission. Nothing is
// polled: promises call functions of Go, which wake whoever waits (promise.go). Operands
// go from Go's memory to the queue (buffer.go), and results from mapped memory to Go's.
package jshost
