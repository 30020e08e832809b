// Package jsmemory finds the memory of this program among the objects of JavaScript, so
// that typed arrays can share the memory of Go slices. It is empty on systems other than js.
package jsmemory
