//go:build !race

package devicetest

const raceDetector = false
