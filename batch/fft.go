package batch

import (
	"math"
	"math/cmplx"
	"slices"

	"github.com/rayo-go/rayo/device"
	"github.com/rayo-go/rayo/op"
)

// A complex number is a pair of float32, the real and the imaginary part, along the last axis of a
// value. The memory of a []complex64 has this form.

// FFT returns the discrete Fourier transform of complex numbers x [... n 2] along the last axis of
// numbers, or along the axes of the options:
//
//	y[k] = Σ x[j]·exp(-2πi·j·k/n)
//
// Every n is fast; an n with a prime factor above 128 takes about five times the work of one with
// small factors. The error is about 3e-7 of the norm of the result.
//
// Execute or Compile returns [op.ErrShape] for a last axis that is not of 2 elements and an
// axis without elements, and [op.ErrUnsupported] for a type other than float32.
func (b *Batch) FFT(x Value, opts ...op.FFTOpts) Value {
	return b.fourier("fft", x, opts, func(t *transform, axes []int) {
		for _, a := range axes {
			t.along(a, 2, 2, x.Shape()[a], -1)
		}
	})
}

// IFFT returns the inverse of [Batch.FFT].
func (b *Batch) IFFT(x Value, opts ...op.FFTOpts) Value {
	return b.fourier("ifft", x, opts, func(t *transform, axes []int) {
		for _, a := range axes {
			t.along(a, 2, 2, x.Shape()[a], 1)
		}
	})
}

// RFFT returns the first n/2+1 elements of the Fourier transform of real numbers x [... n], as complex
// numbers [... n/2+1 2]. The others are the conjugates of these. Of several axes, the last one of the
// options is halved. Errors are those of [Batch.FFT].
func (b *Batch) RFFT(x Value, opts ...op.FFTOpts) Value {
	if !b.takes("rfft", x) {
		return Value{}
	}
	return b.fourier("rfft", b.Unsqueeze(x, -1), opts, func(t *transform, axes []int) {
		for i, a := range slices.Backward(axes) {
			n := x.Shape()[a]
			if i == len(axes)-1 {
				t.along(a, 1, 2, n/2+1, -1)
			} else {
				t.along(a, 2, 2, n, -1)
			}
		}
	})
}

// IRFFT returns the n real numbers whose [Batch.RFFT] is x [... n/2+1 2]. If n is 0, it is twice the
// extent less one, which is even. It ignores imaginary parts that a transform of real numbers does not
// have. An n of another half is [op.ErrShape]; the other errors are those of [Batch.FFT].
func (b *Batch) IRFFT(x Value, n int, opts ...op.FFTOpts) Value {
	y := b.fourier("irfft", x, opts, func(t *transform, axes []int) {
		for _, a := range axes[:len(axes)-1] {
			t.along(a, 2, 2, x.Shape()[a], 1)
		}
		a := axes[len(axes)-1]
		h := x.Shape()[a]
		if n == 0 {
			n = 2 * (h - 1)
		}
		if n < 1 || n/2+1 != h {
			b.refuse("irfft", []Value{x}, "%d real numbers of %d complex ones: expected n/2+1 complex ones: %w", n, h, device.ErrShape)
			return
		}
		// The second half of the transform is the conjugate of the first one.
		half := b.Slice(t.x, a, 1, n-h+1, 1)
		sign := b.table(op.F32, op.Shape{2}, func(i int) float64 { return float64(1 - 2*i) })
		t.x = b.Concat(a, t.x, b.Mul(b.Flip(half, a), sign))
		t.along(a, 2, 1, n, 1)
	})
	if b.err != nil {
		return Value{}
	}
	return b.Squeeze(y, -1)
}

// STFT returns the short-time Fourier transform of real numbers x [... n]: the [Batch.RFFT] of frames of
// size elements that start step elements apart, [... frames size/2+1 2]. Each frame is multiplied by
// the window [size], unless it is [None].
//
// Execute or Compile returns [op.ErrShape] for a frame longer than the axis, and a size or step
// below 1.
func (b *Batch) STFT(x Value, size, step int, window Value) Value {
	frames := b.SlidingWindow(x, -1, size, step, 1)
	if window.given() {
		frames = b.Mul(frames, window)
	}
	return b.RFFT(frames)
}

// transform is a Fourier transform that is being recorded.
type transform struct {
	b    *Batch
	x    Value // [... 1] or [... 2]
	norm op.FFTNorm
}

// fourier checks the operand of a transform, and records it by f, along axes of the numbers.
func (b *Batch) fourier(name string, x Value, opts []op.FFTOpts, f func(t *transform, axes []int)) Value {
	if !b.takes(name, x) {
		return Value{}
	}
	o, err := op.OptionOf(opts)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	s := x.Shape()
	rank := len(s) - 1
	switch {
	case x.Type() != op.F32:
		return b.refuse(name, []Value{x}, "numbers of type %v: expected f32; use Cast: %w", x.Type(), device.ErrUnsupported)
	case rank < 1 || name != "rfft" && s[rank] != 2:
		return b.refuse(name, []Value{x}, "expected [... n 2], pairs of real and imaginary parts: %w", device.ErrShape)
	case o.Norm > op.NormForward:
		return b.refuse(name, []Value{x}, "norm %d: no such norm: %w", o.Norm, device.ErrShape)
	case o.Along == op.Along{}:
		o.Along = op.Axes(-1)
	}
	axes, _, err := o.Along.Of(rank)
	if err != nil {
		return b.refuse(name, []Value{x}, "%w", err)
	}
	for _, a := range axes {
		if s[a] < 1 || s[a] > math.MaxInt32/16 {
			return b.refuse(name, []Value{x}, "axis %d has %d elements: expected 1 to %d: %w", a, s[a], math.MaxInt32/16, device.ErrShape)
		}
	}
	t := &transform{b: b, x: x, norm: o.Norm}
	if f(t, axes); b.err != nil {
		return Value{}
	}
	return t.x
}

// along transforms x along one axis. parts is the number of parts (1 real, 2 complex) of a number
// before the transform, and result that after it. It keeps the first keep elements of the result.
func (t *transform) along(axis, parts, result, keep int, sign float64) {
	b, s := t.b, t.x.Shape()
	if b.err != nil {
		return
	}
	last := len(s) - 1
	n := s[axis]
	// [others... part axis], as m transforms of planes.
	order := append(slices.DeleteFunc(span(0, last), func(i int) bool { return i == axis }), last, axis)
	shape := make([]int, len(s))
	for i, k := range order {
		shape[i] = s[k]
	}
	scale := 1.0
	switch {
	case t.norm == op.NormOrtho:
		scale = 1 / math.Sqrt(float64(n))
	case (t.norm == op.NormForward) == (sign < 0):
		scale = 1 / float64(n)
	}
	planes := b.Reshape(b.Permute(t.x, order...), product(shape[:last-1]), parts, n)
	y := b.dft(planes, dft{n: n, parts: parts, result: result, keep: keep, sign: sign, scale: scale})
	shape[last-1], shape[last] = result, keep
	back := make([]int, len(s))
	for i, k := range order {
		back[k] = i
	}
	t.x = b.Permute(b.Reshape(y, shape...), back...)
}

// dft is a transform of planes [m parts n] to planes [m result keep].
type dft struct {
	n, parts, result, keep int
	sign, scale            float64
}

// maxDFT is the largest transform that is one product with a matrix.
const maxDFT = 128

// dft records a transform. One of n = n1·n2 elements is n2 transforms of n1 elements, a product with
// twiddle factors, and n1 transforms of n2 elements; the short ones are matrix products, which
// devices compute at their full rate.
func (b *Batch) dft(x Value, d dft) Value {
	m := x.Shape()[0]
	if d.n <= maxDFT {
		f := b.table(op.F32, op.Shape{d.parts * d.n, d.result * d.keep}, func(i int) float64 {
			from, to := i/(d.result*d.keep), i%(d.result*d.keep)
			return d.scale * d.root(from/d.n, to/d.keep, from%d.n*(to%d.keep), d.n)
		})
		return b.Reshape(b.MatMul(b.Reshape(x, m, d.parts*d.n), f, None), m, d.result, d.keep)
	}
	n1 := splitDFT(d.n)
	if n1 == 0 {
		return b.bluestein(x, d)
	}
	n2 := d.n / n1
	f := b.table(op.F32, op.Shape{2 * n1, d.parts * n1}, func(i int) float64 {
		to, from := i/(d.parts*n1), i%(d.parts*n1)
		return d.root(from/n1, to/n1, from%n1*(to%n1), n1)
	})
	y := b.Reshape(b.MatMul(f, b.Reshape(x, m, d.parts*n1, n2), None), m, 2, n1, n2)
	y = b.cmul(b.Permute(y, 0, 2, 1, 3), 2, op.Shape{n1, 1, n2}, func(i int) complex128 { return unit(d.sign, i/n2*(i%n2), d.n) })
	keep := (d.keep-1)/n1 + 1
	y = b.dft(b.Reshape(y, m*n1, 2, n2), dft{n: n2, parts: 2, result: d.result, keep: keep, sign: d.sign, scale: d.scale})
	y = b.Permute(b.Reshape(y, m, n1, d.result, keep), 0, 2, 3, 1)
	return b.Slice(b.Reshape(y, m, d.result, keep*n1), 2, 0, d.keep, 1)
}

// root returns the factor with which part from of an element contributes to part to of a result,
// where part 0 is real and part 1 imaginary. It is an entry of the matrix of the product with
// exp(sign·2πi·k/n).
func (d *dft) root(from, to, k, n int) float64 {
	w := unit(d.sign, k, n)
	switch {
	case from == to:
		return real(w)
	case from == 0:
		return imag(w)
	}
	return -imag(w)
}

// splitDFT returns a divisor of n that is at most maxDFT and makes the factors of n about equally
// large. It returns 0 if a prime factor exceeds maxDFT.
func splitDFT(n int) int {
	rest := n
	for p := 2; p <= maxDFT && rest > 1; p++ {
		for rest%p == 0 {
			rest /= p
		}
	}
	if rest > 1 {
		return 0
	}
	levels := math.Ceil(math.Log(float64(n)) / math.Log(64))
	target, best := math.Pow(float64(n), 1/levels), 0
	for p := 2; p <= maxDFT; p++ {
		if n%p == 0 && (best == 0 || math.Abs(float64(p)-target) < math.Abs(float64(best)-target)) {
			best = p
		}
	}
	return best
}

// unit returns exp(sign·2πi·k/n).
func unit(sign float64, k, n int) complex128 {
	sin, cos := math.Sincos(2 * math.Pi * float64(k%n) / float64(n))
	return complex(cos, sign*sin)
}

// cmul multiplies numbers, whose one or two parts lie along an axis of x, with complex numbers f(i) of
// shape s, which ends where x does and is 1 along the axis: (u+iv)·(c+is) = (u, v)·c + (v, u)·(-s, s).
func (b *Batch) cmul(x Value, axis int, s op.Shape, f func(i int) complex128) Value {
	if b.err != nil {
		return Value{}
	}
	at := axis - len(x.Shape()) + len(s)
	inner, both := product(s[at:]), slices.Clone(s)
	both[at] = 2
	parts := func(re, im func(complex128) float64) Value {
		return b.table(op.F32, both, func(i int) float64 {
			part, e := re, i/(2*inner)*inner+i%inner
			if i/inner%2 == 1 {
				part = im
			}
			return part(f(e))
		})
	}
	re, im := func(c complex128) float64 { return real(c) }, func(c complex128) float64 { return imag(c) }
	if x.Shape()[axis] == 1 {
		return b.Mul(x, parts(re, im))
	}
	cos := b.table(op.F32, s, func(i int) float64 { return real(f(i)) })
	sin := parts(func(c complex128) float64 { return -imag(c) }, im)
	return b.Add(b.Mul(x, cos), b.Mul(b.Flip(x, axis), sin))
}

// bluestein records a transform of any n as a circular convolution, which it computes with
// transforms of a power of two: j·k = (j² + k² - (k-j)²)/2.
func (b *Batch) bluestein(x Value, d dft) Value {
	size := 1
	for size < d.n+d.keep-1 {
		size *= 2
	}
	chirp := func(j int) complex128 { return unit(d.sign, int(int64(j)*int64(j)%int64(2*d.n)), 2*d.n) }
	// The filter exp(-sign·πi·j²/n) for j from 1-n to keep-1, transformed.
	filter := make([]complex128, size)
	for j := range max(d.n, d.keep) {
		c := cmplx.Conj(chirp(j))
		if j < d.keep {
			filter[j] = c
		}
		if j > 0 && j < d.n {
			filter[size-j] = c
		}
	}
	fft(filter)
	y := b.Pad(b.cmul(x, 1, op.Shape{1, d.n}, chirp), 2, 0, size-d.n, 0)
	y = b.dft(y, dft{n: size, parts: 2, result: 2, keep: size, sign: -1, scale: 1})
	y = b.cmul(y, 1, op.Shape{1, size}, func(i int) complex128 { return filter[i] })
	y = b.dft(y, dft{n: size, parts: 2, result: 2, keep: d.keep, sign: 1, scale: d.scale / float64(size)})
	return b.Slice(b.cmul(y, 1, op.Shape{1, d.keep}, chirp), 1, 0, d.result, 1)
}

// fft transforms x, whose length is a power of two, in place.
func fft(x []complex128) {
	n := len(x)
	if n == 1 {
		return
	}
	even, odd := make([]complex128, n/2), make([]complex128, n/2)
	for i := range even {
		even[i], odd[i] = x[2*i], x[2*i+1]
	}
	fft(even)
	fft(odd)
	for k := range even {
		t := unit(-1, k, n) * odd[k]
		x[k], x[k+n/2] = even[k]+t, even[k]-t
	}
}
