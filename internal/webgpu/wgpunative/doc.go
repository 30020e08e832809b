// Package wgpunative is a host of package webgpu: wgpu-native, which is linked into the program. It
// needs cgo. Without cgo, and on systems without a build of wgpu-native, New returns an error and
// nothing is linked.
//
// There is one module with the library for each operating system, and a build downloads only its
// own. declare.h declares the part of its C interface that is used. native.c combines several C
// calls into one, and keeps the library's callbacks away from Go: they write to C memory that the
// next call reads.
package wgpunative
