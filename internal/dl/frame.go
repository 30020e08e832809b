package dl

// MaxArgs is the number of arguments that a call can have.
const MaxArgs = 15

// A Frame holds one call: the function, its arguments and its result. Make it
// with [NewFrame], which puts it on the heap, where it does not move. A frame
// serves one call at a time.
//
// The order of the fields up to Refused is known to the assembly and to C.
type Frame struct {
	// Fn is the address of the function to call.
	Fn uintptr

	// Bind, unless 0, is called first with Context as its only argument, on the
	// same thread as Fn. If it returns something other than 0 as an int, Fn
	// is not called: that becomes the result, and Refused is not 0.
	//
	// It is for libraries that keep a current context for each thread: binding
	// it in the same excursion from Go spares both a second one and
	// [runtime.LockOSThread].
	Bind, Context uintptr

	// Args are the arguments: integers and pointers, never floating-point
	// numbers or structures by value. Those beyond the last that the function
	// takes are passed and ignored.
	Args [MaxArgs]uintptr

	// Result is what the function returned. Its bits above the width of the
	// function's type mean nothing.
	Result uintptr

	// Refused is not 0 after a call for which Bind failed.
	Refused uintptr

	// Out is room for results that a function stores through a pointer.
	Out [4]uint64
}

// NewFrame returns an empty frame on the heap.
//
//go:noinline
func NewFrame() *Frame { return new(Frame) }
