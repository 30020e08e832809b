// Package wazero has tests alone: it runs the module of SIMD128 kernels in wazero, and
// compares them with float64 references. It is a module of its own, so that nobody who
// uses rayo downloads wazero.
package wazero
