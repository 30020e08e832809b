// Package jsmemory finds the memory of this program among the objects of JavaScript, so
// that typed arrays can lie over slices of Go. It is empty on other systems than js.
package jsmemory
