package op

// UnfoldOpts are the parameters of the methods Unfold and Fold of package batch. Lists have
// one number for each spatial axis, or one number for all of them.
type UnfoldOpts struct {
	Stride   []int // from one window to the next; nil means 1
	Pad      []int // zeros before each axis; nil means 0
	PadAfter []int // zeros after each axis; nil means Pad
	Dilation []int // from one element of a window to the next; nil means 1
}
