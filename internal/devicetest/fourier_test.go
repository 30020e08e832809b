package devicetest

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"github.com/rayo-go/rayo/batch"
	"github.com/rayo-go/rayo/op"
)

// transforms are Fourier transforms of lengths that need one matrix product, of lengths with several factors and
// of large primes, along several axes and with each norm.
func transforms(rng *rand.Rand) (list []computation) {
	norms := []op.FFTNorm{op.NormBackward, op.NormOrtho, op.NormForward}
	for i, n := range []int{1, 2, 31, 128, 129, 131, 143, 1 + rng.IntN(600), 509, 1024} {
		o := op.FFTOpts{Norm: norms[i%3]}
		list = append(list, computation{fmt.Sprintf("fft of %d, norm %d", n, o.Norm), []ndarray{normals(rng, 3, n, 2)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			return []batch.Value{b.FFT(in[0], o), b.IFFT(in[0], o)}
		}, func(in []ndarray) []ndarray {
			return []ndarray{transformed(in[0], 1, -1, o.Norm), transformed(in[0], 1, 1, o.Norm)}
		}})
		list = append(list, computation{fmt.Sprintf("rfft of %d, norm %d", n, o.Norm), []ndarray{normals(rng, 3, n)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
			y := b.RFFT(in[0], o)
			return []batch.Value{y, b.IRFFT(y, n, o)}
		}, func(in []ndarray) []ndarray {
			return []ndarray{firstHalf(transformed(complexOf(in[0]), 1, -1, o.Norm), 1), in[0]}
		}})
	}
	along := op.FFTOpts{Along: op.Axes(0, 2)}
	list = append(list, computation{"fft along two axes", []ndarray{normals(rng, 6, 3, 150, 2)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
		return []batch.Value{b.FFT(in[0], along), b.IFFT(in[0], along)}
	}, func(in []ndarray) []ndarray {
		return []ndarray{transformed(transformed(in[0], 0, -1, 0), 2, -1, 0), transformed(transformed(in[0], 0, 1, 0), 2, 1, 0)}
	}}, computation{"rfft along two axes", []ndarray{normals(rng, 6, 3, 15)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
		y := b.RFFT(in[0], along)
		return []batch.Value{y, b.IRFFT(y, 15, along)}
	}, func(in []ndarray) []ndarray {
		return []ndarray{firstHalf(transformed(transformed(complexOf(in[0]), 0, -1, 0), 2, -1, 0), 2), in[0]}
	}}, computation{"stft", []ndarray{normals(rng, 2, 50), normals(rng, 16)}, func(b *batch.Batch, in []batch.Value) []batch.Value {
		return []batch.Value{b.STFT(in[0], 16, 5, in[1])}
	}, func(in []ndarray) []ndarray {
		frames := newNDArray(2, 7, 16)
		each(frames.s, func(i []int) { frames.set(in[0].at(i[0], i[1]*5+i[2])*in[1].at(i[2]), i...) })
		return []ndarray{firstHalf(transformed(complexOf(frames), 2, -1, 0), 2)}
	}})
	return list
}

// transformed returns the Fourier transform of pairs x along an axis, by its definition.
func transformed(x ndarray, axis int, sign float64, norm op.FFTNorm) ndarray {
	y, n := newNDArray(x.s...), x.s[axis]
	scale := [...]float64{op.NormBackward: 1 / float64(n), op.NormOrtho: 1 / math.Sqrt(float64(n)), op.NormForward: 1}[norm]
	if sign < 0 {
		scale = 1 / float64(n) / scale
	}
	roots := make([]complex128, n)
	for k := range roots {
		roots[k] = cmplx.Rect(scale, sign*2*math.Pi*float64(k)/float64(n))
	}
	each(x.s[:len(x.s)-1], func(i []int) {
		var sum complex128
		re, im := append(slices.Clone(i), 0), append(slices.Clone(i), 1)
		for j := range n {
			re[axis], im[axis] = j, j
			sum += complex(x.at(re...), x.at(im...)) * roots[i[axis]*j%n]
		}
		y.set(real(sum), append(slices.Clone(i), 0)...)
		y.set(imag(sum), append(slices.Clone(i), 1)...)
	})
	return y
}

// complexOf returns real numbers as pairs.
func complexOf(x ndarray) ndarray {
	y := newNDArray(append(slices.Clone(x.s), 2)...)
	each(x.s, func(i []int) { y.set(x.at(i...), append(slices.Clone(i), 0)...) })
	return y
}

// firstHalf returns the first n/2+1 elements of n along an axis.
func firstHalf(x ndarray, axis int) ndarray {
	s := slices.Clone(x.s)
	s[axis] = s[axis]/2 + 1
	y := newNDArray(s...)
	each(s, func(i []int) { y.set(x.at(i...), i...) })
	return y
}
