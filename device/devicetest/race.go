//go:build race

package devicetest

// Under the race detector large arrays take long and show nothing that
// smaller ones do not.
const raceDetector = true
