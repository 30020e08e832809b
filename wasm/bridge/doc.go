// Package bridge is what a Go program in a page needs besides package syscall/js: it
// turns Go functions into JavaScript functions that return promises, waits for promises,
// and copies slices to and from typed arrays, or lays these over slices. It knows nothing of devices; it is there
// because nearly every call of rayo waits, and a function that JavaScript has called may
// not wait.
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
// The package is empty on other systems than js.
package bridge
