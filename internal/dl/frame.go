package dl

// MaxArgs is the number of arguments that a call can have.
const MaxArgs = 15

// A Frame holds one call: the function, its arguments and its result. Make it
// with [NewFrame], which puts it on the heap, where it does not move. A frame
// serves one call at a time.
//
// The assembly and the C code depend on the order of the fields up to Refused.
type Frame struct {
	// Fn is the address of the function to call.
	Fn uintptr

	// Bind, unless 0, is called first with Context as its only argument, on the same thread as Fn. If
	// it returns a result other than 0 as an int, Fn is not called: Result is then the result of Bind,
	// and Refused is not 0.
	//
	// Some libraries keep a current context for each thread. Binding it in the same call of C saves a
	// second call and [runtime.LockOSThread].
	Bind, Context uintptr

	// Args are the arguments: integers and pointers, but no floating-point numbers or structures by
	// value. Arguments after the last parameter of the function are passed and ignored.
	Args [MaxArgs]uintptr

	// Result is the result of the function. Only the bits of the function's result type are defined.
	Result uintptr

	// Refused is not 0 if Bind failed.
	Refused uintptr

	// Out is room for results that a function stores through a pointer.
	Out [4]uint64
}

// NewFrame returns an empty frame on the heap.
//
//go:noinline
func NewFrame() *Frame { return new(Frame) }
