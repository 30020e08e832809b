// Package bridge complements package syscall/js for Go programs in web pages. It turns Go
// functions into JavaScript functions that return promises, waits for promises, copies
// slices to and from typed arrays, and makes typed arrays over the memory of slices.
// It does not depend on devices. Programs need it because nearly every call of rayo
// waits, and a function that JavaScript has called must not wait.
//
//	double := bridge.Func(func(args []js.Value) (any, error) {
//		x, err := bridge.Slice[float32](args[0])
//		if err != nil {
//			return nil, err
//		}
//		if err := dev.Scale(ctx, x, x, 2); err != nil {
//			return nil, err // the promise is rejected with an Error
//		}
//		return bridge.TypedArray(x)
//	})
//	js.Global().Set("double", double) // const y = await double(new Float32Array([1, 2]))
//
// The package is empty on systems other than js.
package bridge
