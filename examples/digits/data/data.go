// Package data holds the handwritten digits of the examples, and the weights of the network
// of examples/digits.
package data

import _ "embed"

// Pixels is the number of pixels of an image: 8 rows of 8.
const Pixels = 8 * 8

// Weights are those of the network, as examples/digits reads them.
//
//go:embed weights.bin
var Weights []byte

//go:embed test.bin
var test []byte

// Images returns the pixels of all images one after the other, from 0 to 16, and the digit
// that each image shows.
func Images() (pixels []float32, labels []int) {
	for r := test; len(r) > Pixels; r = r[Pixels+1:] {
		for _, v := range r[:Pixels] {
			pixels = append(pixels, float32(v))
		}
		labels = append(labels, int(r[Pixels]))
	}
	return pixels, labels
}
