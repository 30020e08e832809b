// Package devicetest is the conformance suite of devices: every operation of the
// catalogue against its float64 reference, within its tolerance, over all
// element types and awkward shapes, alone and fused at random; and the rules
// of the API: overlapping slices, mistakes, cancellation, use after Close,
// concurrency, leaks.
//
// The suite and the devices that it tests are in the test files of this package. A device
// is tested by a function that opens it: see Run, and TestCPU for an example.
package devicetest
