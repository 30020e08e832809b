// Package wgpunative is a host of package webgpu: wgpu-native, which is linked
// into the program. It needs cgo. Without it, and on what wgpu-native is not built
// for, New says so and nothing is linked.
//
// The library comes as a module for each operating system, of which a build
// downloads one. Its C interface is declared in declare.h, as far as it is used;
// native.c makes one call of what takes many, and keeps the library's callbacks
// away from Go: they write to memory of C that the next call reads.
package wgpunative
