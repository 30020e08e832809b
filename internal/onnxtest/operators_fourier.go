package onnxtest

import (
	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

var fourierOperators = map[string]mapping{
	"DFT":  dft,
	"STFT": stft,
}

// dft maps the transform along one axis, of real or complex numbers, and the inverse of half a transform.
func dft(r *recorder) []batch.Value {
	x, s := r.x(0), r.shape(0)
	rank := len(s)
	axis, inverse, half := r.axis(r.int("axis", rank-2), rank), r.int("inverse", 0) != 0, r.int("onesided", 0) != 0
	if r.has(2) {
		axis = r.axis(r.host(2)[0], rank)
	}
	n := s[axis]
	if r.has(1) {
		n = r.host(1)[0]
	} else if inverse && half {
		n = 2 * (n - 1)
	}
	used := n
	if inverse && half {
		used = n/2 + 1
	}
	x = r.Pad(r.Slice(x, axis, 0, min(used, s[axis]), 1), axis, 0, max(0, used-s[axis]), 0)
	o := op.FFTOpts{Along: op.Axes(axis)}
	if inverse && half {
		return one(r.Unsqueeze(r.IRFFT(x, n, o), -1))
	}
	if half && s[rank-1] == 1 {
		return one(r.RFFT(r.Squeeze(x, -1), o))
	}
	x = r.Pad(x, rank-1, 0, 2-s[rank-1], 0)
	if inverse {
		return one(r.IFFT(x, o))
	}
	return one(r.FFT(x, o))
}

// stft maps transforms of frames of real numbers.
func stft(r *recorder) []batch.Value {
	if s := r.shape(0); s[len(s)-1] != 1 || r.int("onesided", 1) == 0 {
		return r.refuse("STFT of complex numbers, or of both halves")
	}
	var size int
	if r.has(3) {
		size = r.host(3)[0]
	} else {
		size = product(r.shape(2))
	}
	return one(r.STFT(r.Squeeze(r.x(0), -1), size, r.host(1)[0], r.x(2)))
}
