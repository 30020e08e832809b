package op

// UnfoldOpts are the parameters of the methods Unfold and Fold of package batch. Lists have
// one number for each spatial axis, or one number for all of them.
type UnfoldOpts struct {
	Stride   []int // from one window to the next; nil stands for 1
	Pad      []int // zeros before each axis; nil stands for 0
	PadAfter []int // zeros after each axis; nil stands for Pad
	Dilation []int // from one element of a window to the next; nil stands for 1
}
