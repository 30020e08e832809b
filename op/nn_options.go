package op

// This file has the option structs of the operations of neural networks that package batch
// composes of other operations. Lists that describe windows have one number for each spatial
// axis, or one number for all of them.

// Same selects automatic padding, which makes the number of windows along an axis equal to
// its extent divided by the stride, rounded up. It replaces the pads in the options.
type Same uint8

// The values of [Same].
const (
	SameNone  Same = iota // the pads that are given
	SameUpper             // an odd element of padding comes after the axis
	SameLower             // an odd element of padding comes before the axis
)

// PoolOpts are the parameters of pooling over windows.
type PoolOpts struct {
	Stride   []int   // from one window to the next; nil means the extents of the window
	Pad      []int   // elements of padding before each axis; nil means 0
	PadAfter []int   // elements of padding after each axis; nil means Pad
	Dilation []int   // from one element of a window to the next; nil means 1
	Same     Same    // padding computed from the stride, instead of Pad
	Ceil     bool    // keep a last window that ends beyond the padding, if it begins before the padding after the axis
	CountPad bool    // for averages: count padding as elements of 0
	P        float32 // for norms: the power; 0 means 2
}

// ConvOpts are the parameters of convolutions over one, two or three spatial axes.
type ConvOpts struct {
	Stride   []int // from one window to the next; nil means 1
	Pad      []int // zeros before each axis; nil means 0
	PadAfter []int // zeros after each axis; nil means Pad
	Dilation []int // from one element of a window to the next; nil means 1
	Same     Same  // padding computed from the stride, instead of Pad
	Groups   int   // number of groups of channels; 0 means 1
	// OutPad adds elements at the end of each axis of a transposed convolution. With a stride,
	// convolutions of inputs with different extents have the same output extent, and OutPad chooses
	// among the input extents. nil means 0. Convolutions ignore it.
	OutPad []int
}

// Interpolation chooses how values between the elements of an axis are computed.
type Interpolation uint8

// The interpolations.
const (
	Linear  Interpolation = iota // on the line between two elements
	Nearest                      // the nearest element
	Cubic                        // cubic convolution of four elements, with Keys' kernel
	Area                         // the mean of the elements that an element of the result covers
)

// Coordinates says which place on an axis of n elements corresponds to element i of the
// resized axis of m elements.
type Coordinates uint8

// The coordinates. scale is m/n, or the scale that is given.
const (
	HalfPixel          Coordinates = iota // (i+½)/scale - ½: elements are areas side by side
	AlignCorners                          // i·(n-1)/(m-1): the first and last elements stay where they are
	Asymmetric                            // i/scale
	TorchHalfPixel                        // as HalfPixel, and 0 for an axis of one element
	HalfPixelSymmetric                    // as HalfPixel, with the same distance to both ends where n·scale is not m
	CropAndResize                         // Region[axis][0]·(n-1) for the first element, Region[axis][1]·(n-1) for the last
)

// Rounding says which element is the nearest to a place.
type Rounding uint8

// The roundings.
const (
	HalfDown  Rounding = iota // the lower of two at the same distance
	HalfUp                    // the upper of two at the same distance
	RoundDown                 // the element below
	RoundUp                   // the element above
)

// ResizeOpts are the parameters of resizing.
type ResizeOpts struct {
	Mode           Interpolation
	Coordinates    Coordinates
	Rounding       Rounding     // for Nearest
	CubicA         float32      // the coefficient of Cubic; 0 means -0.75
	Scale          []float64    // the scale of each axis, for the coordinates, and for the size if size is nil; nil means m/n
	Antialias      bool         // Linear and Cubic: widen the kernel where the axis gets smaller
	ExcludeOutside bool         // Linear and Cubic: elements beyond the ends have no weight; by default the last element repeats
	Region         [][2]float64 // for CropAndResize: the first and last place on each axis, from 0 to 1
	Outside        float32      // for CropAndResize: the value of places outside the axis
}

// Outside chooses the value of samples outside of an image.
type Outside uint8

// The values of [Outside].
const (
	OutsideZeros   Outside = iota // 0
	OutsideBorder                 // the nearest element
	OutsideReflect                // the element at the mirrored place
)

// GridSampleOpts are the parameters of sampling at the places of a grid.
type GridSampleOpts struct {
	Mode         Interpolation // Linear, Nearest or Cubic
	Outside      Outside
	AlignCorners bool    // -1 and 1 are the centres of the first and last elements, not their outer borders
	CubicA       float32 // the coefficient of Cubic; 0 means -0.75
}

// LRNOpts are the parameters of local response normalisation.
type LRNOpts struct {
	Alpha float32 // factor of the mean square; 0 means 1e-4
	Beta  float32 // power; 0 means 0.75
	Bias  float32 // added to the mean square; 0 means 1
}

// NormalizeOpts are the parameters of division by a norm.
type NormalizeOpts struct {
	P     float32 // the norm: 1, 2, +Inf or another power; 0 means 2
	Eps   float32 // the least divisor; 0 means 1e-12
	Along Along   // axes of the norm; the zero value means the last axis
}

// Reduce says how the losses of the elements are combined.
type Reduce uint8

// The values of [Reduce].
const (
	ReduceMean Reduce = iota // their mean, weighted where there are weights
	ReduceSum                // their sum
	ReduceNone               // not at all: the result has one loss for each element
)

// LossOpts are the parameters of losses.
type LossOpts struct {
	Reduce Reduce
	Ignore []int   // labels that are ignored: their loss is 0, and the mean does not count them
	Delta  float32 // for Huber: the difference from which the loss is linear; 0 means 1
}

// RecurrentOpts are the parameters of recurrent networks.
type RecurrentOpts struct {
	Reverse    bool // run from the last step to the first; only for one direction
	BatchFirst bool // x is [n t i], y [n t directions h] and states [n directions h]; by default x is [t n i], y [t directions n h]
	ResetAfter bool // for GRU: multiply the product with the state by the reset gate, not the state itself
}

// QuantizeOpts are the parameters of quantisation.
type QuantizeOpts struct {
	Signed bool // to [-128, 127], not to [0, 255]
	Bits   int  // bits of a quantised number, at most 16; 0 means 8
	Axis   int  // the axis along which scale and zero have one number for each element; below 0 it counts from the end
}
