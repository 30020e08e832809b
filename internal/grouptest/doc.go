// Package grouptest has a test of packages device, portable and driver/cpu in a page that does not
// import package batch: a method links the kernels of its operation.
package grouptest
