package op

// FFTNorm says which direction of a Fourier transform of n elements divides by n. It is a field of [FFTOpts].
type FFTNorm uint8

// The norms, under NumPy's names.
const (
	NormBackward FFTNorm = iota // the inverse divides by n
	NormOrtho                   // both directions divide by the square root of n
	NormForward                 // the forward direction divides by n
)

// FFTOpts are the parameters of Fourier transforms.
type FFTOpts struct {
	Along Along // the axes to transform, not counting the axis of real and imaginary parts; the zero value means the last one
	Norm  FFTNorm
}
